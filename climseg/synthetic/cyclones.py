"""Tropical cyclones: Holland's pressure and wind, a warm and moist core, a track, growth and decay."""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from climseg.synthetic.canvas import Fields, Floats, fade, life_cycle, window
from climseg.synthetic.eddies import AIR_DENSITY, coriolis
from climseg.synthetic.surface import continents

# A cyclone is labelled out to the last radius where its own tangential wind still reaches this (m/s): the r8 of
# TempestExtremes (Ullrich et al. 2021), whose wind is the whole one averaged round the storm.
LABEL_WIND: Final = 8.0
# The pressure anomaly has faded out here (m).
OUTER_RADIUS: Final = 1_500_000.0
_RADII: Final = np.arange(1_000.0, OUTER_RADIUS, 2_000.0)


def holland_deficit(radius: ArrayLike, drop: float, radius_max_wind: float, shape: float) -> Floats:
    """Pressure below the surroundings in Pa, ``drop (1 - exp(-(Rmax/r)^B))`` (Holland 1980, eq. 3)."""
    return np.asarray(-drop * np.expm1(-((radius_max_wind / np.maximum(radius, 1.0)) ** shape)))


def holland_wind(radius: ArrayLike, drop: float, radius_max_wind: float, shape: float, lat: float) -> Floats:
    """Gradient wind of Holland's vortex in m/s, always positive (Holland 1980, eq. 5).

    On the equator its maximum is ``sqrt(B drop / (rho e))`` at ``radius_max_wind``.

    Args:
        radius: m, any shape.
        drop: Central pressure below the surroundings in Pa.
        radius_max_wind: m.
        shape: Holland's B.
        lat: Latitude of the centre in degrees.
    """
    r = np.maximum(np.asarray(radius, dtype=np.float64), 1.0)
    x = (radius_max_wind / r) ** shape
    turn = 0.5 * r * abs(float(coriolis(lat)))
    return np.asarray(np.sqrt(shape * drop / AIR_DENSITY * x * np.exp(-x) + turn**2) - turn)


@dataclass(frozen=True)
class CycloneState:
    """A cyclone at one time.

    Attributes:
        lat: Of the centre in degrees.
        lon: Of the centre in degrees, 0 to 360.
        drop: Central pressure below the surroundings in Pa.
        radius_max_wind: m.
        shape: Holland's B.
        outer_radius: Where its wind has vanished, m; Holland's alone falls too slowly there (Chavas et al. 2015).
        outflow: By how much Z200 rises for the first kelvin of warmth at 500 hPa, m/K.
    """

    lat: float
    lon: float
    drop: float
    radius_max_wind: float
    shape: float
    outer_radius: float
    outflow: float = 25.0

    def wind(self, radius: ArrayLike) -> Floats:
        """Tangential wind in m/s at 850 hPa."""
        holland = holland_wind(radius, self.drop, self.radius_max_wind, self.shape, self.lat)
        return np.asarray(holland * fade(radius, self.outer_radius, 0.5))

    @cached_property
    def max_wind(self) -> float:
        """Largest tangential wind in m/s."""
        return float(self.wind(_RADII).max())

    @cached_property
    def label_radius(self) -> float:
        """Radius of the labelled disk in m; 0 while the wind nowhere reaches LABEL_WIND."""
        strong = np.flatnonzero(self.wind(_RADII) >= LABEL_WIND)
        return float(_RADII[strong[-1]]) if strong.size else 0.0


@dataclass(frozen=True)
class Cyclone:
    """A cyclone's whole life.

    Attributes:
        birth: Model day.
        life: Days.
        lat: Genesis latitude in degrees; its sign is the hemisphere.
        lon: Genesis longitude in degrees.
        west: First westward motion, degrees of longitude per day.
        recurve: Eastward acceleration, degrees of longitude per day squared.
        poleward: First poleward motion, degrees per day.
        poleward_gain: Poleward acceleration, degrees per day squared.
        drop: Central pressure below the surroundings at its deepest, Pa.
        radius_max_wind: When young, m.
        shape: Holland's B.
        outer_radius: When young, m.
    """

    birth: float
    life: float
    lat: float
    lon: float
    west: float
    recurve: float
    poleward: float
    poleward_gain: float
    drop: float
    radius_max_wind: float
    shape: float
    outer_radius: float

    def at(self, day: float) -> CycloneState:
        """Where and how strong it is on a model day of its life: weaker over land, wider with age."""
        age = day - self.birth
        share = age / self.life
        lat = self.lat + float(np.sign(self.lat)) * (self.poleward * age + self.poleward_gain * age**2)
        lon = (self.lon - self.west * age + self.recurve * age**2) % 360.0
        drop = self.drop * life_cycle(share, 0.2, 0.15) * (1.0 - 0.5 * float(continents(lat, lon)[0]))
        wider = 1.0 + 0.3 * share
        return CycloneState(lat, lon, drop, self.radius_max_wind * wider, self.shape, self.outer_radius * wider)


def draw_cyclone(rng: np.random.Generator, birth: float, season: float) -> Cyclone:
    """A cyclone born over sea, 7 to 18 degrees from the equator, more often in the summer hemisphere."""
    sign = 1.0 if rng.random() < 0.5 + 0.3 * season else -1.0
    while True:
        lat, lon = sign * rng.uniform(7.0, 18.0), rng.uniform(0.0, 360.0)
        if continents(lat, lon)[0] < 0.05:
            break
    return Cyclone(
        birth=birth,
        life=rng.uniform(4.0, 10.0),
        lat=lat,
        lon=lon,
        west=rng.uniform(2.5, 5.5),
        recurve=rng.uniform(0.1, 0.45),
        poleward=rng.uniform(0.4, 1.5),
        poleward_gain=rng.uniform(0.02, 0.16),
        drop=float(np.clip(rng.lognormal(np.log(3600.0), 0.4), 1800.0, 10000.0)),
        radius_max_wind=rng.uniform(45e3, 85e3),
        shape=rng.uniform(1.2, 1.6),
        outer_radius=rng.uniform(520e3, 820e3),
    )


def paint_cyclone(state: CycloneState, fields: Fields, lat: Floats, lon: Floats) -> None:
    """Add a cyclone: low pressure and cyclonic wind, a warm core aloft, a moist core as wide as the label, spiral rain.

    Z200 rises a little over the warm core, so that the thickness above the low rises much.
    """
    near = window(lat, lon, state.lat, state.lon, OUTER_RADIUS)
    if near is None:
        return
    at, r = near.index, near.distance
    deficit = holland_deficit(r, state.drop, state.radius_max_wind, state.shape)
    fields["PSL"][at] -= deficit * fade(r, OUTER_RADIUS)
    speed = state.wind(r)
    sense = float(np.sign(state.lat))
    u, v = -sense * near.north * speed, sense * near.east * speed
    fields["U850"][at] += u
    fields["V850"][at] += v
    # At the lowest level weaker and turned inwards by 20 degrees.
    fields["UBOT"][at] += 0.85 * (0.94 * u - 0.34 * near.east * speed)
    fields["VBOT"][at] += 0.85 * (0.94 * v - 0.34 * near.north * speed)
    # 1 K for every 10 hPa of the drop at 500 hPa, a little less at 200 hPa.
    warmth = state.drop / 1000.0 * np.exp(-((r / (2.8 * state.radius_max_wind)) ** 2))
    fields["T500"][at] += warmth
    fields["T200"][at] += 0.8 * warmth
    fields["Z200"][at] += state.outflow * warmth / (1.0 + 0.2 * warmth)

    strength = min(state.drop / 2500.0, 1.0)
    core = strength * np.exp(-((r / max(1.06 * state.label_radius, 150e3)) ** 8))
    bands = 0.5 + 0.5 * np.cos(2.0 * (sense * np.arctan2(near.north, near.east) + 6.0 * np.log1p(r / 150e3)))
    fields["TMQ"][at] += core * (0.72 + 0.13 * bands) * np.maximum(62.0 - fields["TMQ"][at], 0.0)
    fields["QREFHT"][at] += 0.8 * core * np.maximum(0.0185 - fields["QREFHT"][at], 0.0)
    eyewall = np.exp(-(((r - state.radius_max_wind) / (0.8 * state.radius_max_wind)) ** 2))
    fields["PRECT"][at] += 4e-7 * strength * (core * bands + 6.0 * strength * eyewall)
