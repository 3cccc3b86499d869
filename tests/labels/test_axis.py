"""Axes of bands whose length is known."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from climseg.grid import cell_area, great_circle_distance, unit_vectors
from climseg.labels.axis import Axis, measure_axis

R = 6_371_220.0
KM_PER_DEGREE = np.radians(R) / 1e3
QUARTER = np.linspace(-90.0, 90.0, 721), np.arange(1440) * 0.25
WHOLE = np.arange(-89.5, 90.0), np.arange(0.5, 360.0)
Grid = tuple[np.ndarray, np.ndarray]
Inside = Callable[[np.ndarray, np.ndarray], np.ndarray]
grids = pytest.mark.parametrize("grid", [QUARTER, WHOLE], ids=["0.25", "1"])


def axis_of(mask: np.ndarray, grid: Grid, weights: np.ndarray | None = None) -> Axis:
    rows, columns = np.nonzero(mask)
    values = np.ones(rows.size) if weights is None else weights[rows, columns]
    return measure_axis(rows, columns, values, *grid)


def where(inside: Inside, grid: Grid) -> np.ndarray:
    lat, lon = np.broadcast_arrays(grid[0][:, None], grid[1][None, :])
    return np.asarray(inside(lat, lon))


def round_a_point(lat: float, lon: float) -> Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Distance in km from a point and azimuth there in degrees, of other points."""
    centre = unit_vectors(lat, lon)
    east = np.array([-np.sin(np.radians(lon)), np.cos(np.radians(lon)), 0.0])
    north = np.cross(centre, east)

    def polar(lats: np.ndarray, lons: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        points = unit_vectors(lats, lons)
        return great_circle_distance(lat, lon, lats, lons) / 1e3, np.degrees(
            np.arctan2(points @ east, points @ north)
        ) % 360.0

    return polar


def along_a_great_circle(
    bearing: float, length: float, half_width: float, lat: float = 20.0, lon: float = 180.0
) -> Inside:
    """A band from a point on, all in km but the bearing there."""
    start = unit_vectors(lat, lon)
    east = np.array([-np.sin(np.radians(lon)), np.cos(np.radians(lon)), 0.0])
    ahead = np.sin(np.radians(bearing)) * east + np.cos(np.radians(bearing)) * np.cross(start, east)
    side = np.cross(start, ahead)

    def inside(lats: np.ndarray, lons: np.ndarray) -> np.ndarray:
        points = unit_vectors(lats, lons)
        across = np.arcsin(points @ side) * R / 1e3
        along = np.arctan2(points @ ahead, points @ start) * R / 1e3
        return (np.abs(across) < half_width) & (along > 0) & (along < length)

    return inside


@grids
@pytest.mark.parametrize("west", [100.0, 356.0])
def test_a_band_along_a_meridian_is_as_long_as_its_latitudes_wherever_the_seam_is(grid: Grid, west: float) -> None:
    mask = where(lambda lat, lon: (lat > 20) & (lat < 60) & ((lon - west) % 360 < 8) & ((lon - west) % 360 > 0), grid)
    axis = axis_of(mask, grid)
    assert axis.length / 1e3 == pytest.approx(40 * KM_PER_DEGREE, rel=0.01)
    assert abs((axis.bearing + 90) % 180 - 90) < 2
    assert np.abs((axis.lon - west - 4 + 180) % 360 - 180).max() < 1.5
    width = cell_area(*grid)[mask].sum() / axis.length / 1e3
    # The area between two latitudes over the length.
    exact = (R / 1e3) ** 2 * np.radians(8) * (np.sin(np.radians(60)) - 0.34202) / (40 * KM_PER_DEGREE)
    assert width == pytest.approx(exact, rel=0.04)


@grids
def test_a_band_along_a_parallel_is_as_long_as_the_parallel_and_not_the_great_circle(grid: Grid) -> None:
    axis = axis_of(where(lambda lat, lon: (lat > 38) & (lat < 42) & (lon > 200) & (lon < 260), grid), grid)
    parallel = 60 * KM_PER_DEGREE * np.cos(np.radians(40))
    assert axis.length / 1e3 == pytest.approx(parallel, rel=0.005)
    assert axis.bearing == pytest.approx(90.0, abs=1.0)
    np.testing.assert_allclose(axis.lat, 40.0, atol=0.5)


@grids
@pytest.mark.parametrize("bearing", [20.0, 45.0, 70.0, 120.0])
@pytest.mark.parametrize("half_width", [250.0, 400.0, 700.0])
def test_an_oblique_band_is_as_long_as_its_great_circle(grid: Grid, bearing: float, half_width: float) -> None:
    axis = axis_of(where(along_a_great_circle(bearing, 4000.0, half_width), grid), grid)
    assert axis.length / 1e3 == pytest.approx(4000.0, rel=0.015)
    # The bearing in the middle: sin(bearing) cos(lat) is constant along a great circle (Clairaut).
    lat = np.radians(20)
    half = 2000.0 / (R / 1e3)
    middle = np.arcsin(np.sin(lat) * np.cos(half) + np.cos(lat) * np.sin(half) * np.cos(np.radians(bearing)))
    sine = np.sin(np.radians(bearing)) * np.cos(lat) / np.cos(middle)
    expected = np.degrees(np.arcsin(min(sine, 1.0)))
    expected = expected if bearing < 90 else 180 - expected
    assert abs((axis.bearing - expected + 90) % 180 - 90) < 3


@grids
def test_a_curved_band_is_as_long_as_its_arc(grid: Grid) -> None:
    polar = round_a_point(45.0, 200.0)

    def inside(lat: np.ndarray, lon: np.ndarray) -> np.ndarray:
        distance, azimuth = polar(lat, lon)
        return (np.abs(distance - 1500) < 250) & (azimuth > 90) & (azimuth < 290)

    axis = axis_of(where(inside, grid), grid)
    arc = np.sin(1500 / (R / 1e3)) * R / 1e3 * np.radians(200)
    assert axis.length / 1e3 == pytest.approx(arc, rel=0.015)
    distance, _ = polar(axis.lat, axis.lon)
    assert np.abs(distance - 1500).max() < 150


@grids
def test_a_round_region_is_about_as_long_as_wide(grid: Grid) -> None:
    mask = where(lambda lat, lon: great_circle_distance(40, 200, lat, lon) < 1e6, grid)
    axis = axis_of(mask, grid)
    assert axis.length == pytest.approx(2e6, rel=0.12)
    assert axis.length / (cell_area(*grid)[mask].sum() / axis.length) < 1.5


@grids
def test_a_band_near_the_pole_is_measured_like_others(grid: Grid) -> None:
    polar = where(along_a_great_circle(0.0, 2400.0, 200.0, lat=67.0, lon=0.0), grid)
    assert axis_of(polar, grid).length / 1e3 == pytest.approx(2400.0, rel=0.02)


def test_a_single_cell_and_a_single_file_of_cells_have_their_length() -> None:
    lat, lon = WHOLE
    one = measure_axis(np.array([120]), np.array([30]), np.ones(1), lat, lon)
    assert one.lat.tolist() == pytest.approx([30.5])
    assert one.lon.tolist() == pytest.approx([30.5])
    assert one.length < 200e3
    file = measure_axis(np.arange(100, 130), np.full(30, 359), np.ones(30), lat, lon)
    assert file.length == pytest.approx(R * np.radians(30), rel=0.005)
    assert file.bearing == pytest.approx(0.0, abs=1e-6)


def test_the_axis_follows_the_weights() -> None:
    mask = where(lambda lat, lon: (lat > 30) & (lat < 42) & (lon > 200) & (lon < 260), QUARTER)
    weights = np.where(QUARTER[0] > 38, 100.0, 1.0)[:, None] * np.ones(1440)
    assert axis_of(mask, QUARTER, weights).lat.mean() > axis_of(mask, QUARTER).lat.mean() + 2.5


@settings(max_examples=20, deadline=None)
@given(shift=st.integers(0, 359), bearing=st.floats(0.0, 180.0), seed=st.integers(0, 100))
def test_it_does_not_depend_on_where_the_seam_is_bit_for_bit(shift: int, bearing: float, seed: int) -> None:
    mask = where(along_a_great_circle(bearing, 3000.0, 300.0), WHOLE)
    weights = np.random.default_rng(seed).random(mask.shape) + 0.1
    axis = axis_of(mask, WHOLE, weights)
    rolled = axis_of(np.roll(mask, shift, axis=1), WHOLE, np.roll(weights, shift, axis=1))
    assert (rolled.length, rolled.bearing) == (axis.length, axis.bearing)
    np.testing.assert_array_equal(rolled.lat, axis.lat)
    np.testing.assert_allclose((rolled.lon - axis.lon - shift + 180) % 360, 180.0, atol=1e-9)


def test_a_region_round_a_pole_and_the_whole_globe_are_measured_without_failing() -> None:
    ring = axis_of(where(lambda lat, lon: (np.abs(lat - 50) < 2) & (lon > -1), WHOLE), WHOLE)
    assert np.isfinite(ring.length)
    lat, lon = np.linspace(-90.0, 90.0, 19), np.arange(36) * 10.0
    globe = axis_of(np.ones((19, 36), dtype=bool), (lat, lon))
    assert np.isfinite(globe.length)


def test_at_the_border_of_an_open_grid_a_band_counts_as_far_as_it_is_seen() -> None:
    lat, lon = WHOLE[0][100:160], WHOLE[1][40:80]
    mask = np.zeros((60, 40), dtype=bool)
    mask[20:25, :] = True
    axis = axis_of(mask, (lat, lon))
    assert axis.length / 1e3 == pytest.approx(40 * KM_PER_DEGREE * np.cos(np.radians(32)), rel=0.02)
