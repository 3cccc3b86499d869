"""TempestExtremes' criteria on storms of known shape, broken one at a time, and on a real analysis."""

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate

from climseg import open_fields
from climseg.grid import EARTH_RADIUS, great_circle_distance
from climseg.labels.cyclones_tempestextremes import surface_height, tempestextremes_candidates
from climseg.labels.needs import needs_of
from climseg.labels.step import Candidate, Step

Fields = dict[str, np.ndarray]
LAT, LON = np.arange(-10.0, 70.25, 0.5), np.arange(280.0, 340.25, 0.5)
GLOBAL_LAT, GLOBAL_LON = np.arange(-90.0, 91.0), np.arange(360.0)
CENTRE = (20.0, 310.0)
CONF = Path(__file__).parents[2] / "conf" / "labels" / "cyclones"
Make = Callable[..., Fields]


def bump(lat: np.ndarray, lon: np.ndarray, centre: tuple[float, float], width: float = 1.5) -> np.ndarray:
    metres = great_circle_distance(*centre, lat[:, None], lon[None, :])
    return np.exp(-((np.degrees(metres / EARTH_RADIUS) / width) ** 2))


@pytest.fixture
def made(stormy: Make) -> Make:
    """``made(lat, lon, centres, **storm)``: made storms over a sea of 300 K."""

    def make(lat: np.ndarray, lon: np.ndarray, centres: list[tuple[float, float]], **storm: Any) -> Fields:
        fields = stormy(lat, lon, centres, **storm)
        return fields | {"PS": fields["PSL"].copy(), "TREFHT": np.full(fields["PSL"].shape, 300.0)}

    return make


def minima(fields: Fields, lat: np.ndarray, lon: np.ndarray, **thresholds: Any) -> list[Candidate]:
    return tempestextremes_candidates(Step(fields, lat, lon), **thresholds)


def storms(fields: Fields, lat: np.ndarray, lon: np.ndarray, **thresholds: Any) -> list[tuple[float, float]]:
    return [(c.lat, c.lon) for c in minima(fields, lat, lon, **thresholds) if not c.rejected_by]


def at(found: list[Candidate], place: tuple[float, float]) -> Candidate:
    (candidate,) = [c for c in found if (c.lat, c.lon) == place]
    return candidate


def test_a_made_hurricane_is_a_candidate_with_the_values_it_was_made_with(made: Make) -> None:
    storm = minima(made(LAT, LON, [CENTRE]), LAT, LON)[0]
    assert storm.rejected_by == ()
    assert (storm.lat, storm.lon) == CENTRE == (LAT[storm.row], LON[storm.column])
    assert storm.psl == 101_300 - 3000
    assert storm.wind == pytest.approx(40.0, rel=0.01)
    assert storm.measures["core_k"] == 240.0 + 4.0
    assert storm.measures["height_m"] == 0.0


@pytest.mark.parametrize(
    ("broken", "criterion"),
    [
        ({"depth": 199.0}, "closed contour"),
        ({"warmth": 0.59}, "warm core"),
        ({"warm_at": (20.0, 312.0)}, "warm core"),
        ({"surface_wind": 9.9}, "wind"),
    ],
)
def test_each_broken_criterion_rejects_and_is_named(broken: dict[str, Any], criterion: str, made: Make) -> None:
    storm = at(minima(made(LAT, LON, [CENTRE], **broken), LAT, LON), CENTRE)
    assert storm.rejected_by == (criterion,)


@pytest.mark.parametrize(
    ("weak", "threshold"),
    [
        ({"depth": 199.0}, {"pressure_rise_pa": 190.0}),
        ({"warmth": 0.59}, {"temperature_fall_k": 0.55}),
        ({"warm_at": (20.0, 312.0)}, {"temperature_degrees": 2.0}),
        ({"surface_wind": 9.9}, {"min_wind": 9.0}),
    ],
)
def test_each_threshold_can_be_relaxed(weak: dict[str, Any], threshold: dict[str, float], made: Make) -> None:
    fields = made(LAT, LON, [CENTRE], **weak)
    assert CENTRE not in storms(fields, LAT, LON)
    assert CENTRE in storms(fields, LAT, LON, **threshold)


@pytest.mark.parametrize(("depth", "closed"), [(201.0, True), (199.0, False)])
def test_the_contour_is_2_hpa_above_the_minimum(depth: float, closed: bool, made: Make) -> None:
    storm = at(minima(made(LAT, LON, [CENTRE], depth=depth), LAT, LON), CENTRE)
    assert (storm.rejected_by == ()) is closed


def test_what_a_track_asks_for_is_named_and_does_not_keep_the_rest_from_being_measured(made: Make) -> None:
    northern = (52.0, 310.0)
    fields = made(LAT, LON, [northern], surface_wind=9.0)
    fields["PS"] -= 2000.0  # about 170 m
    storm = at(minima(fields, LAT, LON), northern)
    assert storm.rejected_by == ("wind", "latitude", "height")
    assert storm.wind == pytest.approx(9.0, rel=0.01)
    assert 150 < storm.measures["height_m"] < 200
    assert northern in storms(fields, LAT, LON, min_wind=8.0, max_latitude=55.0, max_height_m=None)


def test_a_cold_low_of_middle_latitudes_is_rejected_by_its_core(made: Make) -> None:
    fields = made(LAT, LON, [])
    low = bump(LAT, LON, (45.0, 310.0), 4.0)
    fields["PSL"] = fields["PSL"] - 3000.0 * low
    fields["T500"] = fields["T500"] - 6.0 * low
    assert at(minima(fields, LAT, LON, min_wind=0.0), (45.0, 310.0)).rejected_by == ("warm core",)


# The warm core and what stands in for it.


def heights(fall: float) -> Fields:
    return {"Z300": 9600.0 + fall * bump(LAT, LON, CENTRE), "Z500": np.full((LAT.size, LON.size), 5800.0)}


@pytest.mark.parametrize(("fall", "warm"), [(6.1, True), (5.9, False)])
def test_the_heights_at_300_and_500_hpa_decide_where_they_are(fall: float, warm: bool, made: Make) -> None:
    # The temperatures say the opposite.
    fields = made(LAT, LON, [CENTRE], warmth=0.0 if warm else 4.0) | heights(fall)
    storm = at(minima(fields, LAT, LON), CENTRE)
    assert storm.rejected_by == (() if warm else ("warm core",))
    assert storm.measures["core_m"] == pytest.approx(3800.0 + fall)
    assert "core_k" not in storm.measures


@pytest.mark.parametrize(("fall", "warm"), [(51.0, True), (49.0, False)])
def test_the_thickness_decides_where_nothing_else_is_there(fall: float, warm: bool, made: Make) -> None:
    fields = made(LAT, LON, [CENTRE], thickening=fall)
    del fields["T200"]
    storm = at(minima(fields, LAT, LON), CENTRE)
    assert storm.rejected_by == (() if warm else ("warm core",))
    assert storm.measures["core_m"] == pytest.approx(11_900.0 + fall)


def test_the_core_may_lie_a_degree_away_by_heights_and_its_contour_goes_round_its_top(made: Make) -> None:
    fields = made(LAT, LON, [CENTRE], warmth=0.0) | heights(0.0)
    fields["Z300"] = 9600.0 + 12.0 * bump(LAT, LON, (21.0, 310.0))
    storm = at(minima(fields, LAT, LON), CENTRE)
    assert storm.rejected_by == ()
    assert storm.measures["core_m"] == pytest.approx(3812.0)


def test_the_core_is_not_sought_across_the_equator(made: Make) -> None:
    lat = np.arange(-40.0, 40.25, 0.5)
    fields = made(lat, LON, [(0.5, 310.0)])
    fields["Z300"] = 9600.0 + 100.0 * bump(lat, LON, (-0.5, 310.0))
    fields["Z500"] = np.full((lat.size, LON.size), 5800.0)
    storm = at(minima(fields, lat, LON), (0.5, 310.0))
    # The equator itself, half a degree from the top.
    assert storm.measures["core_m"] == pytest.approx(3800.0 + 100.0 * np.exp(-((0.5 / 1.5) ** 2)))


def test_what_is_needed_and_what_stands_in_is_said() -> None:
    basis = ["PSL", "UBOT", "VBOT", "PS", "TREFHT"]
    needed = needs_of(tempestextremes_candidates)
    heights_at_hand = needed.settle([*basis, "Z300", "Z500", "T200", "T500"])
    assert (heights_at_hand.channels, heights_at_hand.stand_ins) == ((*basis, "Z300", "Z500"), ())
    cam = needed.settle([*basis, "T200", "T500", "Z200", "Z1000"])
    assert cam.channels == (*basis, "T200", "T500")
    assert cam.stand_ins == ("(T200 + T500)/2 in place of Z300 - Z500",)
    assert needed.settle([*basis, "Z200", "Z1000"]).stand_ins == ("Z200 - Z1000 in place of Z300 - Z500",)
    assert needed.settle([*basis, "T500"]).missing == ("Z300", "Z500")
    without_height = functools.partial(tempestextremes_candidates, max_height_m=None, min_wind=12.0)
    assert needs_of(without_height).channels == ("PSL", "UBOT", "VBOT")


# Merging.


@pytest.mark.parametrize(("apart", "merged"), [(5.5, True), (6.5, False)])
def test_of_two_minima_within_6_degrees_the_lower_stays(apart: float, merged: bool, made: Make) -> None:
    fields, other = made(LAT, LON, [CENTRE]), (20.0 + apart, 310.0)
    fields["PSL"] = fields["PSL"] - 2500.0 * bump(LAT, LON, other)
    found = minima(fields, LAT, LON)
    assert at(found, CENTRE).rejected_by == ()
    assert (at(found, other).rejected_by == ("merged",)) is merged
    assert bool(np.isnan(at(found, other).wind)) is merged


def test_merging_comes_before_the_contours_even_where_the_lower_one_is_no_storm(made: Make) -> None:
    fields = made(LAT, LON, [CENTRE])
    # A valley 35 hPa deep, along which the pressure rises by less than a hectopascal in 5.5 degrees.
    valley = np.exp(-(((LAT - 25.0) / 0.7) ** 2))[:, None] * np.exp(-(((LON - 310.0) / 40.0) ** 2))[None, :]
    fields["PSL"] = fields["PSL"] - 3500.0 * valley
    found = minima(fields, LAT, LON)
    assert at(found, (25.0, 310.0)).rejected_by == ("closed contour",)
    assert at(found, CENTRE).rejected_by == ("merged",)
    assert CENTRE in storms(fields, LAT, LON, merge_degrees=4.0)


@pytest.mark.parametrize("west", [100, 356, 359])
def test_of_two_equal_minima_the_western_stays_wherever_the_longitudes_start(west: int, made: Make) -> None:
    places = [(20.0, float(west)), (20.0, (west + 5.0) % 360)]
    fields = made(GLOBAL_LAT, GLOBAL_LON, [places[0]])
    mirrored = np.roll(fields["PSL"], 5, axis=1)
    fields["PSL"] = np.minimum(fields["PSL"], mirrored)
    found = minima(fields, GLOBAL_LAT, GLOBAL_LON)
    assert at(found, places[0]).rejected_by == ()
    assert at(found, places[1]).rejected_by == ("merged",)


def test_of_two_equal_minima_the_one_nearer_the_equator_stays(made: Make) -> None:
    fields = made(LAT, LON, [CENTRE])
    fields["PSL"] = np.minimum(fields["PSL"], 101_300.0 - 3000.0 * bump(LAT, LON, (25.0, 308.0)))
    assert at(minima(fields, LAT, LON), (25.0, 308.0)).rejected_by == ("merged",)
    assert at(minima(fields, LAT, LON), CENTRE).rejected_by == ()


@pytest.mark.parametrize("column", [100, 358, 359, 0])
def test_a_plateau_counts_once_and_its_middle_is_the_place(column: int, made: Make) -> None:
    fields = made(GLOBAL_LAT, GLOBAL_LON, [(20.0, float(column))])
    around = np.arange(column - 1, column + 2) % 360
    fields["PSL"][np.ix_([109, 110, 111], around)] = 95_000.0
    found = minima(fields, GLOBAL_LAT, GLOBAL_LON, merge_degrees=0.0)
    assert [(c.lat, c.lon) for c in found if c.psl == 95_000] == [(20.0, float(column))]


def test_still_air_is_one_plateau_and_no_storm(made: Make) -> None:
    (flat,) = minima(made(GLOBAL_LAT, GLOBAL_LON, []), GLOBAL_LAT, GLOBAL_LON)
    assert flat.rejected_by == ("closed contour",)


# The sphere.


@pytest.mark.parametrize("shift", [1, 77, 259, 260])
def test_a_roll_of_the_longitudes_rolls_the_candidates(shift: int, made: Make) -> None:
    fields = made(GLOBAL_LAT, GLOBAL_LON, [(20.0, 100.0), (-15.0, 200.0), (23.0, 104.0)])
    noise = np.random.default_rng(3).standard_normal(fields["PSL"].shape)
    noise[[0, -1]] = 0.0
    fields["PSL"] = fields["PSL"] + 5.0 * noise
    rolled = {name: np.roll(values, shift, axis=1) for name, values in fields.items()}
    plain, again = minima(fields, GLOBAL_LAT, GLOBAL_LON), minima(rolled, GLOBAL_LAT, GLOBAL_LON)
    assert len(plain) > 100
    assert {(c.row, (c.column + shift) % 360, c.psl, c.rejected_by) for c in plain} == {
        (c.row, c.column, c.psl, c.rejected_by) for c in again
    }
    assert sum(not c.rejected_by for c in plain) == 2


def test_hemispheres_mirror_each_other(made: Make) -> None:
    for centre in (CENTRE, (-20.0, 310.0)):
        lat = LAT if centre[0] > 0 else -LAT[::-1]
        assert storms(made(lat, LON, [centre]), lat, LON) == [centre]


@pytest.mark.parametrize(
    ("name", "criterion"), [("PSL", "closed contour"), ("T500", "warm core"), ("UBOT", "wind"), ("TREFHT", "height")]
)
def test_a_missing_value_fails_the_criterion_that_meets_it(name: str, criterion: str, made: Make) -> None:
    fields = made(LAT, LON, [CENTRE])
    # The height is that of the minimum itself.
    row = int(np.flatnonzero(LAT == 20.0)[0]) + (name != "TREFHT")
    fields[name][row, LON == 310.0] = np.nan
    assert at(minima(fields, LAT, LON), CENTRE).rejected_by == (criterion,)


@pytest.mark.parametrize("centre", [(-9.0, 310.0), (69.0, 310.0), (20.0, 281.0), (20.0, 339.0)])
def test_a_storm_whose_winds_reach_beyond_an_open_grid_is_not_judged(centre: tuple[float, float], made: Make) -> None:
    assert at(minima(made(LAT, LON, [centre]), LAT, LON), centre).rejected_by == ("leaves the grid",)


def test_a_contour_that_leaves_an_open_grid_is_not_closed(made: Make) -> None:
    # 250 Pa deep and 4 degrees wide: the contour of 200 Pa lies 5.07 degrees from the middle.
    for lat, rejected_by in ((20.0, ()), (-6.0, ("leaves the grid",))):
        fields = made(LAT, LON, [(lat, 310.0)], depth=0.0)
        fields["PSL"] = fields["PSL"] - 250.0 * bump(LAT, LON, (lat, 310.0), 4.0)
        assert at(minima(fields, LAT, LON, pressure_degrees=6.0), (lat, 310.0)).rejected_by == rejected_by


def test_a_slope_that_ends_at_the_rim_of_an_open_grid_is_no_minimum(made: Make) -> None:
    fields = made(LAT, LON, [CENTRE])
    fields["PSL"] = fields["PSL"] + 100.0 * (LON - LON[0])[None, :]
    assert min(c.column for c in minima(fields, LAT, LON)) > 0


# The surface height.


@pytest.mark.parametrize(("pressure", "temperature", "height"), [(85_000, 278.68, 1457), (50_000, 251.92, 5574)])
def test_the_surface_height_is_that_of_the_standard_atmosphere(
    pressure: float, temperature: float, height: float
) -> None:
    assert surface_height(np.array(pressure), np.array(101_325.0), np.array(temperature)) == pytest.approx(
        height, abs=1.5
    )


# The preset and a real analysis.


def test_the_preset_holds_the_defaults_of_the_code_and_is_complete() -> None:
    with initialize_config_dir(str(CONF), version_base=None):
        preset = compose("tempestextremes").candidates
    parameters = inspect.signature(tempestextremes_candidates).parameters.values()
    thresholds = {name: value for name, value in preset.items() if not name.startswith("_")}
    assert thresholds == {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}


@pytest.mark.parametrize("absent", [(), ("T200", "T500")])
def test_jova_and_irwin_and_nothing_else_are_found_in_a_real_analysis(absent: tuple[str, ...], shared: Path) -> None:
    with initialize_config_dir(str(CONF), version_base=None):
        find = instantiate(compose("tempestextremes").candidates)
    channels = needs_of(find).settle(["PSL", "UBOT", "VBOT", "PS", "TREFHT", "T200", "T500", "Z200", "Z1000"]).channels
    if absent:
        channels = (*(c for c in channels if c not in absent), "Z200", "Z1000")
    ds = open_fields(shared / "gfs" / "gfs_20111011T00_2p5deg.nc", channels=list(channels))
    fields = {str(name): values.values[0] for name, values in ds.data_vars.items()}
    found = [c for c in find(Step(fields, ds["lat"].values, ds["lon"].values)) if not c.rejected_by]
    # As the fields have them: Jova 990 hPa at 17.5N 105W, Irwin 996 hPa at 17.5N 117.5W.
    assert [(c.lat, c.lon, round(c.psl / 100)) for c in found] == [(17.5, 255.0, 990), (17.5, 242.5, 996)]
