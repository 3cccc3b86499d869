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
    _Ellipse(52, 75, 23, 66, 450),
    _Ellipse(35, 88, 8, 14, 3600, False),
    _Ellipse(8, 38, 27, 20, 700),
    _Ellipse(52, 258, 21, 34, 450),
    _Ellipse(45, 250, 14, 8, 1500, False),
    _Ellipse(-15, 302, 25, 16, 300),
    _Ellipse(-22, 291, 22, 4, 2600, False),
    _Ellipse(-25, 134, 11, 18, 300),
    _Ellipse(73, 318, 10, 18, 2400),
    _Ellipse(-90, 0, 20, 720, 2900),
)


def continents(lat: ArrayLike, lon: ArrayLike) -> tuple[Floats, Floats]:
    """Land fraction (0 over sea, 1 over land, a soft coast between) and surface height in m, never negative.

    Args:
        lat: Degrees; broadcasts with ``lon``.
        lon: Degrees.
    """
    rows, columns = np.asarray(lat, dtype=np.float64), np.asarray(lon, dtype=np.float64)
    phi, lam = np.radians(rows), np.radians(columns)
    # Bays and capes; whole waves round the globe, so that nothing shows at the seam.
    coast = np.sin(7.0 * lam + 3.0 * np.sin(9.0 * phi)) * np.cos(11.0 * phi + 2.0 * np.sin(5.0 * lam))
    coast *= 0.45 * np.cos(phi)
    sea, height = np.ones(coast.shape), np.zeros(coast.shape)
    for ellipse in _ELLIPSES:
        north = ((rows - ellipse.lat) / ellipse.half_lat) ** 2
        east = (longitude_difference(columns, ellipse.lon) / ellipse.half_lon) ** 2
        reach = np.clip(north + east + coast, 0.0, 5.0)  # 1 on the ellipse
        height += ellipse.height * np.exp(-(reach**2))
        if ellipse.is_land:
            sea *= 1.0 - 1.0 / (1.0 + np.exp((reach - 1.0) / 0.06))
    return 1.0 - sea, (1.0 - sea) * height
