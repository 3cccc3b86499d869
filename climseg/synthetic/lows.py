"""Lows of middle latitudes: those at the head of a river, and dry ones that are decoys for a cyclone."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from climseg.grid import destination
from climseg.synthetic.canvas import Fields, Floats, fade, life_cycle, window
from climseg.synthetic.eddies import AIR_DENSITY, coriolis

# Has faded out here (m).
OUTER_RADIUS: Final = 1_500_000.0


@dataclass(frozen=True)
class Low:
    """A low at one time.

    Attributes:
        lat: Of the centre in degrees.
        lon: Of the centre in degrees.
        depth: Below the surroundings in Pa.
        radius: Where the pressure gradient is largest, m.
        dryness: Share of the moisture that is gone from the core.
    """

    lat: float
    lon: float
    depth: float
    radius: float
    dryness: float


@dataclass(frozen=True)
class DryLow:
    """A decoy's whole life: a strong, small, cold and dry low that no label marks.

    Attributes:
        birth: Model day.
        life: Days.
        lat: First latitude of the centre in degrees; its sign is the hemisphere.
        lon: First longitude in degrees.
        east: Motion, degrees of longitude per day.
        poleward: Motion, degrees per day.
        depth: At its deepest, Pa.
        radius: m.
    """

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
        lat = self.lat + float(np.sign(self.lat)) * self.poleward * age
        return Low(lat, self.lon + self.east * age, self.depth * strength, self.radius, 0.35 * strength)


def draw_dry_low(rng: np.random.Generator, birth: float, season: float) -> DryLow:
    """A dry low born between 27 and 58 degrees, more often in the winter hemisphere."""
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


def paint_low(low: Low, fields: Fields, lat: Floats, lon: Floats) -> None:
    """Add a Gaussian low with its gradient wind; aloft, somewhat to the west, it is cold at 500 and warm at 200 hPa."""
    near = window(lat, lon, low.lat, low.lon, OUTER_RADIUS)
    if near is not None:
        at, r = near.index, near.distance
        shape = np.exp(-0.5 * (r / low.radius) ** 2) * fade(r, OUTER_RADIUS)
        turn = 0.5 * r * abs(float(coriolis(low.lat)))
        speed = np.sqrt(low.depth * shape * (r / low.radius) ** 2 / AIR_DENSITY + turn**2) - turn
        sense = float(np.sign(low.lat))
        fields["PSL"][at] -= low.depth * shape
        fields["U850"][at] -= sense * near.north * speed
        fields["V850"][at] += sense * near.east * speed
        fields["DRY"][at] += low.dryness * shape
        fields["PRECT"][at] += 2e-11 * low.depth * shape * (1.0 - low.dryness)
    aloft_lat, aloft_lon = destination(low.lat, low.lon, 270.0, 3.0)
    aloft = window(lat, lon, float(aloft_lat), float(aloft_lon), OUTER_RADIUS)
    if aloft is not None:
        at, r = aloft.index, aloft.distance
        depth = low.depth * np.exp(-0.5 * (r / low.radius) ** 2) * fade(r, OUTER_RADIUS)
        fields["T500"][at] -= 0.0022 * depth
        fields["T200"][at] += 0.0012 * depth
        fields["Z200"][at] -= 0.09 * depth
