"""The axis of a long region: its middle line from end to end, by distances within the region.

A region may be curved, reach over the seam or near a pole. Its cells are gathered in blocks of about 100 km, joined to
a network of neighbours; the ends are two blocks furthest apart on the ways through the network (the furthest from the
one that is furthest from the middle). What lies in each 350 km of the way from one end is a slice, and the slices'
weighted middles are the axis: a line through them is smooth where the ways through the network are not. On bands of
known shape at 0.25 and 1 degree, up to 0.45 times as wide as long, the length is right within 1.5 %. A region
nearly as wide as long is measured along its diagonal.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import dijkstra

from climseg.grid import EARTH_RADIUS, Floats, is_periodic, spacing, unit_vectors
from climseg.labels.windows import Indices

BLOCK: Final = 1.0e5  # m, the width of a block where cells are smaller
SLICE: Final = 3.5e5  # m along the way, or the longest step of the network; thinner slices follow the shape of the ends
# Steps to neighbours, rows up and columns to the east, and the blocks that a step leads between, which must be of the
# region too. The steps back come by symmetry. With 8 neighbours alone oblique ways would be up to 8 % too long.
_STEPS: Final = (
    ((0, 1), ()),
    ((1, -1), ()),
    ((1, 0), ()),
    ((1, 1), ()),
    ((1, 2), ((0, 1), (1, 1))),
    ((1, -2), ((0, -1), (1, -1))),
    ((2, 1), ((1, 0), (1, 1))),
    ((2, -1), ((1, 0), (1, -1))),
)


@dataclass(frozen=True)
class Axis:
    """The middle line of a region.

    Attributes:
        lat: (n,) degrees, from one end to the other, n at least 1; the outer ones lie within the region, each in the
            middle of the two outermost slices.
        lon: (n,) degrees in [0, 360).
        length: m, along great circles between the points and on to the region's ends.
        bearing: Degrees clockwise from north in [0, 180), of the great circle through the two outer points, in the
            middle between them; a line has no sense of direction. 0 for a single point.
    """

    lat: Floats
    lon: Floats
    length: float
    bearing: float


def measure_axis(rows: Indices, columns: Indices, weights: Floats, lat: Floats, lon: Floats) -> Axis:
    """The axis of one connected region.

    It does not depend on where the seam of a closed grid lies, bit for bit, as long as one cell alone has the largest
    weight. A region at the border of an open grid counts as far as it is seen, so that its length is a lower bound. A
    ring round a pole is measured to its opposite side.

    Args:
        rows: (n,) latitude indices of the region's cells, at least one.
        columns: (n,) their longitude indices.
        weights: (n,) above 0, such as the transport there, which draw the axis to where they are large; cells count by
            them and by their area.
        lat: (lat,) degrees, ascending, at least 2.
        lon: (lon,) degrees, ascending and evenly spaced.
    """
    closed, width, step = is_periodic(lon), lon.size, spacing(lon)
    # Columns count from the heaviest cell, wherever the seam is, and cells come in the same order.
    reference = int(columns[np.argmax(weights)])
    east = (columns - reference) % width if closed else columns - reference
    order = np.lexsort((east, rows))
    rows, east, weights = rows[order], east[order], weights[order]
    points = unit_vectors(lat[rows], east * step)
    area = np.cos(np.radians(lat[rows])) + 1e-9  # a row at a pole itself counts for next to nothing
    weights = weights * area

    block, ways = _network(rows, east, points, spacing(lat), step * np.cos(np.radians(lat[rows].mean())), width, closed)
    slices = _slices(block, ways, weights, points)
    line = _middles(slices, weights[:, None] * points)
    length = _distances(line[:-1], line[1:]).sum()
    if len(line) == 1:
        length += 2.0 * _distances(points, line).max()
    else:
        size = np.radians(np.stack([step * np.cos(np.radians(lat[rows])), np.full(rows.size, spacing(lat))], axis=1))
        for end, inner in ((0, 1), (-1, -2)):
            outermost = slices == slices.max() * (end == -1)
            length += _reach(line[end], line[inner], points[outermost], size[outermost], area[outermost])
    line_lat, line_lon = np.degrees(np.arcsin(line[:, 2])), np.degrees(np.arctan2(line[:, 1], line[:, 0]))
    return Axis(line_lat, (line_lon + lon[reference]) % 360.0 % 360.0, float(length), _bearing(line[0], line[-1]))


def _network(
    rows: Indices, east: Indices, points: Floats, height: float, breadth: float, width: int, closed: bool
) -> tuple[Indices, csr_matrix]:
    """The block (n,) of each cell, and the distances in m between blocks that a step of ``_STEPS`` joins.

    Args:
        rows: (n,) of the cells.
        east: (n,) columns.
        points: (n, 3) on the unit sphere.
        height: Of a cell, degrees of arc.
        breadth: Of a cell, degrees of arc.
        width: Columns of the grid.
        closed: Whether the columns close.
    """
    degrees = np.degrees(BLOCK / EARTH_RADIUS)
    up = rows // max(int(degrees / height), 1)
    aside = east // min(max(int(degrees / breadth), 1), width)
    up, aside = up - up.min(), aside - aside.min()
    count = int(aside.max()) + 1
    taken, block = np.unique(up * count + aside, return_inverse=True)
    height_of_all = int(up.max()) + 1
    number = np.full((height_of_all + 2, count + 4), -1)  # with a margin of none
    number[taken // count, taken % count + 2] = np.arange(taken.size)
    if closed and east.max() - east.min() == width - 1:
        number[:, :2], number[:, -2:] = number[:, count : count + 2], number[:, 2:4]

    def moved(step: tuple[int, int]) -> Indices:
        return np.asarray(number[step[0] : step[0] + height_of_all, 2 + step[1] : 2 + step[1] + count])

    here = moved((0, 0))
    both = []
    for step, between in _STEPS:
        there = moved(step)
        linked = np.logical_and.reduce([here >= 0, there >= 0, *(moved(one) >= 0 for one in between)])
        both.append(np.stack([here[linked], there[linked]], axis=1))
    first, second = np.unique(np.sort(np.concatenate(both), axis=1), axis=0).T
    centres = _middles(block, points)
    apart = _distances(centres[first], centres[second])
    return block, csr_matrix((apart, (first, second)), shape=(taken.size, taken.size))


def _slices(block: Indices, ways: csr_matrix, weights: Floats, points: Floats) -> Indices:
    """Number (n,) of the slice of each cell, from 0 at one end; every number up to the last occurs."""
    centres = _middles(block, points)
    middle = int(np.argmax(centres @ (weights @ points)))
    end = int(np.argmax(_ways_from(ways, middle)))
    away = _ways_from(ways, end)
    longest = float(away.max())
    if longest == 0.0:
        return np.zeros_like(block)
    back = _ways_from(ways, int(np.argmax(away)))
    # An end block lies in a corner. Lines of equal distance from the far end cross a region squarely, those round the
    # near end do not: so the far end decides in the outer thirds.
    far = np.clip(3.0 * away / (away + back) - 1.0, 0.0, 1.0)
    along = far * away + (1.0 - far) * (longest - back)
    along -= along.min()
    count = max(int(longest / max(SLICE, float(ways.data.max()))), 2)
    number = np.minimum((along / along.max() * count).astype(np.int64), count - 1)
    if count > 3:  # the outermost slices of a wide region are little more than its corners
        number = np.clip(number, 1, count - 2)
    return np.unique(number, return_inverse=True)[1][block]


def _ways_from(ways: csr_matrix, block: int) -> Floats:
    """The shortest ways (blocks,) through the network from one block, in m."""
    return np.asarray(dijkstra(ways, directed=False, indices=[block])[0], dtype=np.float64)


def _reach(end: Floats, inner: Floats, points: Floats, size: Floats, area: Floats) -> float:
    """How far in m a slice goes on beyond an end of the line, in its direction.

    That is half the thickness of an even slice with the same spread. The outermost corner would be too far where the
    line is a little aslant in a wide region.

    Args:
        end: (3,) on the unit sphere.
        inner: (3,) the point of the line before it.
        points: (n, 3) the cells of the outermost slice.
        size: (n, 2) their extent to the east and to the north, radians.
        area: (n,) theirs, in any unit.
    """
    onward = end - inner
    onward = onward - (onward @ end) * end
    onward /= np.linalg.norm(onward)
    ahead = np.arcsin(np.clip(points @ onward, -1.0, 1.0))
    half_cell = 0.5 * np.average(size @ np.abs(_compass(end) @ onward), weights=area)
    mean = np.average(ahead, weights=area)
    variance = np.average((ahead - mean) ** 2, weights=area)
    return float(EARTH_RADIUS * (mean + np.sqrt(3.0 * variance + half_cell**2)))


def _bearing(start: Floats, stop: Floats) -> float:
    if np.array_equal(start, stop):
        return 0.0
    middle = (start + stop) / np.linalg.norm(start + stop)
    eastward, northward = _compass(middle) @ (stop - start)
    return float(np.degrees(np.arctan2(eastward, northward)) % 180.0)


def _compass(point: Floats) -> Floats:
    """The unit vectors (2, 3) to the east and to the north at a point (3,)."""
    east = np.array([-point[1], point[0], 0.0])
    east /= max(float(np.linalg.norm(east)), 1e-300)
    return np.stack([east, np.cross(point, east)])


def _middles(group: Indices, vectors: Floats) -> Floats:
    """Where the sum of the vectors (n, 3) of each group points to: (groups, 3) on the unit sphere."""
    sums = np.stack([np.bincount(group, weights=part) for part in vectors.T], axis=1)
    return np.asarray(sums / np.linalg.norm(sums, axis=1, keepdims=True))


def _distances(a: Floats, b: Floats) -> Floats:
    """Great-circle distances in m between points (..., 3) on the unit sphere, by their chords."""
    return np.asarray(2.0 * EARTH_RADIUS * np.arcsin(np.clip(np.linalg.norm(a - b, axis=-1) / 2.0, 0.0, 1.0)))
