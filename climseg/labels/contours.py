"""Closed contours round a point: whether a field rises by so much on every way out, as TempestExtremes asks.

Neighbours are the 4 cells that share an edge, over the seam of a closed grid too. In the last row of a grid that
reaches a pole there is no neighbour beyond; where that row lies at the pole itself, it is one point, whose value is
the lowest in the row, and a neighbour of every cell of the row before it. The first and last rows and columns of a
grid that goes on neither over a seam nor to a pole are its rim: what lies beyond cannot be seen.
"""

from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from climseg.grid import Floats, is_periodic, rim, spacing
from climseg.labels.regions import Mask, label_regions
from climseg.labels.step import Field
from climseg.labels.windows import ROUNDING, Indices

Contour = Literal["closed", "open", "leaves the grid"]
# Degrees; latitudes in files are rounded.
_TOLERANCE: Final = 1e-4


def follow_contour(
    field: Field, lat: Floats, lon: Floats, row: int, column: int, rise: float, radius_degrees: float
) -> Contour:
    """Flood a field from a cell up to a contour and say where that leads.

    The flood of TempestExtremes' ``DetectNodes --closedcontourcmd``: from the cell it visits neighbour after neighbour;
    what is lower than the start plus ``rise`` it goes on from; when it visits a cell further away than
    ``radius_degrees`` (great circle), the contour is not closed. For a fall round a maximum give the negative field.

    Args:
        field: (lat, lon), any unit. A missing value (NaN) that the flood meets leaves the contour open.
        lat: (lat,) degrees, ascending.
        lon: (lon,) degrees, ascending, evenly spaced.
        row: Index of the start.
        column: Index of the start.
        rise: In the unit of the field, above 0.
        radius_degrees: Degrees of arc.

    Returns:
        "open" where the flood gets too far within the grid, "leaves the grid" where it reaches the rim before that.
    """
    closed_grid = is_periodic(lon)
    rows, columns, centre = _neighbourhood(lat, lon, row, column, radius_degrees, closed_grid)
    near = field[rows.start : rows.stop, columns].astype(np.float64)
    low = ~(near - near[centre] >= rise)  # missing values too: they are found below
    at_pole = np.flatnonzero(np.abs(lat[rows.start : rows.stop]) >= 90.0 - _TOLERANCE)
    low[at_pole] = low[at_pole].any(axis=1, keepdims=True)
    ring = closed_grid and columns.size == lon.size
    labels = label_regions(low, ring, connectivity=4)
    flooded = labels == labels[centre]
    visited = _with_neighbours(flooded, ring)
    visited[at_pole] |= visited[at_pole].any(axis=1, keepdims=True)
    steps = np.abs(np.arange(columns.size) - centre[1])
    too_far = steps > _reach(lat[row], lat[rows.start : rows.stop], spacing(lon), radius_degrees)[:, None]
    if (visited & (too_far | np.isnan(near))).any():
        return "open"
    outer_row, outer_column = rim(lat, lon)
    if (flooded & (outer_row[rows.start : rows.stop, None] | outer_column[columns])).any():
        return "leaves the grid"
    return "closed"


def may_close(
    field: Field, lat: Floats, lon: Floats, rows: Indices, columns: Indices, rise: float, radius_degrees: float
) -> NDArray[np.bool_]:
    """Where a contour round each of many cells may be closed: what this denies is not closed for certain.

    Straight along the grid northward, southward, eastward and westward something must rise by ``rise`` within the
    radius, or the walk must end at the last row of a grid that reaches the pole.

    Args:
        field: (lat, lon), any unit.
        lat: (lat,) degrees, ascending.
        lon: (lon,) degrees, ascending, evenly spaced.
        rows: (n,) indices of the starts.
        columns: (n,) indices of the starts.
        rise: In the unit of the field, above 0.
        radius_degrees: Degrees of arc.

    Returns:
        (n,)
    """
    closed_grid, step = is_periodic(lon), spacing(lon)
    level = field[rows, columns].astype(np.float64) + rise * (1.0 - 1e-9)  # the sum is rounded
    at_rim = rim(lat, lon)[0]
    possible = np.isfinite(level)
    for north in (1, -1):
        walking = np.flatnonzero(possible)
        there = rows[walking]
        while walking.size:
            there = there + north
            beyond = (there < 0) | (there >= lat.size)
            possible[walking[beyond & at_rim[there - north]]] = False
            walking, there = walking[~beyond], there[~beyond]
            too_far = np.abs(lat[there] - lat[rows[walking]]) > radius_degrees + _TOLERANCE
            possible[walking[too_far]] = False
            on = ~too_far & ~(field[there, columns[walking]] >= level[walking])
            walking, there = walking[on], there[on]
    steps = _reach(lat[rows], lat[rows], step, radius_degrees + _TOLERANCE)
    for east in (1, -1):
        walking = np.flatnonzero(possible)
        for count in range(1, lon.size + 1):
            if not walking.size:
                break
            there = columns[walking] + east * count
            # A parallel that lies within the radius as a whole is no way out.
            beyond = np.full(there.shape, False) if closed_grid else (there < 0) | (there >= lon.size)
            failed = beyond | (steps[walking] < count)
            possible[walking[failed]] = False
            walking, there = walking[~failed], there[~failed]
            on = ~(field[rows[walking], there % lon.size] >= level[walking])
            walking = walking[on]
    return possible


def _neighbourhood(
    lat: Floats, lon: Floats, row: int, column: int, radius: float, closed_grid: bool
) -> tuple[slice, Indices, tuple[int, int]]:
    """Rows and columns of the cells within a radius of a cell and of their neighbours, and where the cell is there."""
    first = max(int(np.searchsorted(lat, lat[row] - radius - ROUNDING)) - 1, 0)
    last = min(int(np.searchsorted(lat, lat[row] + radius + ROUNDING, side="right")) + 1, lat.size)
    widest = int(_reach(lat[row], lat[first:last], spacing(lon), radius).max()) + 1
    if closed_grid and 2 * widest + 1 >= lon.size:
        columns = (column - lon.size // 2 + np.arange(lon.size)) % lon.size
        return slice(first, last), columns, (row - first, lon.size // 2)
    columns = np.arange(column - widest, column + widest + 1)
    columns = columns % lon.size if closed_grid else columns[(columns >= 0) & (columns < lon.size)]
    return slice(first, last), columns, (row - first, int(np.flatnonzero(columns == column)[0]))


def _reach(from_lat: Floats | float, to_lat: Floats, step: float, radius: float) -> NDArray[np.float64]:
    """How many columns away a point of each latitude may lie within a radius of one at another latitude.

    The haversine formula, solved for the difference in longitude; -1 for no column, 360 degrees for every one.
    """
    start, end = np.radians(from_lat), np.radians(to_lat)
    left = np.sin(np.radians(radius + ROUNDING) / 2) ** 2 - np.sin((end - start) / 2) ** 2
    share = left / np.maximum(np.cos(start) * np.cos(end), 1e-300)
    degrees = np.where(share < 1.0, np.degrees(2 * np.arcsin(np.sqrt(np.clip(share, 0.0, 1.0)))), 360.0)
    return np.where(left < 0, -1.0, np.floor(degrees / step))


def _with_neighbours(mask: Mask, ring: bool) -> Mask:
    """A mask (rows, columns) and the cells that share an edge with it."""
    grown = mask.copy()
    grown[1:] |= mask[:-1]
    grown[:-1] |= mask[1:]
    grown[:, 1:] |= mask[:, :-1]
    grown[:, :-1] |= mask[:, 1:]
    if ring:
        grown[:, 0] |= mask[:, -1]
        grown[:, -1] |= mask[:, 0]
    return grown
