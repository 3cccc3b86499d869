"""Round lows: pressure and wind profiles, tropical cyclones, and the lows of middle latitudes."""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from climseg.grid import destination
from climseg.synthetic.canvas import life_cycle, smooth_step, window
from climseg.synthetic.eddies import coriolis
from climseg.synthetic.surface import land_fraction

Floats = NDArray[np.float64]

AIR_DENSITY: Final = 1.15  # kg/m3
# The pressure of every round low has faded out here (m).
OUTER_RADIUS: Final = 1_500_000.0
# A tropical cyclone is labelled out to the last radius where its own tangential wind still reaches this (m/s): the rule
# of TempestExtremes' mask (Ullrich et al. 2021), whose 8 m/s are of the whole wind averaged round the storm.
LABEL_WIND: Final = 8.0
_RADII: Final = np.arange(1_000.0, OUTER_RADIUS, 2_000.0)


def holland_deficit(radius: ArrayLike, drop: float, radius_max_wind: float, shape: float) -> Floats:
    """Pressure below the surroundings, ``drop (1 - exp(-(Rmax/r)^B))`` (Holland 1980, eq. 3), in the unit of ``drop``."""
    return np.asarray(-drop * np.expm1(-((radius_max_wind / np.maximum(radius, 1.0)) ** shape)))


def holland_wind(radius: ArrayLike, drop: float, radius_max_wind: float, shape: float, lat: float) -> Floats:
    """Gradient wind of Holland's vortex in m/s, always positive (Holland 1980, eq. 5).

    Without the Coriolis force its maximum is ``sqrt(B drop / (rho e))`` at ``radius_max_wind``.

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


def fade(radius: ArrayLike, end: float, start: float = 0.6) -> Floats:
    """1 near a centre, falling smoothly from the share ``start`` of the radius ``end`` to 0 there."""
    return np.asarray(1.0 - smooth_step((np.asarray(radius) / end - start) / (1.0 - start)))


@dataclass(frozen=True)
class CycloneState:
    """A tropical cyclone at one time.

    Attributes:
        lat: Of the centre in degrees.
        lon: Of the centre in degrees.
        drop: Central pressure below the surroundings in Pa.
        radius_max_wind: m.
        shape: Holland's B.
        outer_radius: Where its wind has vanished, m. Holland's profile alone falls too slowly there (Chavas et al. 2015).
    """

    lat: float
    lon: float
    drop: float
    radius_max_wind: float
    shape: float
    outer_radius: float

    def wind(self, radius: ArrayLike) -> Floats:
        """Tangential wind in m/s at 850 hPa."""
        holland = holland_wind(radius, self.drop, self.radius_max_wind, self.shape, self.lat)
        return np.asarray(holland * fade(radius, self.outer_radius, 0.5))

    @property
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
    """A tropical cyclone's whole life.

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
        radius_max_wind: m.
        shape: Holland's B.
        outer_radius: Where its wind has vanished, m.
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
        """Where and how strong it is on a model day of its life; weaker over land, wider when old."""
        age = day - self.birth
        lat = self.lat + np.sign(self.lat) * (self.poleward * age + self.poleward_gain * age**2)
        lon = (self.lon - self.west * age + self.recurve * age**2) % 360.0
        share = age / self.life
        drop = self.drop * life_cycle(share, 0.2, 0.15) * (1.0 - 0.5 * float(land_fraction(lat, lon)))
        wider = 1.0 + 0.3 * share
        return CycloneState(
            float(lat), float(lon), drop, self.radius_max_wind * wider, self.shape, self.outer_radius * wider
        )


def draw_cyclone(rng: np.random.Generator, birth: float, season: float) -> Cyclone:
    """A cyclone born over sea, 6 to 20 degrees from the equator, more often in the summer hemisphere."""
    sign = 1.0 if rng.random() < 0.5 + 0.3 * season else -1.0
    for _ in range(50):
        lat, lon = sign * rng.uniform(7.0, 18.0), rng.uniform(0.0, 360.0)
        if land_fraction(lat, lon) < 0.05:
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
        outer_radius=rng.uniform(450e3, 750e3),
    )


def paint_cyclone(state: CycloneState, fields: dict[str, Floats], lat: Floats, lon: Floats) -> None:
    """Add a tropical cyclone to the fields.

    Low pressure and cyclonic wind after Holland; a warm core at 500 and 200 hPa that balances the pressure fall, so
    that Z200 hardly falls and the thickness rises; a moist core that reaches as far as the label; spiral rain bands.
    """
    near = window(lat, lon, state.lat, state.lon, OUTER_RADIUS)
    if near is None or state.drop <= 0.0:
        return
    at, r = near.index, near.distance
    deficit = holland_deficit(r, state.drop, state.radius_max_wind, state.shape) * fade(r, OUTER_RADIUS)
    speed = state.wind(r)
    sense = np.sign(state.lat)
    u, v = -sense * near.north * speed, sense * near.east * speed
    fields["PSL"][at] -= deficit
    fields["U850"][at] += u
    fields["V850"][at] += v
    # Turned inwards by 20 degrees and weaker at the lowest level.
    inflow = 0.34 * speed
    fields["UBOT"][at] += 0.85 * (0.94 * u - near.east * inflow)
    fields["VBOT"][at] += 0.85 * (0.94 * v - near.north * inflow)
    # 1 K per 10 hPa at 500 hPa, a little less at 200 hPa, spread wider than the pressure deficit.
    warmth = state.drop / 1000.0 * np.exp(-((r / (2.8 * state.radius_max_wind)) ** 2))
    fields["T500"][at] += warmth
    fields["T200"][at] += 0.8 * warmth
    fields["Z200"][at] += 15.0 * warmth / (1.0 + 0.2 * warmth)

    size = max(state.label_radius, 150e3)
    strength = min(state.drop / 2500.0, 1.0)
    core = strength * np.exp(-((r / (1.1 * size)) ** 6))
    bands = 0.5 + 0.5 * np.cos(2.0 * (sense * np.arctan2(near.north, near.east) + 6.0 * np.log1p(r / 150e3)))
    fields["TMQ"][at] += 0.85 * core * np.maximum(62.0 - fields["TMQ"][at], 0.0) * (0.85 + 0.15 * bands)
    fields["QREFHT"][at] += 0.8 * core * np.maximum(0.0185 - fields["QREFHT"][at], 0.0)
    eyewall = 6.0 * np.exp(-(((r - state.radius_max_wind) / (0.8 * state.radius_max_wind)) ** 2))
    fields["PRECT"][at] += 4e-7 * strength * (core * bands + eyewall * strength)


@dataclass(frozen=True)
class Low:
    """A low of middle latitudes at one time: centre (degrees), depth (Pa), radius (m, of the strongest pressure gradient)."""

    lat: float
    lon: float
    depth: float
    radius: float
    dryness: float  # share of the moisture taken away in the core


def paint_low(low: Low, fields: dict[str, Floats], lat: Floats, lon: Floats) -> None:
    """Add a low with a cold core: a Gaussian in pressure with its gradient wind, cold at 500 hPa, warm at 200 hPa.

    Its upper part lies to the west, as in a growing wave.
    """
    near = window(lat, lon, low.lat, low.lon, OUTER_RADIUS)
    if near is None:
        return
    at, r = near.index, near.distance
    deficit = low.depth * np.exp(-0.5 * (r / low.radius) ** 2) * fade(r, OUTER_RADIUS)
    turn = 0.5 * r * abs(float(coriolis(low.lat)))
    speed = np.sqrt(deficit * (r / low.radius) ** 2 / AIR_DENSITY + turn**2) - turn
    sense = np.sign(low.lat)
    fields["PSL"][at] -= deficit
    fields["U850"][at] -= sense * near.north * speed
    fields["V850"][at] += sense * near.east * speed
    fields["DRY"][at] += low.dryness * np.exp(-((r / (1.2 * low.radius)) ** 2))
    fields["PRECT"][at] += 2e-8 * deficit / 1000.0 * (1.0 - low.dryness)
    aloft_lat, aloft_lon = destination(low.lat, low.lon, 270.0, 3.0)
    aloft = window(lat, lon, float(aloft_lat), float(aloft_lon), OUTER_RADIUS)
    if aloft is not None:
        cold = (
            low.depth / 1000.0 * np.exp(-0.5 * (aloft.distance / low.radius) ** 2) * fade(aloft.distance, OUTER_RADIUS)
        )
        fields["T500"][aloft.index] -= 2.2 * cold
        fields["T200"][aloft.index] += 1.2 * cold
        fields["Z200"][aloft.index] -= 90.0 * cold


@dataclass(frozen=True)
class DryLow:
    """A decoy's whole life: a strong, small, cold and dry low that no label marks."""

    birth: float
    life: float
    lat: float
    lon: float
    east: float
    poleward: float
    depth: float
    radius: float

    def at(self, day: float) -> Low:
        """The low on a model day of its life."""
        age = day - self.birth
        strength = life_cycle(age / self.life, 0.4, 0.4)
        lat = self.lat + np.sign(self.lat) * self.poleward * age
        return Low(
            float(lat), (self.lon + self.east * age) % 360.0, self.depth * strength, self.radius, 0.35 * strength
        )


def draw_dry_low(rng: np.random.Generator, birth: float, season: float) -> DryLow:
    """A dry low between 27 and 62 degrees, more often in the winter hemisphere."""
    sign = 1.0 if rng.random() < 0.5 - 0.15 * season else -1.0
    return DryLow(
        birth=birth,
        life=rng.uniform(2.5, 6.0),
        lat=sign * rng.uniform(27.0, 58.0),
        lon=rng.uniform(0.0, 360.0),
        east=rng.uniform(3.0, 11.0),
        poleward=rng.uniform(-0.5, 1.2),
        depth=rng.uniform(1200.0, 3500.0),
        radius=rng.uniform(250e3, 480e3),
    )
