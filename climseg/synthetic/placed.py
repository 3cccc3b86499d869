"""Weather at places of the caller's choice: cyclones, rivers, and things that are neither, for ``scene``.

Hours count from the start of the scene. A thing lives from its ``birth`` to its ``death``, both included, and has its
full strength all that time.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Final, Protocol, TypeAlias

import numpy as np

from climseg.grid import EARTH_RADIUS, destination, great_circle_distance
from climseg.synthetic.canvas import Fields, Floats, fade, window
from climseg.synthetic.cyclones import CycloneState
from climseg.synthetic.decoys import Blob, paint_blob, paint_plume
from climseg.synthetic.lows import Low, paint_low
from climseg.synthetic.rivers import Filament, ends

# Latitude and longitude in degrees by hours since the start of the scene.
Place: TypeAlias = Callable[[float], tuple[float, float]]
_POINT_SPACING: Final = 60e3  # along an axis, m


@dataclass(frozen=True)
class Course:
    """A place that moves along a great circle, or stands still.

    Attributes:
        lat: Degrees, at hour 0.
        lon: Degrees, at hour 0.
        bearing: Direction there, degrees clockwise from north.
        speed: m/s.
    """

    lat: float
    lon: float
    bearing: float = 0.0
    speed: float = 0.0

    def __call__(self, hours: float) -> tuple[float, float]:
        """Latitude, and longitude in [0, 360)."""
        arc = float(np.degrees(self.speed * 3600.0 * hours / EARTH_RADIUS))
        lat, lon = destination(self.lat, self.lon, self.bearing, arc)
        return float(lat), float(lon) % 360.0


class Decoy(Protocol):
    """Something that no label marks."""

    @property
    def stirs(self) -> bool:
        """Whether its wind brings air from elsewhere, so that it is painted before the air masses and not after."""

    @property
    def birth(self) -> float:
        """Hour."""

    @property
    def death(self) -> float:
        """Hour."""

    def paint(self, hours: float, fields: Fields, lat: Floats, lon: Floats) -> None:
        """Add it to the fields (lat, lon) as it is at that hour."""


@dataclass(frozen=True)
class PlacedCyclone:
    """A tropical cyclone.

    Attributes:
        place: Of the centre.
        drop: Central pressure below the surroundings, Pa.
        radius_max_wind: m.
        shape: Holland's B.
        outer_radius: Where its wind has vanished, m.
        outflow: See ``CycloneState``; more than there, so that a storm stands out from the slope of middle latitudes.
        birth: Hour.
        death: Hour.
    """

    place: Place
    drop: float = 6000.0
    radius_max_wind: float = 55e3
    shape: float = 1.4
    outer_radius: float = 600e3
    outflow: float = 45.0
    birth: float = -np.inf
    death: float = np.inf

    def at(self, hours: float) -> CycloneState:
        """The cyclone at that hour."""
        return CycloneState(
            *self.place(hours), self.drop, self.radius_max_wind, self.shape, self.outer_radius, self.outflow
        )


@dataclass(frozen=True)
class PlacedRiver:
    """An atmospheric river: its axis leads from ``start`` to ``end`` and leans towards ``bend``.

    The axis is a quadratic Bezier curve in longitude and latitude. Longitudes count on over the seam.

    Attributes:
        start: Latitude and longitude in degrees where it begins, at hour 0; the wind blows from here.
        bend: The point that pulls the axis.
        end: Where it ends.
        half_width: Distance from the axis at which the excess has halved, m.
        excess: TMQ excess on the axis before it falls with the cosine of latitude, kg/m2.
        jet: Wind along the axis at 850 hPa, m/s.
        east: Motion of the whole, degrees of longitude per day.
        birth: Hour.
        death: Hour.
    """

    start: tuple[float, float]
    bend: tuple[float, float]
    end: tuple[float, float]
    half_width: float = 210e3
    excess: float = 32.0
    jet: float = 22.0
    east: float = 0.0
    birth: float = -np.inf
    death: float = np.inf

    def at(self, hours: float) -> Filament:
        """The river at that hour."""
        lat, lon = _bezier(self.start, self.bend, self.end)
        along = ends(lat.size, 0.08)
        excess = self.excess * along * np.cos(np.radians(lat))
        return Filament(lat, lon + self.east * hours / 24.0, self.half_width, excess, self.jet * along)


@dataclass(frozen=True)
class PlacedLow:
    """A low with a cold core, as ``lows`` has them: no cyclone, however deep.

    Attributes:
        place: Of the centre.
        depth: Below the surroundings, Pa.
        radius: Where the pressure gradient is largest, m.
        dryness: Share of the moisture that is gone from the core.
        birth: Hour.
        death: Hour.
    """

    place: Place
    depth: float
    radius: float
    dryness: float = 0.0
    birth: float = -np.inf
    death: float = np.inf
    stirs: ClassVar[bool] = True

    def paint(self, hours: float, fields: Fields, lat: Floats, lon: Floats) -> None:
        """Add the low."""
        paint_low(Low(*self.place(hours), self.depth, self.radius, self.dryness), fields, lat, lon)


@dataclass(frozen=True)
class PlacedBlob:
    """A round cloud of moisture.

    Attributes:
        place: Of the middle.
        radius: Where the excess has fallen to 1/e, m.
        excess: TMQ excess in the middle, kg/m2.
        wind: Eastward and northward wind at 850 hPa that carries it, m/s in the middle.
        birth: Hour.
        death: Hour.
    """

    place: Place
    radius: float
    excess: float
    wind: tuple[float, float] = (0.0, 0.0)
    birth: float = -np.inf
    death: float = np.inf
    stirs: ClassVar[bool] = False

    def paint(self, hours: float, fields: Fields, lat: Floats, lon: Floats) -> None:
        """Add its moisture, rain and wind."""
        here_lat, here_lon = self.place(hours)
        # In the middle of its life a blob is full-grown.
        grown = Blob(birth=-0.5, life=1.0, lat=here_lat, lon=here_lon, west=0.0, radius=self.radius, excess=self.excess)
        paint_blob(grown, 0.0, fields, lat, lon)
        reach = 2.5 * self.radius
        near = window(lat, lon, here_lat, here_lon, reach)
        if near is not None:
            shape = np.exp(-((near.distance / self.radius) ** 2)) * fade(near.distance, reach)
            for name, speed in zip(("U850", "V850"), self.wind, strict=True):
                fields[name][near.index] += speed * shape


@dataclass(frozen=True)
class PlacedPlume:
    """A moist filament like a river, but short.

    Attributes:
        start: Latitude and longitude in degrees where it begins; the wind blows from here.
        bend: The point that pulls the axis.
        end: Where it ends.
        half_width: Distance from the axis at which the excess has halved, m.
        excess: TMQ excess on the middle of the axis, kg/m2.
        jet: Wind along the axis at 850 hPa, m/s.
        birth: Hour.
        death: Hour.
    """

    start: tuple[float, float]
    bend: tuple[float, float]
    end: tuple[float, float]
    half_width: float = 120e3
    excess: float = 15.0
    jet: float = 8.0
    birth: float = -np.inf
    death: float = np.inf
    stirs: ClassVar[bool] = False

    def paint(self, hours: float, fields: Fields, lat: Floats, lon: Floats) -> None:
        """Add its moisture, rain and wind."""
        del hours
        axis_lat, axis_lon = _bezier(self.start, self.bend, self.end)
        along = ends(axis_lat.size, 0.3)
        plume = Filament(axis_lat, axis_lon, self.half_width, self.excess * along, self.jet * along)
        paint_plume(plume, fields, lat, lon)


@dataclass(frozen=True)
class HeatLow:
    """A shallow low over hot ground: pressure and wind near the surface, nothing aloft.

    Attributes:
        place: Of the centre.
        depth: Below the surroundings, Pa.
        radius: Where the pressure gradient is largest, m.
        warmth: Of the air at 2 m, K; the ground is half as much warmer again.
        inflow: Cyclonic wind at the lowest level, m/s.
        birth: Hour.
        death: Hour.
    """

    place: Place
    depth: float = 900.0
    radius: float = 350e3
    warmth: float = 8.0
    inflow: float = 6.0
    birth: float = -np.inf
    death: float = np.inf
    stirs: ClassVar[bool] = False

    def paint(self, hours: float, fields: Fields, lat: Floats, lon: Floats) -> None:
        """Add the low."""
        here_lat, here_lon = self.place(hours)
        near = window(lat, lon, here_lat, here_lon, 4.0 * self.radius)
        if near is None:
            return
        at, x = near.index, near.distance / self.radius
        shape = np.exp(-0.5 * x**2) * fade(x, 4.0)
        fields["PSL"][at] -= self.depth * shape
        fields["TREFHT"][at] += self.warmth * shape
        fields["TS"][at] += 1.5 * self.warmth * shape
        speed = self.inflow * x * np.exp(0.5) * shape
        fields["UBOT"][at] -= np.sign(here_lat) * near.north * speed
        fields["VBOT"][at] += np.sign(here_lat) * near.east * speed


@dataclass(frozen=True)
class ShearLine:
    """A line of cyclonic vorticity from west to east, with opposite winds on its sides and a shallow trough.

    Attributes:
        place: Of the middle.
        half_length: m.
        width: Over which the wind turns, m.
        wind: On either side at 850 hPa, m/s: the vorticity on the line is wind over width.
        trough: Depth in PSL, Pa.
        birth: Hour.
        death: Hour.
    """

    place: Place
    half_length: float = 900e3
    width: float = 70e3
    wind: float = 16.0
    trough: float = 150.0
    birth: float = -np.inf
    death: float = np.inf
    stirs: ClassVar[bool] = True

    def paint(self, hours: float, fields: Fields, lat: Floats, lon: Floats) -> None:
        """Add the line."""
        here_lat, here_lon = self.place(hours)
        near = window(lat, lon, here_lat, here_lon, 1.5 * self.half_length)
        if near is None:
            return
        north = near.distance * near.north / self.width
        shape = np.exp(-((near.distance * near.east / self.half_length) ** 4) - (north / 5.0) ** 2)
        shape *= fade(near.distance, 1.5 * self.half_length, 0.7)
        fields["U850"][near.index] -= np.sign(here_lat) * self.wind * np.tanh(north) * shape
        fields["PSL"][near.index] -= self.trough * shape


def _bezier(start: tuple[float, float], bend: tuple[float, float], end: tuple[float, float]) -> tuple[Floats, Floats]:
    """Latitudes and longitudes of a quadratic Bezier curve, its points some 60 km apart."""
    curve = np.array([start, bend, end])
    legs = great_circle_distance(curve[1:, 0], curve[1:, 1], curve[:-1, 0], curve[:-1, 1])
    s = np.linspace(0.0, 1.0, max(int(legs.sum() / _POINT_SPACING) + 1, 9))[:, None]
    axis = (1.0 - s) ** 2 * curve[0] + 2.0 * s * (1.0 - s) * curve[1] + s**2 * curve[2]
    return axis[:, 0], axis[:, 1]
