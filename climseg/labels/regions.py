"""Connected regions of a mask on the sphere and what can be measured on them."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import ndimage
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from climseg.grid import Floats, cell_edges, great_circle_distance, is_periodic, row_cell_area, spacing

Mask = NDArray[np.bool_]
Labels = NDArray[np.int32]


def label_regions(mask: Mask, periodic: bool, connectivity: Literal[4, 8] = 4) -> Labels:
    """Number the connected regions of a mask.

    Args:
        mask: (lat, lon).
        periodic: Whether the first and the last column are neighbours. Latitude never wraps.
        connectivity: 4 joins cells that share an edge, 8 also those that share a corner.

    Returns:
        (lat, lon) int32: 0 background, 1 to n the regions.
    """
    # scipy and a union over the seam: the periodic mode of cc3d 4.1.1 misses some regions that touch by a corner there.
    structure = ndimage.generate_binary_structure(2, 1 if connectivity == 4 else 2)
    labels, count = ndimage.label(mask, structure)
    if not periodic or count == 0:
        return labels.astype(np.int32)
    west, east = labels[:, 0], labels[:, -1]
    pairs = [np.stack([east, west])]
    if connectivity == 8:
        pairs += [np.stack([east[1:], west[:-1]]), np.stack([east[:-1], west[1:]])]
    touching = np.concatenate(pairs, axis=1)
    touching = touching[:, np.all(touching > 0, axis=0)]
    links = coo_matrix((np.ones(touching.shape[1]), (touching[0], touching[1])), shape=(count + 1, count + 1))
    component = connected_components(links, directed=False)[1]
    renumbered = np.zeros(count + 1, dtype=np.int32)
    renumbered[1:] = np.unique(component[1:], return_inverse=True)[1] + 1
    return np.asarray(renumbered[labels])


@dataclass(frozen=True)
class RegionMeasures:
    """Measures of the regions 1 to n of a label field; element k belongs to region k + 1.

    The bounding box is that of the cells' outer edges, and the shortest one round the globe: a region over the seam
    has one box, and a region in every column is 360 degrees wide.

    Attributes:
        area: (n,) m2.
        lat: (n,) degrees, the area-weighted mean.
        lon: (n,) degrees in [0, 360), the area-weighted circular mean.
        south: (n,) degrees.
        north: (n,) degrees.
        width: (n,) degrees of longitude, 360 at most.
    """

    area: Floats
    lat: Floats
    lon: Floats
    south: Floats
    north: Floats
    width: Floats

    @property
    def north_south_extent(self) -> Floats:
        """(n,) m along a meridian from the southern to the northern edge."""
        return great_circle_distance(self.south, 0.0, self.north, 0.0)

    @property
    def diagonal(self) -> Floats:
        """(n,) m, great circle between opposite corners of the box.

        Two meridians are 180 degrees apart at most, so that a box wider than that counts as 180 degrees wide here.
        """
        return great_circle_distance(self.south, 0.0, self.north, np.minimum(self.width, 180.0))


def measure_regions(labels: Labels, lat: ArrayLike, lon: ArrayLike) -> RegionMeasures:
    """Measure every region of a label field with the numbers 0 (background) to n.

    Args:
        labels: (lat, lon) from :func:`label_regions`, every number from 1 to n present.
        lat: (lat,) degrees, ascending.
        lon: (lon,) degrees, ascending.
    """
    count = int(labels.max(initial=0))
    lat_values, lon_values = np.asarray(lat, dtype=np.float64), np.asarray(lon, dtype=np.float64)
    rows, columns = np.nonzero(labels)
    region = labels[rows, columns] - 1
    cell = row_cell_area(lat, lon)[rows]

    def total(values: Floats | float = 1.0) -> Floats:
        return np.bincount(region, weights=cell * values, minlength=count).astype(np.float64)

    area = total()
    eastward, northward = (total(part(np.radians(lon_values))[columns]) for part in (np.cos, np.sin))
    first_row = np.full(count, labels.shape[0])
    last_row = np.zeros(count, dtype=np.int64)
    np.minimum.at(first_row, region, rows)
    np.maximum.at(last_row, region, rows)
    edges = cell_edges(lat)
    column_count = _column_counts(region, columns, count, lon_values.size, is_periodic(lon_values))
    return RegionMeasures(
        area=area,
        lat=total(lat_values[rows]) / area,
        lon=np.degrees(np.arctan2(northward, eastward)) % 360.0 % 360.0,  # a hair below 0 gives 360 at first
        south=edges[first_row],
        north=edges[last_row + 1],
        width=np.minimum(column_count * spacing(lon_values), 360.0),
    )


def marked(labels: Labels, kept: Mask) -> Mask:
    """The cells (lat, lon) of the regions of a label field that are kept: (n,), element k for region k + 1."""
    return np.asarray(np.concatenate([[False], kept])[labels])


def largest_region(mask: Mask, area: Floats, periodic: bool, connectivity: Literal[4, 8] = 8) -> Mask:
    """The connected region with the largest area, as a mask of the same shape; empty when ``mask`` is.

    Args:
        mask: (lat, lon).
        area: (lat, lon) of the cells, in any unit.
        periodic: See :func:`label_regions`.
        connectivity: See :func:`label_regions`.
    """
    labels = label_regions(mask, periodic, connectivity)
    sizes = np.bincount(labels.ravel(), weights=np.where(mask, area, 0.0).ravel())
    return np.asarray(mask & (labels == sizes.argmax()))


def _column_counts(
    region: NDArray[np.int32], columns: NDArray[np.int64], count: int, width: int, periodic: bool
) -> NDArray[np.int64]:
    """Number of columns (n,) of the shortest run of columns that holds each region.

    On a closed grid that run is what the widest gap between the region's columns leaves over.
    """
    occupied = np.unique(region.astype(np.int64) * width + columns)
    owner, column = occupied // width, occupied % width
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    ends = np.flatnonzero(np.diff(owner, append=count))
    if not periodic:
        return np.asarray(column[ends] - column[starts] + 1)
    # The step from each column to the region's next one eastward; the last one's leads over the seam to the first.
    step = np.diff(column, append=0)
    step[ends] = column[starts] + width - column[ends]
    widest = np.zeros(count, dtype=np.int64)
    np.maximum.at(widest, owner, step)
    return width - widest + 1
