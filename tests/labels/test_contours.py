"""Closed contours against a plain flood with a queue, and on lows of known shape."""

from collections import deque

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

from climseg.grid import EARTH_RADIUS, great_circle_distance, rim
from climseg.labels.contours import follow_contour, may_close

LAT, LON = np.arange(-90.0, 90.25, 0.5), np.arange(0.0, 360.0, 0.5)
OPEN_LAT, OPEN_LON = np.arange(0.0, 40.25, 0.5), np.arange(280.0, 320.25, 0.5)


def is_closed_contour(
    field: np.ndarray, lat: np.ndarray, lon: np.ndarray, row: int, column: int, rise: float, radius: float
) -> bool:
    return follow_contour(field, lat, lon, row, column, rise, radius) == "closed"


def degrees_from(lat: np.ndarray, lon: np.ndarray, row: int, column: int) -> np.ndarray:
    return np.degrees(great_circle_distance(lat[row], lon[column], lat[:, None], lon[None, :]) / EARTH_RADIUS)


def gaussian_low(lat: np.ndarray, lon: np.ndarray, row: int, column: int) -> np.ndarray:
    """400 Pa deep, 4 degrees wide: the contour 200 Pa above the middle lies 4 sqrt(ln 2) = 3.33 degrees away."""
    return 101_000.0 - 400.0 * np.exp(-((degrees_from(lat, lon, row, column) / 4.0) ** 2))


def flood(
    field: np.ndarray, lat: np.ndarray, lon: np.ndarray, row: int, column: int, rise: float, radius: float, closed: bool
) -> bool:
    """Cell by cell, breadth first, as TempestExtremes does it; a row at a pole is one point."""
    height, width = field.shape
    distance = degrees_from(lat, lon, row, column)
    pole = np.abs(lat) == 90
    queue, visited = deque([(row, column)]), set()
    while queue:
        r, c = queue.popleft()
        if (r, c) in visited:
            continue
        visited.add((r, c))
        value = field[r].min() if pole[r] else field[r, c]
        if distance[r, c] > radius or np.isnan(value):
            return False
        if value - field[row, column] >= rise:
            continue
        for to_r, to_c in ((r + 1, c), (r - 1, c), (r, c + 1), (r, c - 1)):
            beyond_rows = not 0 <= to_r < height
            if (beyond_rows and abs(lat[r]) < 87) or (not closed and not 0 <= to_c < width):
                return False  # it goes on where the grid does not
            if not beyond_rows:
                queue.append((to_r, to_c % width))
        if pole[r]:
            queue.extend((r, other) for other in range(width))
    return True


GRIDS = {
    "closed, rows at the poles": (np.arange(-90.0, 91.0, 5.0), np.arange(0.0, 360.0, 5.0), True),
    "closed, no rows at the poles": (np.arange(-87.5, 90.0, 5.0), np.arange(2.5, 360.0, 5.0), True),
    "a band": (np.arange(-40.0, 41.0, 5.0), np.arange(0.0, 360.0, 5.0), True),
    "open": (np.arange(0.0, 61.0, 2.5), np.arange(200.0, 261.0, 2.5), False),
}


@pytest.mark.parametrize("grid", GRIDS)
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 100_000), rise=st.floats(0.1, 3.0), radius=st.floats(3.0, 70.0), missing=st.integers(0, 3))
def test_random_fields_give_what_a_flood_cell_by_cell_gives(
    grid: str, seed: int, rise: float, radius: float, missing: int
) -> None:
    lat, lon, closed = GRIDS[grid]
    random = np.random.default_rng(seed)
    noise = random.standard_normal((lat.size, lon.size))
    field = 3 * ndimage.gaussian_filter(noise, 1.0, mode=("nearest", "wrap"))
    field[np.abs(lat) == 90] = field[np.abs(lat) == 90].mean(axis=1, keepdims=True)
    inner = np.flatnonzero(np.abs(lat) < 90)
    field[random.choice(inner, missing), random.integers(0, lon.size, missing)] = np.nan
    lowest = np.argsort(field, axis=None)[:4]
    chosen = np.concatenate([lowest, random.integers(0, field.size, 4)])
    rows, columns = np.unravel_index(chosen, field.shape)
    possible = may_close(field, lat, lon, rows, columns, rise, radius)
    for row, column, maybe in zip(rows, columns, possible, strict=True):
        expected = flood(field, lat, lon, row, column, rise, radius, closed)
        assert is_closed_contour(field, lat, lon, row, column, rise, radius) == expected
        assert maybe or not expected


def test_the_quick_check_denies_most_of_what_is_not_closed() -> None:
    field = ndimage.gaussian_filter(np.random.default_rng(1).standard_normal((361, 720)), 3, mode=("nearest", "wrap"))
    rows, columns = np.unravel_index(np.random.default_rng(2).integers(0, field.size, 300), field.shape)
    possible = may_close(field, LAT, LON, rows, columns, 0.15, 5.5)
    closed = [
        is_closed_contour(field, LAT, LON, row, column, 0.15, 5.5) for row, column in zip(rows, columns, strict=True)
    ]
    assert 0 < sum(closed) <= possible.sum() < 150


@pytest.mark.parametrize("lat", [-85.0, -20.0, 0.0, 20.0, 60.0, 89.0, 90.0])
@pytest.mark.parametrize("lon", [0.0, 179.5, 359.5])
@pytest.mark.parametrize(("radius", "closed"), [(4.2, True), (3.2, False)])
def test_a_gaussian_low_is_closed_where_its_contour_lies_within_the_radius(
    lat: float, lon: float, radius: float, closed: bool
) -> None:
    row, column = int((lat + 90) * 2), int(lon * 2)
    low = gaussian_low(LAT, LON, row, column)
    assert is_closed_contour(low, LAT, LON, row, column, 200.0, radius) is closed
    assert may_close(low, LAT, LON, np.array([row]), np.array([column]), 200.0, radius)[0] or not closed


def test_a_low_less_deep_than_the_rise_is_not_closed_at_any_distance() -> None:
    low = gaussian_low(LAT, LON, 220, 100)
    assert is_closed_contour(low, LAT, LON, 220, 100, 399.0, 20.0)
    assert not is_closed_contour(low, LAT, LON, 220, 100, 401.0, 20.0)


def test_a_fall_round_a_maximum_is_a_rise_of_the_negative_field() -> None:
    high = -gaussian_low(LAT, LON, 220, 100)
    assert is_closed_contour(-high, LAT, LON, 220, 100, 200.0, 4.2)
    assert not is_closed_contour(high, LAT, LON, 220, 100, 200.0, 4.2)


WALL = np.array(
    [
        [0, 0, 0, 0, 0, 0, 0],
        [0, 9, 9, 9, 9, 9, 0],
        [0, 9, 0, 0, 0, 9, 0],
        [0, 9, 0, 0, 0, 9, 0],
        [0, 9, 0, 0, 0, 9, 0],
        [0, 9, 9, 9, 9, 9, 0],
        [0, 0, 0, 0, 0, 0, 0],
    ],
    dtype=np.float64,
)
WALL_LAT, WALL_LON = np.arange(-3.0, 4.0), np.arange(10.0, 17.0)


def test_a_wall_with_a_gap_is_open_and_a_corner_is_no_gap() -> None:
    def contour(field: np.ndarray, radius: float) -> str:
        return follow_contour(field, WALL_LAT, WALL_LON, 3, 3, 9.0, radius)

    assert contour(WALL, 3.0) == "closed"
    # The corners of the wall, which lie 2.83 degrees away, are never visited: only their neighbours' edges are.
    assert contour(WALL, 2.5) == "closed"
    # A cell of the wall itself that lies too far is visited all the same.
    assert contour(WALL, 2.1) == "open"
    gap = WALL.copy()
    gap[5, 3] = 0.0
    assert contour(gap, 2.9) == "open"
    assert contour(gap, 9.0) == "leaves the grid"
    corner = WALL.copy()
    corner[5, 5] = 0.0
    assert contour(corner, 3.0) == "closed"
    low_wall = WALL.copy()
    low_wall[5, 3] = 8.999
    assert contour(low_wall, 2.9) == "open"


@pytest.mark.parametrize("at", [(2, 3), (5, 3)])
def test_a_missing_value_that_the_flood_meets_leaves_it_open(at: tuple[int, int]) -> None:
    field = WALL.copy()
    field[at] = np.nan
    assert follow_contour(field, WALL_LAT, WALL_LON, 3, 3, 9.0, 3.0) == "open"
    beyond = WALL.copy()
    beyond[6, 3] = beyond[5, 5] = np.nan
    assert follow_contour(beyond, WALL_LAT, WALL_LON, 3, 3, 9.0, 3.0) == "closed"
    start = WALL.copy()
    start[3, 3] = np.nan
    assert follow_contour(start, WALL_LAT, WALL_LON, 3, 3, 9.0, 3.0) == "open"
    assert not may_close(start, WALL_LAT, WALL_LON, np.array([3]), np.array([3]), 9.0, 3.0)[0]


@pytest.mark.parametrize(
    ("row", "column", "contour"),
    [
        (40, 40, "closed"),
        (8, 40, "closed"),  # 4 degrees from the rim, the contour 3.33
        (5, 40, "leaves the grid"),
        (76, 40, "leaves the grid"),
        (40, 5, "leaves the grid"),
        (40, 76, "leaves the grid"),
        (0, 0, "leaves the grid"),
    ],
)
def test_the_rim_of_an_open_grid_closes_no_contour(row: int, column: int, contour: str) -> None:
    low = gaussian_low(OPEN_LAT, OPEN_LON, row, column)
    assert follow_contour(low, OPEN_LAT, OPEN_LON, row, column, 200.0, 5.5) == contour
    assert may_close(low, OPEN_LAT, OPEN_LON, np.array([row]), np.array([column]), 200.0, 5.5)[0] == (
        contour == "closed"
    )


def test_a_band_round_the_globe_is_open_to_north_and_south_and_closed_over_the_seam() -> None:
    lat = np.arange(-30.0, 30.25, 0.5)
    assert follow_contour(gaussian_low(lat, LON, 60, 719), lat, LON, 60, 719, 200.0, 5.5) == "closed"
    assert follow_contour(gaussian_low(lat, LON, 3, 719), lat, LON, 3, 719, 200.0, 5.5) == "leaves the grid"


@pytest.mark.parametrize(
    ("lat", "outer"),
    [
        (np.linspace(-90, 90, 37), []),
        (np.arange(-87.5, 90.0, 5.0), []),
        (np.degrees(np.arcsin(np.polynomial.legendre.leggauss(64)[0])), []),  # a Gaussian grid
        (np.arange(-85.0, 86.0, 5.0), [0, 34]),  # the row at the pole is not there
        (np.arange(0.0, 91.0, 5.0), [0]),
    ],
)
def test_the_rim_is_where_the_sphere_goes_on(lat: np.ndarray, outer: list[int]) -> None:
    rows, columns = rim(lat, np.arange(0.0, 360.0, 5.0))
    assert np.flatnonzero(rows).tolist() == outer
    assert not columns.any()
    assert np.flatnonzero(rim(lat, np.arange(0.0, 350.0, 5.0))[1]).tolist() == [0, 69]


def test_a_valley_over_the_pole_leads_out_on_the_other_side() -> None:
    # High everywhere but along the meridians 0 and 180, which meet at the pole.
    field = np.full((361, 720), 1000.0)
    field[LAT >= 80, 0] = field[LAT >= 80, 360] = 0.0
    field[-1] = 0.0
    row = int(np.flatnonzero(LAT == 85)[0])
    assert follow_contour(field, LAT, LON, row, 0, 500.0, 16.0) == "closed"
    assert follow_contour(field, LAT, LON, row, 0, 500.0, 8.0) == "open"
    field[-1] = 1000.0
    assert follow_contour(field, LAT, LON, row, 0, 500.0, 8.0) == "closed"
