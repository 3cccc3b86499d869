"""Moist things that are no river, and that no label marks."""

from dataclasses import dataclass

import numpy as np

from climseg.synthetic.canvas import Fields, Floats, fade, life_cycle, window
from climseg.synthetic.rivers import Filament, across_filament, ends, paint_jet, profile


@dataclass(frozen=True)
class Plume:
    """A whole life of a filament too short for a river and without a jet.

    Attributes:
        birth: Model day.
        life: Days.
        lat: Latitude of its middle in degrees.
        lon: First longitude of its middle in degrees.
        east: Motion, degrees of longitude per day.
        rise: Latitude that it spans, degrees.
        trail: Longitude that it spans, degrees.
        half_width: m.
        excess: TMQ excess on the axis when full-grown, kg/m2.
    """

    birth: float
    life: float
    lat: float
    lon: float
    east: float
    rise: float
    trail: float
    half_width: float
    excess: float

    def at(self, day: float) -> Filament:
        """The plume on a model day of its life."""
        age = day - self.birth
        along = life_cycle(age / self.life, 0.3, 0.3) * ends(24, 0.4)
        s = np.linspace(-0.5, 0.5, along.size)
        lat = self.lat + float(np.sign(self.lat)) * self.rise * s
        lon = self.lon + self.east * age + self.trail * s
        return Filament(lat, lon, self.half_width, self.excess * along, 0.0 * along)


def draw_plume(rng: np.random.Generator, birth: float, season: float) -> Plume:
    """A plume of 400 to 1400 km between 24 and 46 degrees, at any season."""
    del season
    sign = 1.0 if rng.random() < 0.5 else -1.0
    return Plume(
        birth=birth,
        life=rng.uniform(1.5, 4.0),
        lat=sign * rng.uniform(24.0, 46.0),
        lon=rng.uniform(0.0, 360.0),
        east=rng.uniform(3.0, 10.0),
        rise=rng.uniform(3.0, 8.0),
        trail=rng.uniform(3.0, 10.0),
        half_width=rng.uniform(170e3, 300e3),
        excess=rng.uniform(12.0, 20.0),
    )


def paint_plume(plume: Filament, fields: Fields, lat: Floats, lon: Floats) -> None:
    """Add a plume's moisture and rain, and its jet if it has one."""
    found = across_filament(plume, lat, lon)
    if found is None:
        return
    at, nearest, across = found
    excess = plume.excess[nearest] * profile(across)
    fields["TMQ"][at] += excess
    fields["PRECT"][at] += 2.5e-9 * excess
    if np.any(plume.jet):
        paint_jet(plume, found, fields)


@dataclass(frozen=True)
class Blob:
    """A whole life of a cloud of tropical moisture with rain.

    Attributes:
        birth: Model day.
        life: Days.
        lat: Degrees.
        lon: First longitude in degrees.
        west: Motion, degrees of longitude per day.
        radius: m.
        excess: TMQ excess in its middle when full-grown, kg/m2.
    """

    birth: float
    life: float
    lat: float
    lon: float
    west: float
    radius: float
    excess: float


def draw_blob(rng: np.random.Generator, birth: float, season: float) -> Blob:
    """A blob within 18 degrees of the moisture band, which follows the season."""
    return Blob(
        birth=birth,
        life=rng.uniform(2.0, 7.0),
        lat=5.0 * season + rng.uniform(-18.0, 18.0),
        lon=rng.uniform(0.0, 360.0),
        west=rng.uniform(-3.0, 6.0),
        radius=rng.uniform(250e3, 700e3),
        excess=rng.uniform(6.0, 14.0),
    )


def paint_blob(blob: Blob, day: float, fields: Fields, lat: Floats, lon: Floats) -> None:
    """Add a blob's moisture and rain on a model day of its life."""
    age = day - blob.birth
    reach = 2.5 * blob.radius
    near = window(lat, lon, blob.lat, blob.lon - blob.west * age, reach)
    if near is None:
        return
    shape = np.exp(-((near.distance / blob.radius) ** 2)) * fade(near.distance, reach)
    excess = blob.excess * life_cycle(age / blob.life, 0.3, 0.3) * shape
    fields["TMQ"][near.index] += excess
    fields["PRECT"][near.index] += 1.2e-8 * excess * shape
