"""The one place that says how cyclones and rivers become class numbers."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from climseg.channels import ATMOSPHERIC_RIVER, BACKGROUND, MISSING_LABEL, TROPICAL_CYCLONE
from climseg.grid import Floats
from climseg.labels.regions import Mask
from climseg.labels.windows import within


def combine(cyclones: Mask, rivers: Mask, *, untold: Mask, missing: Mask) -> NDArray[np.int8]:
    """Class numbers (int8) from masks of the same shape.

    A cyclone overwrites a river. Where a field is missing no class is told; where something else cannot be told, a
    cyclone that is told still is one.

    Args:
        cyclones: Where a tropical cyclone is.
        rivers: Where an atmospheric river is.
        untold: Where it cannot be told whether a river is there, or whether the cells are of a cyclone.
        missing: Where a field needed to tell is missing.
    """
    conditions = [missing, cyclones, untold, rivers]
    classes = [MISSING_LABEL, TROPICAL_CYCLONE, MISSING_LABEL, ATMOSPHERIC_RIVER]
    return np.select(conditions, classes, BACKGROUND).astype(np.int8)


def without_rivers_near(
    rivers: Mask, lat: Floats, lon: Floats, points: Sequence[tuple[float, float]], degrees: float
) -> Mask:
    """The rivers without their cells near cyclones, as TempestExtremes' ``NodeFileFilter`` does.

    Args:
        rivers: (lat, lon).
        lat: (lat,) degrees, ascending.
        lon: (lon,) degrees, ascending.
        points: Latitude and longitude of each cyclone.
        degrees: Of arc; cells at this distance or nearer are taken out. 0 takes none.
    """
    if degrees <= 0 or not points:
        return rivers
    left = rivers.copy()
    for centre_lat, centre_lon in points:
        window, distance = within(lat, lon, centre_lat, centre_lon, degrees)
        left[window.cells] &= distance > degrees
    return left
