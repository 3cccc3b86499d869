"""Pieces of a grid round a point: boxes, caps, rays and rings; longitude goes on over the seam of a closed grid only.

A piece that would reach beyond an open grid does not exist (None): what cannot be seen whole is not judged.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from climseg.grid import (
    EARTH_RADIUS,
    Floats,
    cell_edges,
    destination,
    great_circle_distance,
    is_periodic,
    longitude_difference,
    spacing,
)

Indices = NDArray[np.int64]
BEARINGS: Final = np.arange(8) * 45.0
# Degrees: a point that lies at a distance but for rounding lies at it, whichever way it is computed.
ROUNDING: Final = 1e-9


@dataclass(frozen=True)
class Window:
    """Rows from south to north and columns from west to east (over the seam where needed) of a piece of a grid."""

    rows: Indices
    columns: Indices

    @property
    def cells(self) -> tuple[Indices, Indices]:
        """Index of an array (lat, lon): ``field[window.cells]`` has the shape (rows, columns)."""
        rows, columns = np.ix_(self.rows, self.columns)
        return rows, columns


def box(
    lat: Floats, lon: Floats, centre_lat: float, centre_lon: float, half_height: float, half_width: float
) -> Window | None:
    """The cells whose centres lie in a box, or None when the box reaches beyond the outer cell edges of an open grid.

    Args:
        lat: (lat,) degrees, ascending.
        lon: (lon,) degrees, ascending.
        centre_lat: Degrees.
        centre_lon: Degrees, in the range of ``lon``.
        half_height: Degrees of latitude. A box beyond a pole that the grid holds ends at the pole.
        half_width: Degrees of longitude.
    """
    edges = cell_edges(lat)
    south, north = max(centre_lat - half_height, -90.0), min(centre_lat + half_height, 90.0)
    if south < edges[0] - ROUNDING or north > edges[-1] + ROUNDING:
        return None
    if not is_periodic(lon):
        margin = 0.5 * spacing(lon) + ROUNDING
        if centre_lon - half_width < lon[0] - margin or centre_lon + half_width > lon[-1] + margin:
            return None
    return _cells_in_box(lat, lon, centre_lat, centre_lon, half_height, half_width)


def cap(lat: Floats, lon: Floats, centre_lat: float, centre_lon: float, radius: float) -> tuple[Window, Floats] | None:
    """The box round a spherical cap and the distance (rows, columns) of its cells from the centre, both in degrees.

    None when the cap reaches beyond an open grid. The corners of the box lie further away than ``radius``.
    """
    if box(lat, lon, centre_lat, centre_lon, radius, _half_width(centre_lat, radius)) is None:
        return None
    return within(lat, lon, centre_lat, centre_lon, radius)


def within(lat: Floats, lon: Floats, centre_lat: float, centre_lon: float, radius: float) -> tuple[Window, Floats]:
    """As :func:`cap`, but what lies beyond an open grid is cut off."""
    window = _cells_in_box(lat, lon, centre_lat, centre_lon, radius, _half_width(centre_lat, radius))
    metres = great_circle_distance(centre_lat, centre_lon, lat[window.rows][:, None], lon[window.columns][None, :])
    return window, np.asarray(np.degrees(metres / EARTH_RADIUS).round(9))


def _half_width(centre_lat: float, radius: float) -> float:
    """Degrees of longitude from the centre of a cap to the meridian that touches it; 180 where it holds a pole."""
    if abs(centre_lat) + radius >= 90.0:
        return 180.0
    return float(np.degrees(np.arcsin(np.sin(np.radians(radius)) / np.cos(np.radians(centre_lat)))))


def _cells_in_box(
    lat: Floats, lon: Floats, centre_lat: float, centre_lon: float, half_height: float, half_width: float
) -> Window:
    rows = np.flatnonzero(np.abs(lat - centre_lat) <= half_height + ROUNDING)
    east = longitude_difference(lon, centre_lon)
    columns = np.flatnonzero(np.abs(east) <= half_width + ROUNDING)
    return Window(rows, columns[np.argsort(east[columns])])


def smallest_rise(field: NDArray[np.floating], lat: Floats, lon: Floats, row: int, column: int, radius: float) -> float:
    """How far a field rises along each of 8 great circles from a cell, the smallest of the 8; NaN at missing values.

    Each ray is sampled by bilinear interpolation at half the grid spacing out to ``radius``; the caller sees to it that
    the cap of that radius lies within the grid.

    Args:
        field: (lat, lon).
        lat: (lat,) degrees, ascending.
        lon: (lon,) degrees, ascending.
        row: Index of the cell the rays start from.
        column: Index of the cell the rays start from.
        radius: Degrees of arc.
    """
    samples = max(int(np.ceil(2 * radius / min(spacing(lat), spacing(lon)))), 1)
    distances = np.linspace(0.0, radius, samples + 1)[1:]
    to_lat, to_lon = destination(lat[row], lon[column], BEARINGS[:, None], distances[None, :])  # (8, samples)
    rows = np.interp(to_lat, lat, np.arange(lat.size))
    columns = column + (to_lon - lon[column]) / spacing(lon)
    if not is_periodic(lon):
        columns = np.clip(columns, 0, lon.size - 1)  # in the outer half of an edge cell
    values = ndimage.map_coordinates(field, [rows, columns], order=1, mode="grid-wrap", output=np.float64)
    return float((values.max(axis=1) - field[row, column]).min())


def ring_means(values: NDArray[np.floating], distance: Floats, radius: float, width: float) -> tuple[Floats, Floats]:
    """Mean of a field in rings round a centre: the radii in the middle of the rings, and the means.

    Rings without a cell are left out; so are missing values. ``width`` must not be finer than the grid, or rings
    without cells and with very few make a jagged profile.

    Args:
        values: (rows, columns).
        distance: (rows, columns) from the centre, in the unit of ``radius`` and ``width``.
        radius: Outer radius of the last ring.
        width: Of a ring; the last one is cut at ``radius``.
    """
    present = (distance < radius) & np.isfinite(values)
    ring = (distance[present] / width).astype(np.int64)
    cells = np.bincount(ring)
    sums = np.bincount(ring, weights=values[present])
    filled = cells > 0
    middle = (np.arange(cells.size, dtype=np.float64) + 0.5) * width
    return np.asarray(middle[filled], dtype=np.float64), np.asarray(sums[filled] / cells[filled])
