"""TECA's criteria on storms of known shape, broken one at a time."""

import inspect
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate

from climseg import open_fields
from climseg.labels.cyclones_teca import teca_candidates
from climseg.labels.needs import needs_of
from climseg.labels.step import Candidate, Step

Fields = dict[str, np.ndarray]
CONF = Path(__file__).parents[2] / "conf" / "labels" / "cyclones"
LAT, LON = np.arange(-10.0, 50.25, 0.5), np.arange(280.0, 340.25, 0.5)
CENTRE = (20.0, 310.0)


def candidates(fields: Fields, lat: np.ndarray, lon: np.ndarray, **thresholds: float) -> list[Candidate]:
    return teca_candidates(Step(fields, lat, lon), **thresholds)


def test_a_made_hurricane_is_a_candidate_with_the_values_it_was_made_with(stormy: Callable[..., Fields]) -> None:
    (storm,) = candidates(stormy(LAT, LON, [CENTRE]), LAT, LON)
    assert storm.rejected_by == ()
    assert (storm.lat, storm.lon) == CENTRE
    assert (LAT[storm.row], LON[storm.column]) == CENTRE
    assert storm.psl == pytest.approx(101_300 - 3000)
    # The Gaussians at the end of the rays.
    assert storm.measures["pressure_rise_pa"] == pytest.approx(3000 * (1 - np.exp(-((5 / 1.5) ** 2))), rel=1e-3)
    assert storm.measures["core_fall_k"] == pytest.approx(4 * (1 - np.exp(-((5 / 1.5) ** 2))), rel=1e-3)
    assert storm.measures["thickness_fall_m"] == pytest.approx(200 * (1 - np.exp(-((4 / 1.5) ** 2))), rel=1e-3)
    assert storm.wind == pytest.approx(40.0, rel=0.01)
    # 4 v/R at the centre of this profile, less what centred differences over a degree smooth away.
    assert 0.75 < storm.measures["vorticity_per_s"] / (4 * 40.0 / np.radians(1) / 6_371_220) < 1.0


@pytest.mark.parametrize(
    ("broken", "criterion"),
    [
        ({"low_at": (23.0, 310.0)}, "pressure minimum"),
        ({"depth": 300.0}, "pressure rise"),
        ({"warmth": 0.7}, "warm core"),
        ({"warm_at": (20.0, 312.5)}, "warm core"),
        ({"thickening": 45.0}, "thickness"),
        ({"thick_at": (22.5, 310.0)}, "thickness"),
        ({"surface_wind": 16.0}, "wind"),
    ],
)
def test_each_broken_criterion_rejects_and_is_named(
    broken: dict[str, object], criterion: str, stormy: Callable[..., Fields]
) -> None:
    (storm,) = candidates(stormy(LAT, LON, [CENTRE], **broken), LAT, LON)
    assert storm.rejected_by == (criterion,)


@pytest.mark.parametrize(
    ("weak", "threshold"),
    [
        ({"depth": 300.0}, {"pressure_rise_pa": 290.0}),
        ({"warmth": 0.7}, {"core_fall_k": 0.65}),
        ({"thickening": 45.0}, {"thickness_fall_m": 40.0}),
        ({"surface_wind": 16.0}, {"min_wind": 15.0}),
        ({"low_at": (23.0, 310.0), "warm_at": (23.0, 310.0), "thick_at": (23.0, 310.0)}, {"core_degrees": 3.5}),
        ({"wind": 5.0}, {"min_vorticity": 1e-4}),
    ],
)
def test_each_threshold_can_be_relaxed(
    weak: dict[str, object], threshold: dict[str, float], stormy: Callable[..., Fields]
) -> None:
    fields = stormy(LAT, LON, [CENTRE], **weak)
    assert [c for c in candidates(fields, LAT, LON) if not c.rejected_by] == []
    assert len([c for c in candidates(fields, LAT, LON, **threshold) if not c.rejected_by]) == 1


def test_weak_vorticity_is_no_candidate_at_all(stormy: Callable[..., Fields]) -> None:
    assert candidates(stormy(LAT, LON, [CENTRE], wind=5.0), LAT, LON) == []


def test_a_rise_in_seven_of_eight_directions_is_not_enough(stormy: Callable[..., Fields]) -> None:
    fields = stormy(LAT, LON, [CENTRE])
    east = np.abs(LAT - 20) < 0.6
    # A trough eastward: 3 hPa of rise only on that ray.
    fields["PSL"][np.ix_(east, LON > 310)] = np.minimum(fields["PSL"], 98_600.0)[np.ix_(east, LON > 310)]
    (storm,) = candidates(fields, LAT, LON)
    assert storm.rejected_by == ("pressure rise",)
    assert storm.measures["pressure_rise_pa"] == pytest.approx(300.0, rel=0.01)


def test_a_storm_turns_clockwise_in_the_south(stormy: Callable[..., Fields]) -> None:
    south = -LAT[::-1]
    (storm,) = candidates(stormy(south, LON, [(-20.0, 310.0)]), south, LON)
    assert storm.rejected_by == ()
    assert storm.measures["vorticity_per_s"] > 0
    wrong = stormy(south, LON, [(-20.0, 310.0)], rotation=1)
    assert [c for c in candidates(wrong, south, LON) if not c.rejected_by] == []


@pytest.mark.parametrize("lat", [0.0, -0.5, -1.0])
def test_a_vortex_across_the_equator_is_no_storm(lat: float, stormy: Callable[..., Fields]) -> None:
    rows = np.arange(-30.0, 30.25, 0.5)
    found = candidates(stormy(rows, LON, [(lat, 310.0)], rotation=1), rows, LON)
    assert [c for c in found if not c.rejected_by] == []


def test_of_two_maxima_in_one_window_the_stronger_counts(stormy: Callable[..., Fields]) -> None:
    fields, other = stormy(LAT, LON, [CENTRE]), stormy(LAT, LON, [(20.0, 313.5)], wind=20.0)
    for name in ("U850", "V850"):
        fields[name] = fields[name] + other[name]
    assert [(c.lat, c.lon) for c in candidates(fields, LAT, LON)] == [CENTRE]
    # With a narrower window the weaker one counts as well.
    assert len(candidates(fields, LAT, LON, window_degrees=4.0)) == 2


@pytest.mark.parametrize("centre", [(44.0, 310.0), (20.0, 285.0), (20.0, 336.0), (47.0, 310.0), (20.0, 281.0)])
def test_a_storm_at_the_edge_of_an_open_grid_is_not_judged(
    centre: tuple[float, float], stormy: Callable[..., Fields]
) -> None:
    (storm,) = candidates(stormy(LAT, LON, [centre]), LAT, LON)
    assert storm.rejected_by == ("leaves the grid",)


def test_maxima_near_a_pole_are_no_candidates(stormy: Callable[..., Fields]) -> None:
    lat, lon = np.arange(50.0, 90.25, 0.5), np.arange(0.0, 360.0, 0.5)
    fields = stormy(lat, lon, [(75.0, 100.0)])
    assert len(candidates(fields, lat, lon)) == 1
    assert candidates(fields, lat, lon, max_latitude=70.0) == []


@pytest.mark.parametrize(("name", "criterion"), [("PSL", "pressure rise"), ("T500", "warm core"), ("UBOT", "wind")])
def test_a_missing_value_fails_the_criterion_that_meets_it(
    name: str, criterion: str, stormy: Callable[..., Fields]
) -> None:
    fields = stormy(LAT, LON, [CENTRE])
    fields[name][LAT == 23.0, LON == 310.0] = np.nan
    (storm,) = candidates(fields, LAT, LON)
    assert storm.rejected_by == (criterion,)


def test_still_air_has_no_candidates(stormy: Callable[..., Fields]) -> None:
    assert candidates(stormy(LAT, LON, []), LAT, LON) == []


@pytest.mark.parametrize("core", ["T500", "Z200"])
def test_a_pair_of_points_is_never_found_across_the_equator(core: str, stormy: Callable[..., Fields]) -> None:
    rows = np.arange(-30.0, 30.25, 0.5)
    elsewhere = {"warm_at" if core == "T500" else "thick_at": (-0.5, 310.0)}
    (storm,) = candidates(stormy(rows, LON, [(1.0, 310.0)], **elsewhere), rows, LON, min_vorticity=1e-4)
    assert storm.lat == 1.0
    assert storm.rejected_by == ("warm core" if core == "T500" else "thickness",)
    (both_north,) = candidates(stormy(rows, LON, [(1.0, 310.0)]), rows, LON, min_vorticity=1e-4)
    assert both_north.rejected_by == ()


@pytest.mark.parametrize("column", [0, 1, 180, 359])
def test_a_roll_of_the_longitudes_rolls_the_candidates(column: int, stormy: Callable[..., Fields]) -> None:
    lat, lon = np.arange(-89.5, 90.0), np.arange(360.0)
    places = [(20.5, 100.0), (-15.5, 200.0), (30.5, 106.0)]
    fields = stormy(lat, lon, places)
    rolled = {name: np.roll(values, column - 100, axis=1) for name, values in fields.items()}
    plain = candidates(fields, lat, lon, min_vorticity=1e-4)
    again = candidates(rolled, lat, lon, min_vorticity=1e-4)
    assert [(c.row, (c.column + column - 100) % 360, c.rejected_by) for c in plain] == [
        (c.row, c.column, c.rejected_by) for c in again
    ]
    assert {(c.lat, c.lon) for c in plain} == set(places)
    for one, other in zip(plain, again, strict=True):
        assert one.measures == pytest.approx(other.measures)


def test_names_of_measures_are_the_same_for_all_and_what_was_not_reached_is_nan(stormy: Callable[..., Fields]) -> None:
    (storm,) = candidates(stormy(LAT, LON, [CENTRE]), LAT, LON)
    (broken,) = candidates(stormy(LAT, LON, [CENTRE], low_at=(23.0, 310.0)), LAT, LON)
    assert list(storm.measures) == list(broken.measures)
    assert np.isnan(broken.measures["core_fall_k"])
    assert np.isnan(broken.psl)
    assert broken.measures["vorticity_per_s"] == storm.measures["vorticity_per_s"]


def test_it_needs_the_nine_channels_of_teca() -> None:
    needed = needs_of(teca_candidates).settle(["U850", "V850", "UBOT", "VBOT", "PSL", "T200", "T500", "Z1000"])
    assert needed.missing == ("Z200",)


def test_the_preset_holds_the_defaults_of_the_code_and_the_coarse_one_differs_in_two() -> None:
    with initialize_config_dir(str(CONF), version_base=None):
        fine, coarse = compose("teca").candidates, compose("teca_coarse").candidates
    parameters = inspect.signature(teca_candidates).parameters.values()
    thresholds = {name: value for name, value in fine.items() if not name.startswith("_")}
    assert thresholds == {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
    assert {name for name in coarse if coarse[name] != fine[name]} == {"min_vorticity", "core_degrees"}


def test_the_coarse_preset_finds_jova_and_irwin_and_nothing_else_in_a_real_analysis(shared: Path) -> None:
    with initialize_config_dir(str(CONF), version_base=None):
        find = instantiate(compose("teca_coarse").candidates)
    ds = open_fields(shared / "gfs" / "gfs_20111011T00_2p5deg.nc", channels=list(needs_of(find).all_channels))
    fields = {str(name): values.values[0] for name, values in ds.data_vars.items()}
    storms = [c for c in find(Step(fields, ds["lat"].values, ds["lon"].values)) if not c.rejected_by]
    # As the fields have them: Jova 990 hPa at 17.5N 105W, Irwin 996 hPa at 17.5N 117.5W.
    assert [(c.lat, c.lon, round(c.psl / 100)) for c in storms] == [(17.5, 255.0, 990), (17.5, 242.5, 996)]


def test_storms_below_the_threshold_are_named_where_explanations_are_asked_for(shared: Path) -> None:
    ds = open_fields(shared / "gfs" / "gfs_20111011T00_2p5deg.nc", channels=list(needs_of(teca_candidates).channels))
    step = Step({str(n): v.values[0] for n, v in ds.data_vars.items()}, ds["lat"].values, ds["lon"].values)
    explained = teca_candidates(replace(step, explain=True))
    # Their vorticity on this grid is 1.3e-4 and 1.0e-4 1/s.
    for lon, vorticity in ((255.0, 1.33e-4), (242.5, 1.01e-4)):
        (storm,) = [c for c in explained if abs(c.lat - 17.5) < 3 and abs(c.lon - lon) < 3]
        assert "vorticity" in storm.rejected_by
        assert storm.measures["vorticity_per_s"] == pytest.approx(vorticity, rel=0.01)
    assert [c for c in explained if "vorticity" not in c.rejected_by] == teca_candidates(step)
