"""Atmospheric rivers: long moist filaments with a low-level jet, tied to a low at their poleward end."""

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from climseg.grid import EARTH_RADIUS, away_from, great_circle_distance, unit_vectors
from climseg.synthetic.canvas import Fields, Floats, box, life_cycle, smooth_step
from climseg.synthetic.lows import Low

Indices: TypeAlias = NDArray[np.int64]

# A river is labelled where its own TMQ excess (kg/m2) reaches this, poleward of LABEL_LATITUDE (degrees). With the
# climate's moisture below it, most rivers exceed the damped 24 kg/m2 of Kurth et al. 2018 up to middle latitudes.
LABEL_EXCESS: Final = 8.0
LABEL_LATITUDE: Final = 20.0
_POINTS: Final = 96  # along a river's axis: less than 80 km apart


@dataclass(frozen=True)
class Filament:
    """A moist filament at one time.

    Attributes:
        lat: (points,) of the axis in degrees, from one end to the other.
        lon: (points,) degrees, unwrapped.
        half_width: Distance from the axis in m at which the excess has halved.
        excess: (points,) TMQ excess on the axis in kg/m2.
        jet: (points,) wind along the axis at 850 hPa in m/s.
    """

    lat: Floats
    lon: Floats
    half_width: float
    excess: Floats
    jet: Floats

    @property
    def length(self) -> float:
        """Length of the axis in m."""
        return float(great_circle_distance(self.lat[1:], self.lon[1:], self.lat[:-1], self.lon[:-1]).sum())

    @property
    def is_labelled(self) -> bool:
        """Whether it reaches the labels' threshold anywhere, as a river."""
        return bool(np.any((self.excess >= LABEL_EXCESS) & (np.abs(self.lat) >= LABEL_LATITUDE)))


@dataclass(frozen=True)
class River:
    """A river's whole life.

    Attributes:
        birth: Model day.
        life: Days.
        lat: First latitude of the low in degrees; its sign is the hemisphere.
        lon: First longitude of the low in degrees.
        east: Motion of the whole, degrees of longitude per day.
        poleward: Motion of the low, degrees per day.
        depth: Of the low at its deepest, Pa.
        radius: Of the low, m.
        root: Latitude of the tropical end, degrees from the equator.
        trail: Longitude by which the tropical end lies west of the low when full-grown, degrees.
        bend_lon: How far along the trail the axis bends, 0 to 1.
        bend_lat: How far poleward it has come there, 0 to 1.
        half_width: m.
        excess: TMQ excess of the full-grown river in kg/m2, before it falls with the cosine of latitude.
        jet: Of the full-grown river, m/s.
    """

    birth: float
    life: float
    lat: float
    lon: float
    east: float
    poleward: float
    depth: float
    radius: float
    root: float
    trail: float
    bend_lon: float
    bend_lat: float
    half_width: float
    excess: float
    jet: float

    def at(self, day: float) -> tuple[Filament, Low]:
        """The river and its low on a model day of its life; the river grows longer with age."""
        age = day - self.birth
        sign = float(np.sign(self.lat))
        strength = life_cycle(age / self.life, 0.25, 0.25)
        low_lat, low_lon = abs(self.lat) + self.poleward * age, self.lon + self.east * age
        # A quadratic Bezier curve in longitude and latitude, whose head wraps round the low's poleward side.
        start = np.array([low_lon - self.trail * (0.7 + 0.3 * age / self.life), self.root])
        end = np.array([low_lon + 6.0, low_lat + 2.0])
        bend = start + (end - start) * np.array([self.bend_lon, self.bend_lat])
        s = np.linspace(0.0, 1.0, _POINTS)[:, None]
        axis = (1.0 - s) ** 2 * start + 2.0 * s * (1.0 - s) * bend + s**2 * end
        lat, lon = sign * axis[:, 1], axis[:, 0]
        along = strength * ends(_POINTS, 0.1)
        filament = Filament(lat, lon, self.half_width, self.excess * along * np.cos(np.radians(lat)), self.jet * along)
        return filament, Low(sign * low_lat, low_lon, self.depth * strength, self.radius, 0.0)


def draw_river(rng: np.random.Generator, birth: float, season: float) -> River:
    """A river of either hemisphere, more often of the winter one."""
    sign = 1.0 if rng.random() < 0.5 - 0.12 * season else -1.0
    return River(
        birth=birth,
        life=rng.uniform(2.5, 5.5),
        lat=sign * rng.uniform(38.0, 50.0),
        lon=rng.uniform(0.0, 360.0),
        east=rng.uniform(6.0, 12.0),
        poleward=rng.uniform(0.5, 2.0),
        depth=rng.uniform(1000.0, 3000.0),
        radius=rng.uniform(450e3, 750e3),
        root=rng.uniform(15.0, 24.0),
        trail=rng.uniform(14.0, 48.0),
        bend_lon=rng.uniform(0.45, 0.9),
        bend_lat=rng.uniform(0.1, 0.45),
        half_width=rng.uniform(190e3, 330e3),
        excess=rng.uniform(24.0, 34.0),
        jet=rng.uniform(14.0, 26.0),
    )


def ends(points: int, share: float) -> Floats:
    """1 along an axis of so many points, falling to 0 over this share of it at either end."""
    s = np.linspace(0.0, 1.0, points)
    return np.asarray(smooth_step(s / share) * smooth_step((1.0 - s) / share))


def paint_river(river: Filament, fields: Fields, lat: Floats, lon: Floats) -> None:
    """Add a river: moisture in EXCESS (of several rivers the greatest), its jet, and rain towards its poleward end."""
    found = across_filament(river, lat, lon)
    if found is None:
        return
    at, nearest, across = found
    excess = river.excess[nearest] * profile(across)
    fields["EXCESS"][at] = np.maximum(fields["EXCESS"][at], excess)
    fields["PRECT"][at] += 4e-9 * excess * nearest / river.lat.size
    paint_jet(river, found, fields)


def paint_jet(filament: Filament, found: tuple[Any, Indices, Floats], fields: Fields) -> None:
    """Add the wind along a filament, where ``across_filament`` found it near; half of it at the lowest level."""
    at, nearest, across = found
    _, east, north = away_from(filament.lat[:-1], filament.lon[:-1], filament.lat[1:], filament.lon[1:])
    behind = np.maximum(nearest - 1, 0)
    speed = filament.jet[nearest] * np.exp(-(across**2))
    for name, wind in (("U850", speed * east[behind]), ("V850", speed * north[behind])):
        fields[name][at] += wind
        fields[name.replace("850", "BOT")][at] += 0.5 * wind


def across_filament(filament: Filament, lat: Floats, lon: Floats) -> tuple[Any, Indices, Floats] | None:
    """Where a filament is near: index of the box, nearest axis point, and the distance in half-widths (3 at most)."""
    reach = 3.0 * filament.half_width
    at = box(lat, lon, filament.lat, filament.lon, reach)
    if at is None:
        return None
    points = unit_vectors(lat[at[0]], lon[at[1]])
    tree = cKDTree(unit_vectors(filament.lat, filament.lon))
    chord, nearest = (np.asarray(a) for a in tree.query(points, distance_upper_bound=reach / EARTH_RADIUS))
    # A point beyond the reach comes with an infinite distance and an index past the end.
    return (
        at,
        np.minimum(nearest, filament.lat.size - 1),
        np.minimum(chord * EARTH_RADIUS / filament.half_width, 3.0),
    )


def profile(across: Floats) -> Floats:
    """Excess by distance in half-widths: flat on top, steep at the edge, as a tongue between two air masses is."""
    return np.asarray(np.exp(-np.log(2.0) * across**4))
