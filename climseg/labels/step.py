"""What the definitions of rivers and cyclones look at, and what they find: one time step, without xarray."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from climseg.grid import Floats
from climseg.labels.regions import Mask
from climseg.labels.windows import Window

Field = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Step:
    """The fields of one time step.

    Attributes:
        fields: (lat, lon) float32 by channel name, in canonical units; missing values are NaN.
        lat: (lat,) degrees, ascending.
        lon: (lon,) degrees, ascending from a first value in [0, 360).
        month: 1 to 12, of the time step.
        explain: Whether a definition should also give what falls short of the threshold by which it looks for
            candidates, so that a storm that is not found can be looked up.
    """

    fields: Mapping[str, Field]
    lat: Floats
    lon: Floats
    month: int = 1
    explain: bool = False


@dataclass(frozen=True)
class RegionTable:
    """Connected regions that a definition of rivers looked at; every array is (n,), element k of region k.

    Attributes:
        measures: By name with unit, such as ``area_km2``; ``lat`` and ``lon`` (the area-weighted middle) are there
            always, the longitude by a circular mean.
        failed: By the name of a criterion, where it rejects the region.
    """

    measures: Mapping[str, NDArray[Any]]
    failed: Mapping[str, NDArray[np.bool_]]

    @property
    def kept(self) -> NDArray[np.bool_]:
        """(n,) the regions that no criterion rejects."""
        return np.asarray(~np.logical_or.reduce(list(self.failed.values())))


@dataclass(frozen=True)
class Rivers:
    """What a definition of rivers finds in one time step.

    Attributes:
        mask: (lat, lon) the rivers.
        untold: (lat, lon) the cells where this cannot be told: a value is missing, or what must be seen round the cell
            lies beyond an open grid.
        regions: What was looked at, for explanations.
    """

    mask: Mask
    untold: Mask
    regions: RegionTable


@dataclass(frozen=True)
class Candidate:
    """A point that may be a tropical cyclone, and what was found there.

    Attributes:
        row: Latitude index of the pressure minimum (of the point looked at, where there is none).
        column: Longitude index of the same point.
        lat: Degrees, of the same point.
        lon: Degrees, of the same point.
        psl: Pa there.
        wind: m/s, the strongest near it at the lowest level; the definition says how near.
        measures: What else was measured, by name with unit, such as ``vorticity_per_s``; NaN where a criterion that
            failed before kept it from being measured. The names are the same for all candidates of a definition.
        rejected_by: The criteria that fail; none for a storm.
    """

    row: int
    column: int
    lat: float
    lon: float
    psl: float = np.nan
    wind: float = np.nan
    measures: Mapping[str, float] = field(default_factory=dict)
    rejected_by: tuple[str, ...] = ()


@dataclass(frozen=True)
class StormRegion:
    """The cells that are marked for one candidate.

    Attributes:
        window: A piece of the grid.
        mask: (rows, columns) of that piece: the marked cells.
        radius: Degrees of arc, the size of the storm by the definition of the region; NaN where that cannot be told.
        told: False where what must be seen reaches beyond an open grid: the cells may be of the storm or not.
    """

    window: Window
    mask: Mask
    radius: float
    told: bool = True
