"""Made continents: a handful of ellipses, very loosely where the Earth's are, with plateaus and ranges on them."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from climseg.grid import longitude_difference

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class _Ellipse:
    lat: float
    lon: float
    half_lat: float
    half_lon: float
    height: float  # m at the centre
    is_land: bool = True  # a range on a continent adds height only


_ELLIPSES: Final = (
    _Ellipse(52, 75, 21, 62, 500),
    _Ellipse(35, 88, 8, 14, 3600, False),
    _Ellipse(8, 20, 24, 17, 750),
    _Ellipse(52, 258, 19, 30, 500),
    _Ellipse(45, 250, 14, 8, 1500, False),
    _Ellipse(-15, 302, 22, 13, 300),
    _Ellipse(-22, 291, 22, 4, 2600, False),
    _Ellipse(-25, 134, 9, 15, 350),
    _Ellipse(73, 318, 9, 15, 2400),
    _Ellipse(-90, 0, 20, 720, 2900),
)


def land_fraction(lat: ArrayLike, lon: ArrayLike) -> Floats:
    """0 over sea, 1 over land, with a soft coast; ``lat`` and ``lon`` in degrees broadcast."""
    sea = np.ones(np.broadcast_shapes(np.shape(lat), np.shape(lon)))
    for ellipse in _ELLIPSES:
        if ellipse.is_land:
            sea *= 1.0 - 1.0 / (1.0 + np.exp(np.minimum((_reach(ellipse, lat, lon) - 1.0) / 0.06, 60.0)))
    return np.asarray(1.0 - sea)


def terrain_height(lat: ArrayLike, lon: ArrayLike) -> Floats:
    """Surface height in m, never negative; ``lat`` and ``lon`` in degrees broadcast."""
    height = np.zeros(np.broadcast_shapes(np.shape(lat), np.shape(lon)))
    for ellipse in _ELLIPSES:
        height += ellipse.height * np.exp(-(np.minimum(_reach(ellipse, lat, lon), 10.0) ** 2))
    return np.asarray(height * land_fraction(lat, lon))


def _reach(ellipse: _Ellipse, lat: ArrayLike, lon: ArrayLike) -> Floats:
    """Squared distance from the centre, 1 on the ellipse, with bays and capes."""
    north = (np.asarray(lat, dtype=np.float64) - ellipse.lat) / ellipse.half_lat
    east = longitude_difference(lon, ellipse.lon) / ellipse.half_lon
    phi, lam = np.radians(np.asarray(lat, dtype=np.float64)), np.radians(np.asarray(lon, dtype=np.float64))
    coast = np.sin(7.0 * lam + 3.0 * np.sin(9.0 * phi)) * np.cos(11.0 * phi + 2.0 * np.sin(5.0 * lam))
    return np.asarray(np.maximum(north**2 + east**2 + 0.45 * coast * np.cos(phi), 0.0))
