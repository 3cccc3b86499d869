"""The fields that objects paint on, each within its own window of the grid."""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from climseg.grid import EARTH_RADIUS, away_from, longitude_difference

Floats: TypeAlias = NDArray[np.float64]
# Arrays (lat, lon) by channel name, changed in place; and two more, which ``atmosphere`` uses up:
# DRY, the share of the moisture that dry lows take away, and EXCESS, the TMQ excess of rivers.
Fields: TypeAlias = dict[str, Floats]


@dataclass(frozen=True)
class Window:
    """The part of a grid near a centre.

    Attributes:
        index: Selects the window from a field (lat, lon); usable on both sides of an assignment.
        distance: (rows, columns) from the centre in m.
        east: Eastward part of the unit vector away from the centre.
        north: Northward part of it.
    """

    index: Any
    distance: Floats
    east: Floats
    north: Floats


def window(lat: Floats, lon: Floats, lat0: float, lon0: float, radius: float) -> Window | None:
    """The points of the grid ``lat`` x ``lon`` within ``radius`` m of a centre (and some more), or None for none."""
    index = box(lat, lon, np.array([lat0]), np.array([lon0]), radius)
    if index is None:
        return None
    return Window(index, *away_from(lat0, lon0, lat[index[0]], lon[index[1]]))


def box(lat: Floats, lon: Floats, south_north: Floats, west_east: Floats, margin: float) -> Any:
    """Index of the points of the grid within ``margin`` m (and some more) of a line, or None for none.

    Whether a point lies in it depends on the point and the line alone, not on the grid.

    Args:
        lat: (lat,) degrees of the grid.
        lon: (lon,) degrees of the grid.
        south_north: Latitudes of the line.
        west_east: Longitudes of the line, unwrapped.
        margin: m.
    """
    reach = float(np.degrees(margin / EARTH_RADIUS))
    south, north = float(south_north.min()) - reach, float(south_north.max()) + reach
    narrowest = np.cos(np.radians(min(max(-south, north), 90.0)))
    sideways = 180.0 if narrowest < 1e-3 else reach / narrowest
    middle, half = 0.5 * float(west_east.min() + west_east.max()), 0.5 * float(np.ptp(west_east))
    rows = np.flatnonzero((lat >= south) & (lat <= north))
    columns = np.flatnonzero(np.abs(longitude_difference(lon, middle)) <= half + sideways)
    return np.ix_(rows, columns) if rows.size and columns.size else None


def smooth_step(x: ArrayLike) -> Floats:
    """0 below 0, 1 above 1, ``3x^2 - 2x^3`` between."""
    inside = np.clip(np.asarray(x, dtype=np.float64), 0.0, 1.0)
    return np.asarray(inside**2 * (3.0 - 2.0 * inside))


def fade(radius: ArrayLike, end: float, start: float = 0.6) -> Floats:
    """1 near a centre, falling smoothly from the share ``start`` of the radius ``end`` to 0 there."""
    return np.asarray(1.0 - smooth_step((np.asarray(radius) / end - start) / (1.0 - start)))


def life_cycle(share: float, growth: float, decay: float) -> float:
    """Strength from 0 to 1 and back over a life; ``growth`` and ``decay`` are the shares of it that these take."""
    return float(smooth_step(share / growth) * smooth_step((1.0 - share) / decay))
