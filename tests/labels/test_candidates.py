"""TECA's criteria on storms of known shape, broken one at a time."""

from collections.abc import Callable

import numpy as np
import pytest

from climseg.labels.candidates import teca_candidates

Fields = dict[str, np.ndarray]
LAT, LON = np.arange(-10.0, 50.25, 0.5), np.arange(280.0, 340.25, 0.5)
CENTRE = (20.0, 310.0)


def test_a_made_hurricane_is_a_candidate_with_the_values_it_was_made_with(stormy: Callable[..., Fields]) -> None:
    (storm,) = teca_candidates(stormy(LAT, LON, [CENTRE]), LAT, LON)
    assert storm.rejected_by == ()
    assert (storm.lat, storm.lon) == CENTRE
    assert (LAT[storm.row], LON[storm.column]) == CENTRE
    assert storm.psl == pytest.approx(101_300 - 3000)
    # The Gaussians at the end of the rays.
    assert storm.pressure_rise == pytest.approx(3000 * (1 - np.exp(-((5 / 1.5) ** 2))), rel=1e-3)
    assert storm.core_fall == pytest.approx(4 * (1 - np.exp(-((5 / 1.5) ** 2))), rel=1e-3)
    assert storm.thickness_fall == pytest.approx(200 * (1 - np.exp(-((4 / 1.5) ** 2))), rel=1e-3)
    assert storm.wind == pytest.approx(40.0, rel=0.01)
    # 4 v/R at the centre of this profile, less what centred differences over a degree smooth away.
    assert 0.75 < storm.vorticity / (4 * 40.0 / np.radians(1) / 6_371_220) < 1.0


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
    (storm,) = teca_candidates(stormy(LAT, LON, [CENTRE], **broken), LAT, LON)
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
    assert [c for c in teca_candidates(fields, LAT, LON) if not c.rejected_by] == []
    assert len([c for c in teca_candidates(fields, LAT, LON, **threshold) if not c.rejected_by]) == 1


def test_weak_vorticity_is_no_candidate_at_all(stormy: Callable[..., Fields]) -> None:
    assert teca_candidates(stormy(LAT, LON, [CENTRE], wind=5.0), LAT, LON) == []


def test_a_rise_in_seven_of_eight_directions_is_not_enough(stormy: Callable[..., Fields]) -> None:
    fields = stormy(LAT, LON, [CENTRE])
    east = np.abs(LAT - 20) < 0.6
    # A trough eastward: 3 hPa of rise only on that ray.
    fields["PSL"][np.ix_(east, LON > 310)] = np.minimum(fields["PSL"], 98_600.0)[np.ix_(east, LON > 310)]
    (storm,) = teca_candidates(fields, LAT, LON)
    assert storm.rejected_by == ("pressure rise",)
    assert storm.pressure_rise == pytest.approx(300.0, rel=0.01)


def test_a_storm_turns_clockwise_in_the_south(stormy: Callable[..., Fields]) -> None:
    south = -LAT[::-1]
    (storm,) = teca_candidates(stormy(south, LON, [(-20.0, 310.0)]), south, LON)
    assert storm.rejected_by == ()
    assert storm.vorticity > 0
    wrong = stormy(south, LON, [(-20.0, 310.0)], rotation=1)
    assert [c for c in teca_candidates(wrong, south, LON) if not c.rejected_by] == []


@pytest.mark.parametrize("lat", [0.0, -0.5, -1.0])
def test_a_vortex_across_the_equator_is_no_storm(lat: float, stormy: Callable[..., Fields]) -> None:
    rows = np.arange(-30.0, 30.25, 0.5)
    found = teca_candidates(stormy(rows, LON, [(lat, 310.0)], rotation=1), rows, LON)
    assert [c for c in found if not c.rejected_by] == []


def test_of_two_maxima_in_one_window_the_stronger_counts(stormy: Callable[..., Fields]) -> None:
    fields, other = stormy(LAT, LON, [CENTRE]), stormy(LAT, LON, [(20.0, 313.5)], wind=20.0)
    for name in ("U850", "V850"):
        fields[name] = fields[name] + other[name]
    assert [(c.lat, c.lon) for c in teca_candidates(fields, LAT, LON)] == [CENTRE]
    # With a narrower window the weaker one counts as well.
    assert len(teca_candidates(fields, LAT, LON, window_degrees=4.0)) == 2


@pytest.mark.parametrize("centre", [(44.0, 310.0), (20.0, 285.0), (20.0, 336.0), (47.0, 310.0), (20.0, 281.0)])
def test_a_storm_at_the_edge_of_an_open_grid_is_not_judged(
    centre: tuple[float, float], stormy: Callable[..., Fields]
) -> None:
    (storm,) = teca_candidates(stormy(LAT, LON, [centre]), LAT, LON)
    assert storm.rejected_by == ("leaves the grid",)


def test_maxima_near_a_pole_are_no_candidates(stormy: Callable[..., Fields]) -> None:
    lat, lon = np.arange(50.0, 90.25, 0.5), np.arange(0.0, 360.0, 0.5)
    fields = stormy(lat, lon, [(75.0, 100.0)])
    assert len(teca_candidates(fields, lat, lon)) == 1
    assert teca_candidates(fields, lat, lon, max_latitude=70.0) == []


@pytest.mark.parametrize(("name", "criterion"), [("PSL", "pressure rise"), ("T500", "warm core"), ("UBOT", "wind")])
def test_a_missing_value_fails_the_criterion_that_meets_it(
    name: str, criterion: str, stormy: Callable[..., Fields]
) -> None:
    fields = stormy(LAT, LON, [CENTRE])
    fields[name][LAT == 23.0, LON == 310.0] = np.nan
    (storm,) = teca_candidates(fields, LAT, LON)
    assert storm.rejected_by == (criterion,)


def test_still_air_has_no_candidates(stormy: Callable[..., Fields]) -> None:
    assert teca_candidates(stormy(LAT, LON, []), LAT, LON) == []
