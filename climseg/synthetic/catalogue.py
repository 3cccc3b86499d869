"""Who lives when: objects drawn from the seed, epoch by epoch, and the truth about them for tests of tracking."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Protocol, TypeVar

import numpy as np

from climseg.channels import ATMOSPHERIC_RIVER, TROPICAL_CYCLONE
from climseg.synthetic.clock import model_days, season, time_axis
from climseg.synthetic.cyclones import Cyclone, draw_cyclone
from climseg.synthetic.decoys import Blob, Plume, draw_blob, draw_plume
from climseg.synthetic.lows import DryLow, draw_dry_low
from climseg.synthetic.rivers import River, draw_river

# Every epoch has its own random numbers; no object lives as long as one.
EPOCH_DAYS: Final = 30.0
_STREAM: Final = 2  # of random numbers; eddies.py uses 1
_OFFSET: Final = 1_000_000

# Births per day. There are more storms than on Earth, so that few steps hold enough of them to learn from.
_RATES: Final = {"cyclone": 0.75, "river": 3.0, "dry_low": 2.2, "plume": 2.0, "blob": 2.4}


class _Mortal(Protocol):
    @property
    def birth(self) -> float: ...
    @property
    def life(self) -> float: ...


M = TypeVar("M", bound=_Mortal)


@dataclass(frozen=True)
class Catalogue:
    """The objects of some span, in a fixed order; ids are unique within a seed and a calendar."""

    cyclones: tuple[tuple[str, Cyclone], ...]
    rivers: tuple[tuple[str, River], ...]
    dry_lows: tuple[DryLow, ...]
    plumes: tuple[Plume, ...]
    blobs: tuple[Blob, ...]


@dataclass(frozen=True)
class TrueObject:
    """One labelled object at one time.

    Attributes:
        id: The same through its life, for example ``"TC-12-3"`` (epoch 12, number 3).
        label: Class number, ``TROPICAL_CYCLONE`` or ``ATMOSPHERIC_RIVER``.
        time: datetime64 or cftime, whichever was asked for.
        lat: Centre in degrees; of a river: the middle of its axis.
        lon: Centre in degrees, 0 to 360.
        radius: Of the labelled disk of a cyclone, or half the width of a river, in m.
        length: Of a river's axis in m; 0 for a cyclone.
        drop: Central pressure of a cyclone, or of the river's low, below the surroundings in Pa.
        wind: Largest own wind at 850 hPa in m/s.
        excess: Greatest TMQ excess on a river's axis in kg/m2; 0 for a cyclone.
    """

    id: str
    label: int
    time: Any
    lat: float
    lon: float
    radius: float
    length: float
    drop: float
    wind: float
    excess: float


def true_objects(times: Iterable[Any], seed: int = 0) -> list[TrueObject]:
    """The cyclones and rivers behind the labels of ``make_atmosphere``, in order of time, cyclones first.

    Each is listed while it reaches its label's threshold somewhere.

    Args:
        times: As for ``make_atmosphere``.
        seed: As for ``make_atmosphere``.
    """
    axis = time_axis(times)
    days, year_length = model_days(axis)
    found = []
    for time, day in zip(axis.values, days, strict=True):
        alive = objects_at(seed, float(day), year_length)
        for name, cyclone in alive.cyclones:
            state = cyclone.at(float(day))
            if state.label_radius > 0.0:
                where = {"lat": state.lat, "lon": state.lon, "radius": state.label_radius, "length": 0.0}
                what = {"drop": state.drop, "wind": state.max_wind, "excess": 0.0}
                found.append(TrueObject(name, TROPICAL_CYCLONE, time, **where, **what))
        for name, river in alive.rivers:
            filament, low = river.at(float(day))
            if filament.is_labelled:
                middle = filament.lat.size // 2
                where = {
                    "lat": float(filament.lat[middle]),
                    "lon": float(filament.lon[middle] % 360.0),
                    "radius": filament.half_width,
                    "length": filament.length,
                }
                what = {
                    "drop": low.depth,
                    "wind": float(filament.jet.max()),
                    "excess": float(filament.excess.max()),
                }
                found.append(TrueObject(name, ATMOSPHERIC_RIVER, time, **where, **what))
    return found


def objects_at(seed: int, day: float, year_length: float) -> Catalogue:
    """The objects alive at a model day; only this epoch's and the last one's can be."""
    epoch = int(np.floor(day / EPOCH_DAYS))
    before, now = (_epoch(seed, e, year_length) for e in (epoch - 1, epoch))
    return Catalogue(
        tuple(x for c in (before, now) for x in c.cyclones if _lives(x[1], day)),
        tuple(x for c in (before, now) for x in c.rivers if _lives(x[1], day)),
        tuple(x for c in (before, now) for x in c.dry_lows if _lives(x, day)),
        tuple(x for c in (before, now) for x in c.plumes if _lives(x, day)),
        tuple(x for c in (before, now) for x in c.blobs if _lives(x, day)),
    )


def _lives(thing: _Mortal, day: float) -> bool:
    return thing.birth < day < thing.birth + thing.life


@lru_cache(maxsize=16)
def _epoch(seed: int, epoch: int, year_length: float) -> Catalogue:
    """All objects born in one epoch."""

    def births(kind: str, draw: Callable[[np.random.Generator, float, float], M]) -> tuple[M, ...]:
        rng = np.random.default_rng([seed, _STREAM, epoch + _OFFSET, list(_RATES).index(kind)])
        # Spread evenly with a jitter, so that no step is empty by chance.
        count = round(_RATES[kind] * EPOCH_DAYS)
        days = EPOCH_DAYS * (epoch + (np.arange(count) + rng.random(count)) / count)
        return tuple(draw(rng, float(day), season(float(day), year_length)) for day in days)

    return Catalogue(
        tuple((f"TC-{epoch}-{i}", x) for i, x in enumerate(births("cyclone", draw_cyclone))),
        tuple((f"AR-{epoch}-{i}", x) for i, x in enumerate(births("river", draw_river))),
        births("dry_low", draw_dry_low),
        births("plume", draw_plume),
        births("blob", draw_blob),
    )
