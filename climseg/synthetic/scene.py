"""Made weather with objects at places of the caller's choice, so that definitions of rivers and cyclones can be tested.

Cyclones, rivers and decoys (``placed``) lie in a quiet zonal climate: no random waves, the same at every longitude,
by default without land and at the equinox at all dates. What is not an object is known to be none, so that a definition
must find every cyclone and river, and nothing else.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from climseg.channels import CAM5_CHANNELS
from climseg.errors import InputError
from climseg.synthetic.atmosphere import Grid, as_dataset, paint_step, prepare_grid
from climseg.synthetic.clock import model_days, time_axis
from climseg.synthetic.eddies import Eddies
from climseg.synthetic.further import FURTHER_CHANNELS
from climseg.synthetic.placed import Decoy, PlacedCyclone, PlacedRiver


class _Mortal(Protocol):
    @property
    def birth(self) -> float: ...
    @property
    def death(self) -> float: ...


M = TypeVar("M", bound=_Mortal)


def make_scene(
    times: Iterable[Any],
    lat: ArrayLike,
    lon: ArrayLike,
    *,
    cyclones: Sequence[PlacedCyclone] = (),
    rivers: Sequence[PlacedRiver] = (),
    decoys: Sequence[Decoy] = (),
    start: Any = None,
    season: float = 0.0,
    land: bool = False,
) -> xr.Dataset:
    """Make a canonical Dataset of a scene: CAM5's 16 channels, IVT, UIVT, VIVT, Z300, Z500 and LABELS, the truth.

    The labels follow the rules of the made atmosphere (see the package). Every value depends on the objects, the time
    since ``start`` and the place alone, whatever other times and places are asked for.

    Args:
        times: Increasing dates, datetime64, pandas, datetime or cftime.
        lat: (lat,) degrees, at least two.
        lon: (lon,) degrees, evenly spaced, at least two. The result has both axes in canonical order.
        cyclones: Labelled 1; a later one is painted over an earlier one.
        rivers: Labelled 2 where no cyclone is.
        decoys: Not labelled.
        start: The date from which the objects' hours count, of the kind of ``times``; by default the first time.
        season: Of the climate: -1 (January) to 1 (July).
        land: Whether the made continents are there.

    Raises:
        InputError: The axes or the season are not as said.
    """
    if not -1.0 <= season <= 1.0:
        raise InputError(f"season is {season:g}; expected -1 (January) to 1 (July).")
    axis, grid = time_axis(times), prepare_grid(lat, lon, all_sea=not land)
    days = model_days(axis)[0]
    first = days[0] if start is None else model_days(time_axis([start]))[0][0]
    calm, steps = _calm(grid), []
    for hours in np.round((days - first) * 24.0, 6):
        now = float(hours)
        present = _alive(decoys, now)
        steps.append(
            paint_step(
                grid,
                calm,
                season,
                stirring=[partial(decoy.paint, now) for decoy in present if decoy.stirs],
                moist=[partial(decoy.paint, now) for decoy in present if not decoy.stirs],
                rivers=[river.at(now) for river in _alive(rivers, now)],
                cyclones=[cyclone.at(now) for cyclone in _alive(cyclones, now)],
                channels=(*CAM5_CHANNELS, *FURTHER_CHANNELS),
            )
        )
    return as_dataset(steps, axis, grid)


def _alive(things: Iterable[M], hours: float) -> list[M]:
    return [thing for thing in things if thing.birth <= hours <= thing.death]


def _calm(grid: Grid) -> Eddies:
    """No waves at all."""
    still = np.zeros((grid.lat.size, grid.lon.size))
    return Eddies(u=still, v=still, height=still, thickness=still, origin=still, humidity=still, convection=still)
