"""Moist filaments: atmospheric rivers, which are labelled, and what resembles them and is not."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from climseg.grid import EARTH_RADIUS, great_circle_distance, unit_vectors
from climseg.synthetic.canvas import box, life_cycle, smooth_step, window
from climseg.synthetic.vortices import Low

Floats = NDArray[np.float64]

# A river is labelled where its own TMQ excess (kg/m2) reaches this, poleward of LABEL_LATITUDE (degrees). With what
# lies below it, its core exceeds the 24 kg/m2 of Kurth et al. 2018 up to middle latitudes.
LABEL_EXCESS: Final = 8.0
LABEL_LATITUDE: Final = 20.0
_POINTS: Final = 96  # along the axis: less than 80 km apart


@dataclass(frozen=True)
class Filament:
    """A filament at one time.

    Attributes:
        lat: (points,) of the axis in degrees, from its tropical to its poleward end.
        lon: (points,) degrees, unwrapped.
        half_width: Distance from the axis in m at which the excess has halved.
        excess: TMQ excess in kg/m2 at the equator's warmth; on the axis it falls with the cosine of latitude.
        jet: Wind along the axis at 850 hPa in m/s.
    """

    lat: Floats
    lon: Floats
    half_width: float
    excess: float
    jet: float

    @property
    def greatest_excess(self) -> float:
        """Largest TMQ excess on the axis in kg/m2."""
        return float(self.excess * (_ends(self.lat.size) * np.cos(np.radians(self.lat))).max())

    @property
    def length(self) -> float:
        """Length of the axis in m."""
        return float(great_circle_distance(self.lat[1:], self.lon[1:], self.lat[:-1], self.lon[:-1]).sum())


@dataclass(frozen=True)
class River:
    """A river's whole life, tied to a low at its poleward end.

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
        excess: kg/m2, full-grown.
        jet: m/s, full-grown.
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
        """The river and its low on a model day of its life; it grows longer with age."""
        age = day - self.birth
        sign = np.sign(self.lat)
        low_lat, low_lon = abs(self.lat) + self.poleward * age, self.lon + self.east * age
        strength = life_cycle(age / self.life, 0.25, 0.25)
        trail = self.trail * (0.7 + 0.3 * age / self.life)
        # The head wraps round the low's poleward side; a quadratic Bezier curve in longitude and latitude.
        start = np.array([low_lon - trail, self.root])
        end = np.array([low_lon + 6.0, low_lat + 2.0])
        bend = start + (end - start) * np.array([self.bend_lon, self.bend_lat])
        s = np.linspace(0.0, 1.0, _POINTS)[:, None]
        axis = (1 - s) ** 2 * start + 2 * s * (1 - s) * bend + s**2 * end
        filament = Filament(sign * axis[:, 1], axis[:, 0], self.half_width, self.excess * strength, self.jet * strength)
        low = Low(float(sign * low_lat), float(low_lon % 360.0), self.depth * strength, self.radius, 0.0)
        return filament, low


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


@dataclass(frozen=True)
class Plume:
    """A decoy's whole life: a moist filament too short for a river and without its jet; no label marks it."""

    birth: float
    life: float
    lat: float
    lon: float
    east: float
    rise_lat: float
    rise_lon: float
    half_width: float
    excess: float

    def at(self, day: float) -> Filament:
        """The plume on a model day of its life."""
        age = day - self.birth
        strength = life_cycle(age / self.life, 0.3, 0.3)
        s = np.linspace(-0.5, 0.5, 24)
        lat = self.lat + np.sign(self.lat) * self.rise_lat * s
        return Filament(
            lat, self.lon + self.east * age + self.rise_lon * s, self.half_width, self.excess * strength, 0.0
        )


def draw_plume(rng: np.random.Generator, birth: float, season: float) -> Plume:
    """A plume of 700 to 1300 km between 22 and 48 degrees."""
    del season  # as likely at any time of the year
    sign = 1.0 if rng.random() < 0.5 else -1.0
    return Plume(
        birth=birth,
        life=rng.uniform(1.5, 4.0),
        lat=sign * rng.uniform(24.0, 46.0),
        lon=rng.uniform(0.0, 360.0),
        east=rng.uniform(3.0, 10.0),
        rise_lat=rng.uniform(3.0, 8.0),
        rise_lon=rng.uniform(3.0, 10.0),
        half_width=rng.uniform(170e3, 300e3),
        excess=rng.uniform(14.0, 24.0),
    )


@dataclass(frozen=True)
class Blob:
    """A decoy's whole life: a cloud of tropical moisture with rain; no label marks it."""

    birth: float
    life: float
    lat: float
    lon: float
    west: float
    radius: float
    excess: float

    def at(self, day: float) -> tuple[float, float, float]:
        """Latitude, longitude and TMQ excess on a model day of its life."""
        age = day - self.birth
        return self.lat, self.lon - self.west * age, self.excess * life_cycle(age / self.life, 0.3, 0.3)


def draw_blob(rng: np.random.Generator, birth: float, season: float) -> Blob:
    """A blob within 18 degrees of the moisture band."""
    return Blob(
        birth=birth,
        life=rng.uniform(2.0, 7.0),
        lat=5.0 * season + rng.uniform(-18.0, 18.0),
        lon=rng.uniform(0.0, 360.0),
        west=rng.uniform(-3.0, 6.0),
        radius=rng.uniform(250e3, 700e3),
        excess=rng.uniform(6.0, 14.0),
    )


def paint_blob(blob: Blob, day: float, fields: dict[str, Floats], lat: Floats, lon: Floats) -> None:
    """Add a blob's moisture and rain."""
    lat0, lon0, excess = blob.at(day)
    near = window(lat, lon, lat0, lon0, 2.5 * blob.radius)
    if near is None:
        return
    share = near.distance / blob.radius
    shape = np.exp(-(share**2)) * (1.0 - smooth_step(share - 1.5))
    fields["TMQ"][near.index] += excess * shape
    fields["PRECT"][near.index] += 1.2e-8 * excess * shape**2


def paint_filament(filament: Filament, fields: dict[str, Floats], lat: Floats, lon: Floats) -> None:
    """Add a filament: moisture (kept in EXCESS as the greatest of all rivers there), its jet, and its rain.

    A plume (no jet) adds to TMQ directly, so that EXCESS holds rivers only.
    """
    reach = 3.0 * filament.half_width
    at = box(lat, lon, filament.lat, filament.lon, reach)
    if at is None:
        return
    tree = cKDTree(unit_vectors(filament.lat, filament.lon))
    points = unit_vectors(lat[at[0]], lon[at[1]])
    chord, nearest = tree.query(points.reshape(-1, 3), distance_upper_bound=reach / EARTH_RADIUS)
    chord, nearest = (a.reshape(points.shape[:2]) for a in (chord, nearest))
    nearest = np.minimum(nearest, filament.lat.size - 1)  # points out of reach carry an infinite distance
    across = np.minimum(chord * EARTH_RADIUS, reach) / filament.half_width
    ends = _ends(filament.lat.size)
    along = ends * np.cos(np.radians(filament.lat))
    # Flat on top and steep at the edge, as moist tongues between two air masses are; half at half_width.
    profile = np.exp(-np.log(2.0) * np.minimum(across, 2.9) ** 4) * (across < 2.5)
    excess = filament.excess * along[nearest] * profile
    if filament.jet == 0.0:
        fields["TMQ"][at] += excess
        fields["PRECT"][at] += 2.5e-9 * excess
        return
    fields["EXCESS"][at] = np.maximum(fields["EXCESS"][at], excess)
    heading = np.gradient(unit_vectors(filament.lat, filament.lon), axis=0)
    phi, lam = np.radians(filament.lat), np.radians(filament.lon)
    east = -np.sin(lam) * heading[:, 0] + np.cos(lam) * heading[:, 1]
    north = -np.sin(phi) * (np.cos(lam) * heading[:, 0] + np.sin(lam) * heading[:, 1]) + np.cos(phi) * heading[:, 2]
    norm = np.hypot(east, north)
    speed = filament.jet * ends[nearest] * np.exp(-(np.minimum(across, 5.0) ** 2)) * (across < 2.5)
    u, v = speed * (east / norm)[nearest], speed * (north / norm)[nearest]
    fields["U850"][at] += u
    fields["V850"][at] += v
    fields["UBOT"][at] += 0.5 * u
    fields["VBOT"][at] += 0.5 * v
    fields["PRECT"][at] += 4e-9 * excess * np.linspace(0.0, 1.0, filament.lat.size)[nearest]


def _ends(points: int) -> Floats:
    """1 along an axis, 0 at its two ends."""
    s = np.linspace(0.0, 1.0, points)
    return np.asarray(smooth_step(s / 0.1) * smooth_step((1.0 - s) / 0.1))
