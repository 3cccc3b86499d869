"""The cells marked for a storm, on vortices whose radii are known."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hydra import compose, initialize_config_dir
from scipy import ndimage

from climseg import open_fields
from climseg.grid import EARTH_RADIUS, away_from, great_circle_distance, relative_vorticity
from climseg.labels.needs import needs_of
from climseg.labels.step import Candidate, Step, StormRegion
from climseg.labels.storm_regions import percentile_region, storm_radius, wind_disk

Fields = dict[str, np.ndarray]
Make = Callable[..., Fields]
LAT, LON = np.arange(-60.0, 60.125, 0.25), np.arange(0.0, 360.0, 0.25)
OPEN_LAT, OPEN_LON = np.arange(-10.0, 50.25, 0.5), np.arange(280.0, 340.25, 0.5)
CENTRE = (20.0, 310.0)
CONF = Path(__file__).parents[2] / "conf" / "labels" / "cyclones"


def candidate(lat: np.ndarray, lon: np.ndarray, place: tuple[float, float]) -> Candidate:
    row, column = int(np.abs(lat - place[0]).argmin()), int(np.abs(lon - place[1]).argmin())
    return Candidate(row, column, float(lat[row]), float(lon[column]))


def whole_grid(region: StormRegion, lat: np.ndarray, lon: np.ndarray) -> np.ndarray:
    mask = np.zeros((lat.size, lon.size), dtype=bool)
    mask[region.window.cells] = region.mask
    return mask


# The disk. A Rankine vortex turns like a solid out to rm, with vm there, and falls as 1/r beyond: v = 8 at vm rm / 8.


def rankine(r: np.ndarray, vm: float = 40.0, rm: float = 1.0) -> np.ndarray:
    return np.where(r < rm, vm * r / rm, vm * rm / np.maximum(r, rm))


def vortex(
    lat: np.ndarray,
    lon: np.ndarray,
    place: tuple[float, float] = CENTRE,
    profile: Callable[[np.ndarray], np.ndarray] = rankine,
    background: tuple[float, float] = (0.0, 0.0),
) -> Step:
    """A wind along circles round a place, cyclonic where the profile (of degrees of arc) is positive."""
    metres, east, north = away_from(*place, lat[:, None], lon[None, :])
    speed = profile(np.degrees(metres / EARTH_RADIUS)) * (1 if place[0] >= 0 else -1)
    return Step({"UBOT": background[0] - speed * north, "VBOT": background[1] + speed * east}, lat, lon)


def disk(step: Step, place: tuple[float, float] = CENTRE, **options: float) -> StormRegion:
    return wind_disk(step, candidate(step.lat, step.lon, place), **options)


@pytest.mark.parametrize("place", [CENTRE, (-20.0, 310.0), (35.0, 0.0), (10.0, 359.75)])
@pytest.mark.parametrize(("vm", "rm"), [(40.0, 1.0), (20.0, 2.0), (50.0, 0.5)])
def test_r8_of_a_rankine_vortex_is_vm_rm_over_8(place: tuple[float, float], vm: float, rm: float) -> None:
    region = disk(vortex(LAT, LON, place, lambda r: rankine(r, vm, rm)), place)
    assert region.radius == pytest.approx(vm * rm / 8, abs=0.03)


@pytest.mark.parametrize("place", [CENTRE, (-20.0, 0.0)])
def test_the_cells_within_the_radius_are_marked(place: tuple[float, float]) -> None:
    region = disk(vortex(LAT, LON, place), place)
    distance = np.degrees(great_circle_distance(*place, LAT[:, None], LON[None, :]) / EARTH_RADIUS)
    np.testing.assert_array_equal(whole_grid(region, LAT, LON), distance <= region.radius)


@pytest.mark.parametrize("wind", [(9.0, 0.0), (0.0, -9.0), (-6.0, 6.5)])
def test_a_wind_that_blows_over_the_storm_does_not_widen_it(wind: tuple[float, float]) -> None:
    step = vortex(LAT, LON, background=wind)
    # The mean speed falls below 8 m/s nowhere: it would give the largest radius.
    assert storm_radius(step, candidate(LAT, LON, CENTRE), 8.0, 10.0) == 10.0
    region = disk(step)
    # A uniform wind to the east turns a little on a sphere: by 9 tan(20 degrees)/R, 0.14 m/s at 5 degrees.
    assert region.radius == pytest.approx(5.0, abs=0.15)


@pytest.mark.parametrize("jet", [9.0, 60.0])
def test_a_jet_further_out_does_not_count(jet: float) -> None:
    region = disk(vortex(LAT, LON, profile=lambda r: rankine(r) + jet * (np.abs(r - 8.5) < 0.5)))
    assert region.radius == pytest.approx(5.0, abs=0.03)


@pytest.mark.parametrize("profile", [lambda r: -rankine(r), lambda r: rankine(r, 7.9)])
def test_a_storm_that_never_reaches_8_has_radius_0_and_no_cell(profile: Callable[[np.ndarray], np.ndarray]) -> None:
    region = disk(vortex(LAT, LON, profile=profile))
    assert region.radius == 0.0
    assert not region.mask.any()


def test_a_storm_that_falls_below_8_nowhere_has_the_largest_radius() -> None:
    region = disk(vortex(LAT, LON, profile=lambda r: rankine(r, 100.0)))
    assert region.radius == 10.0
    wider = disk(vortex(LAT, LON, profile=lambda r: rankine(r, 100.0)), max_radius_degrees=15.0)
    assert wider.radius == pytest.approx(12.5, abs=0.05)


@pytest.mark.parametrize(("spacing", "error"), [(0.5, 0.05), (1.0, 0.2), (2.5, 0.7)])
def test_rings_are_never_finer_than_the_grid(spacing: float, error: float) -> None:
    lat, lon = np.arange(-60.0, 60.1, spacing), np.arange(0.0, 360.0, spacing)
    region = disk(vortex(lat, lon))
    assert region.radius == pytest.approx(5.0, abs=error)


def test_on_an_open_grid_the_rings_that_are_seen_whole_decide_or_nothing_is_said() -> None:
    for lat, radius in ((43.0, 5.0), (47.0, np.nan), (-6.0, np.nan), (-4.0, 5.0)):
        region = disk(vortex(OPEN_LAT, OPEN_LON, (lat, 310.0)), (lat, 310.0))
        assert region.radius == pytest.approx(radius, abs=0.06, nan_ok=True)
        assert region.told == np.isfinite(radius)
    # No ring exceeds 8 m/s as far as can be seen: one beyond may.
    assert not disk(vortex(OPEN_LAT, OPEN_LON, (47.0, 310.0), lambda r: 0.0 * r), (47.0, 310.0)).told


def test_cells_that_may_be_of_a_storm_beyond_the_grid_are_those_as_far_as_is_looked() -> None:
    region = disk(vortex(OPEN_LAT, OPEN_LON, (47.0, 310.0)), (47.0, 310.0))
    there = OPEN_LAT[region.window.rows], OPEN_LON[region.window.columns]
    away = great_circle_distance(47.0, 310.0, there[0][:, None], there[1]) / EARTH_RADIUS
    np.testing.assert_array_equal(region.mask, away <= np.radians(10.0) + 1e-9)
    assert there[0].max() == 50.0


def test_a_roll_of_the_longitudes_rolls_the_disk() -> None:
    step = vortex(LAT, LON, (20.0, 100.0), background=(3.0, 2.0))
    plain = whole_grid(disk(step, (20.0, 100.0)), LAT, LON)
    rolled = Step({name: np.roll(field, 1039, axis=1) for name, field in step.fields.items()}, LAT, LON)
    np.testing.assert_array_equal(np.roll(plain, 1039, axis=1), whole_grid(disk(rolled, (20.0, 359.75)), LAT, LON))


def test_missing_winds_are_left_out_of_the_means() -> None:
    step = vortex(LAT, LON)
    for field in step.fields.values():
        field[LAT > 22.0] = np.nan
    region = disk(step)
    assert region.radius == pytest.approx(5.0, abs=0.05)


def test_katrina_has_its_vorticity_maximum_and_its_winds_where_they_were_seen(shared: Path) -> None:
    ds = open_fields(shared / "cfsr" / "katrina_cfsr_20050828T23.nc", channels=["UBOT", "VBOT"])
    lat, lon = ds["lat"].values.astype(np.float64), ds["lon"].values.astype(np.float64)
    step = Step({name: ds[name].values[0] for name in ("UBOT", "VBOT")}, lat, lon)
    vorticity = relative_vorticity(step.fields["UBOT"], step.fields["VBOT"], lat, lon)
    row, column = np.unravel_index(np.nanargmax(vorticity), vorticity.shape)
    assert abs(lat[row] - 27.4) < 0.32
    assert abs(lon[column] - (360 - 89.5)) < 0.32
    region = wind_disk(step, Candidate(int(row), int(column), float(lat[row]), float(lon[column])))
    # The National Hurricane Center had winds of tropical storm force (17.5 m/s) out to 230 miles, 3.3 degrees, where
    # they reached furthest: the mean falls to 8 m/s further out than that.
    assert 3.3 < region.radius < 6.0


# What is extreme round a storm. The wind of the made storm, 40 m/s times 2x / (1 + x^2), is 17.5 m/s at x = 4.34.
R0 = (2 + np.sqrt(4 - 4 * 0.4375**2)) / (2 * 0.4375)


def extremes(
    fields: Fields, place: tuple[float, float], lat: np.ndarray = OPEN_LAT, lon: np.ndarray = OPEN_LON, **options: float
) -> StormRegion:
    return percentile_region(Step(fields, lat, lon), candidate(lat, lon, place), **options)


def test_the_radius_is_where_the_mean_wind_falls_below_the_threshold(stormy: Make) -> None:
    step = Step(stormy(OPEN_LAT, OPEN_LON, [CENTRE]), OPEN_LAT, OPEN_LON)
    storm = candidate(OPEN_LAT, OPEN_LON, CENTRE)
    assert storm_radius(step, storm, 17.5, 6.0) == pytest.approx(R0, abs=0.1)
    assert storm_radius(step, storm, 50.0, 6.0) == 0.0
    assert storm_radius(step, storm, 5.0, 6.0) == 6.0
    assert storm_radius(step, storm, 17.5, 31.0) is None


def test_the_region_is_what_a_plain_reading_of_the_definition_marks(stormy: Make) -> None:
    fields = stormy(OPEN_LAT, OPEN_LON, [CENTRE])
    half = R0 + 6.6
    rows, columns = np.abs(OPEN_LAT - 20.0) <= half, np.abs(OPEN_LON - 310.0) <= half
    cells = np.ix_(rows, columns)

    def largest(mask: np.ndarray) -> np.ndarray:
        labels, _ = ndimage.label(mask, np.ones((3, 3)))
        return labels == np.argmax(np.bincount(labels[mask]))

    union = np.zeros((rows.sum(), columns.sum()), dtype=bool)
    for values in (fields["TMQ"], np.abs(fields["U850"]), np.abs(fields["V850"]), fields["PRECT"]):
        union |= largest(values[cells] > np.percentile(values[cells], 93))
    expected = np.zeros((OPEN_LAT.size, OPEN_LON.size), dtype=bool)
    expected[cells] = largest(union)
    region = extremes(fields, CENTRE)
    assert region.radius == pytest.approx(R0, abs=0.1)
    assert expected.sum() > 100
    np.testing.assert_array_equal(whole_grid(region, OPEN_LAT, OPEN_LON), expected)


def test_a_region_over_the_seam_is_like_any_other(stormy: Make) -> None:
    lat, lon = np.arange(-10.0, 50.25, 0.5), np.arange(0.0, 360.0, 0.5)

    def marked(column: int) -> np.ndarray:
        place = (20.0, float(lon[column]))
        return whole_grid(extremes(stormy(lat, lon, [place]), place, lat, lon), lat, lon)

    inland = marked(360)
    for column in (0, 1, 719):
        assert marked(column)[:, 0].any()
        assert marked(column)[:, -1].any()
        np.testing.assert_array_equal(marked(column), np.roll(inland, column - 360, axis=1))


def test_hemispheres_mirror_each_other(stormy: Make) -> None:
    lat = np.arange(-50.0, 50.25, 0.5)
    north, south = (
        whole_grid(extremes(stormy(lat, OPEN_LON, [place]), place, lat), lat, OPEN_LON)
        for place in (CENTRE, (-20.0, 310.0))
    )
    assert north.any()
    np.testing.assert_array_equal(north, south[::-1])


@pytest.mark.parametrize("place", [(46.0, 310.0), (42.0, 310.0), (20.0, 282.0), (20.0, 289.0)])
def test_a_box_beyond_an_open_grid_leaves_its_cells_untold(place: tuple[float, float], stormy: Make) -> None:
    # 289 is far enough from the rim for the radius, but not for the box.
    assert not extremes(stormy(OPEN_LAT, OPEN_LON, [place]), place).told


def test_a_box_without_any_precipitation_value_still_gives_a_region(stormy: Make) -> None:
    fields = stormy(OPEN_LAT, OPEN_LON, [CENTRE])
    fields["PRECT"][:] = np.nan
    region = extremes(fields, CENTRE)
    assert region.mask.any()


# Channels and presets.


def test_what_the_regions_need() -> None:
    assert needs_of(wind_disk).channels == ("UBOT", "VBOT")
    assert set(needs_of(percentile_region).channels) == {"TMQ", "U850", "V850", "PRECT", "UBOT", "VBOT"}


@pytest.mark.parametrize(("preset", "function"), [("teca", percentile_region), ("tempestextremes", wind_disk)])
def test_the_presets_hold_the_defaults_of_the_code(preset: str, function: Callable[..., Any]) -> None:
    with initialize_config_dir(str(CONF), version_base=None):
        region = compose(preset).region
    assert region["_target_"] == f"{function.__module__}.{function.__name__}"
    parameters = inspect.signature(function).parameters.values()
    options = {name: value for name, value in region.items() if not name.startswith("_")}
    assert options == {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
