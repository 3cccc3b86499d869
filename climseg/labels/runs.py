"""Regions of a mask by its runs of marked cells along the rows: quick where many masks of one grid are looked at.

What a region has in all is a sum over its runs, of which there are some hundred times fewer than cells.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from climseg.grid import Floats
from climseg.labels.regions import Mask
from climseg.labels.windows import Indices


@dataclass(frozen=True)
class Runs:
    """Runs of marked cells along the rows of a mask, and the regions (4 neighbours) that they make up.

    Positions count through a mask with one empty column more, ``row * (columns + 1) + column``.

    Attributes:
        shape: Of the mask, (lat, lon).
        start: (n,) position of the first cell of each run, ascending.
        stop: (n,) position after its last cell.
        region: (n,) number of its region, from 0.
    """

    shape: tuple[int, int]
    start: Indices
    stop: Indices
    region: NDArray[np.int32]

    def areas(self, row_area: Floats) -> Floats:
        """Area of each region, from that of a cell in each row (lat,)."""
        cells = self.stop - self.start
        areas = np.bincount(self.region, weights=cells * row_area[self.start // (self.shape[1] + 1)])
        return np.asarray(areas, dtype=np.float64)


def find_runs(mask: Mask, periodic: bool) -> Runs:
    """The runs and regions of a mask (lat, lon).

    Args:
        mask: (lat, lon).
        periodic: Whether the first and the last column are neighbours. Latitude never wraps.
    """
    height, width = mask.shape
    # One more before the first, so that a run can begin there.
    positions = np.zeros(height * (width + 1) + 1, dtype=np.bool_)
    positions[1:].reshape(height, width + 1)[:, :width] = mask
    changes = np.flatnonzero(positions[1:] != positions[:-1])
    start, stop = changes[::2], changes[1::2]
    # A run is next to those of the row above that end after its start and start before its end.
    first = np.searchsorted(stop, start + width + 1, side="right")
    touching = np.maximum(np.searchsorted(start, stop + width + 1, side="left") - first, 0)
    below = np.repeat(np.arange(start.size), touching)
    above = np.arange(below.size) - np.repeat(np.cumsum(touching) - touching - first, touching)
    if periodic:
        at_west, at_east = np.flatnonzero(start % (width + 1) == 0), np.flatnonzero(stop % (width + 1) == width)
        _, west, east = np.intersect1d(start[at_west], stop[at_east] - width, return_indices=True)
        below, above = np.concatenate([below, at_west[west]]), np.concatenate([above, at_east[east]])
    links = coo_matrix((np.ones(below.size, dtype=np.int32), (below, above)), shape=(start.size, start.size))
    return Runs((height, width), start, stop, connected_components(links, directed=False)[1])


class RunCount:
    """Counts how often each cell is marked over many masks.

    Args:
        shape: Of the masks, (lat, lon).
    """

    def __init__(self, shape: tuple[int, int]) -> None:
        self._shape = shape
        self._changes = np.zeros(shape[0] * (shape[1] + 1), dtype=np.int32)

    def add(self, runs: Runs, kept: Mask) -> None:
        """Count the cells of the regions that are kept, (regions,)."""
        chosen = kept[runs.region]
        self._changes[runs.start[chosen]] += 1
        self._changes[runs.stop[chosen]] -= 1

    def total(self) -> NDArray[np.int32]:
        """(lat, lon) how often each cell has been marked."""
        height, width = self._shape
        return np.cumsum(self._changes, dtype=np.int32).reshape(height, width + 1)[:, :width]
