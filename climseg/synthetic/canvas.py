"""The grid asked for, and the fields that objects paint on it, each within its own window."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from climseg.grid import EARTH_RADIUS, away_from, longitude_difference

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Window:
    """The part of a grid near a centre.

    Attributes:
        index: Selects the window from a field (lat, lon); usable on both sides of an assignment.
        lat: (rows, 1) degrees.
        lon: (1, columns) degrees.
        distance: (rows, columns) from the centre in m.
        east: Eastward part of the unit vector away from the centre.
        north: Northward part of it.
    """

    index: Any
    lat: Floats
    lon: Floats
    distance: Floats
    east: Floats
    north: Floats


def window(lat: Floats, lon: Floats, lat0: float, lon0: float, radius: float) -> Window | None:
    """All points of the grid ``lat`` x ``lon`` within ``radius`` m of a centre (and some more), or None for none.

    What is painted must have faded out at ``radius``, so that it does not depend on the window.
    """
    reach = np.degrees(radius / EARTH_RADIUS)
    rows = np.flatnonzero(np.abs(lat - lat0) <= reach)
    polar = np.cos(np.radians(min(abs(lat0) + reach, 90.0)))
    sideways = 180.0 if polar < 1e-3 else min(reach / polar, 180.0)
    columns = np.flatnonzero(np.abs(longitude_difference(lon, lon0)) <= sideways)
    if rows.size == 0 or columns.size == 0:
        return None
    near_lat, near_lon = lat[rows][:, None], lon[columns][None, :]
    return Window(np.ix_(rows, columns), near_lat, near_lon, *away_from(lat0, lon0, near_lat, near_lon))


def box(lat: Floats, lon: Floats, south_north: Floats, west_east: Floats, margin: float) -> Any:
    """Index of all points of the grid within ``margin`` m of a line given by its latitudes and (unwrapped) longitudes."""
    reach = np.degrees(margin / EARTH_RADIUS)
    south, north = float(south_north.min()) - reach, float(south_north.max()) + reach
    polar = np.cos(np.radians(min(max(abs(south), abs(north)), 90.0)))
    sideways = 180.0 if polar < 1e-3 else reach / polar
    middle, half = 0.5 * float(west_east.min() + west_east.max()), 0.5 * float(np.ptp(west_east))
    rows = np.flatnonzero((lat >= south) & (lat <= north))
    columns = np.flatnonzero(np.abs(longitude_difference(lon, middle)) <= half + sideways)
    return np.ix_(rows, columns) if rows.size and columns.size else None


def smooth_step(x: ArrayLike) -> Floats:
    """0 below 0, 1 above 1, ``3x^2 - 2x^3`` between."""
    inside = np.clip(np.asarray(x, dtype=np.float64), 0.0, 1.0)
    return np.asarray(inside**2 * (3.0 - 2.0 * inside))


def life_cycle(share: float, growth: float, decay: float) -> float:
    """Strength from 0 to 1 and back over a life; ``growth`` and ``decay`` are the shares of it that these take."""
    return float(smooth_step(share / growth) * smooth_step((1.0 - share) / decay))
