"""Zonal-mean climate: what every channel is without weather, by latitude and season.

The tables were written down by hand after general knowledge of the zonal-mean circulation (trade winds, westerlies
that are stronger in the south, a moisture band that follows the sun, cold poles), and were then shifted so that the
area-unweighted means of whole years meet those of the DeepCAM data set. They are no climatology.
"""

from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import PchipInterpolator

Floats = NDArray[np.float64]

_LATITUDES: Final = (-90, -75, -60, -50, -40, -30, -20, -10, 0, 10, 20, 30, 40, 50, 60, 75, 90)
# Two rows each: January, July. TSEA is the 2 m temperature (K) reduced to sea level; PSL in hPa, TMQ in kg/m2.
_TABLES: Final[dict[str, tuple[tuple[float, ...], tuple[float, ...]]]] = {
    "U850": (
        (-1, -3, 4, 12, 10, 2, -4, -5, -3, -7, -5, 1, 6, 7, 4, 1, 0),
        (0, -1, 6, 12, 9, 3, -5, -8, -5, -2, -2, -1, 4, 5, 3, 1, 0),
    ),
    "UBOT": (
        (-0.4, -3.4, 2.6, 8.6, 6.6, 0.6, -4.4, -4.4, -2.4, -5.4, -5.4, -0.4, 3.6, 4.6, 1.6, -0.4, 0.6),
        (-1.4, -3.4, 2.6, 8.6, 6.6, 0.6, -5.4, -6.4, -3.4, -1.4, -2.4, -1.4, 2.6, 3.6, 1.6, -0.4, 0.6),
    ),
    "VBOT": (
        (0.8, 1.8, -1.2, -1.2, -0.2, 0.8, 1.8, 0.8, -2.2, -3.2, -2.2, -0.2, 0.8, 0.8, -0.2, -0.2, -0.2),
        (1.8, 2.8, -1.2, -1.2, -1.2, 0.8, 2.8, 3.8, 2.8, -0.2, -1.2, -1.2, -0.2, 0.8, -0.2, -0.2, -0.2),
    ),
    "TMQ": (
        (0.8, 1.5, 6.2, 10.3, 14.4, 22.7, 35, 49.4, 47.4, 37.1, 24.7, 15.5, 10.3, 7.2, 4.6, 2.6, 2.1),
        (0.3, 0.6, 3.6, 7.2, 10.3, 15.5, 24.7, 37.1, 45.3, 49.4, 43.3, 30.9, 24.7, 20.6, 17, 12.4, 10.8),
    ),
    "PSL": (
        (993, 988, 985, 997, 1014, 1017, 1014, 1011, 1010, 1012, 1016, 1020, 1020, 1015, 1012, 1014, 1016),
        (1001, 994, 987, 998, 1014, 1022, 1019, 1015, 1012, 1011, 1011, 1013, 1015, 1014, 1012, 1014, 1014),
    ),
    "T500": (
        (235, 236, 244, 252, 260, 265.5, 267.8, 268.3, 268, 267.5, 265.8, 261, 253, 245, 239, 234, 232),
        (223, 227, 239, 248, 256, 262.5, 266, 267.8, 267.8, 268.3, 268.8, 268, 264.5, 258, 253, 248, 246),
    ),
    "T200": (
        (223, 221, 218, 215, 214, 215, 217, 218, 218, 218, 216, 213, 211, 211, 209, 202, 199),
        (185, 190, 202, 209, 212, 214, 216, 217, 218, 218, 218, 218, 215, 215, 217, 220, 222),
    ),
    "TSEA": (
        (263, 267, 273.5, 279, 287, 294.5, 299, 300, 299.8, 299, 296.5, 290, 281, 271, 262, 249, 245),
        (243, 249, 267, 276, 284, 290.5, 296, 299, 299.5, 300.5, 300.5, 298.5, 294, 287.5, 283, 275, 272.5),
    ),
}


def zonal_mean(name: str, lat: Floats, season: float) -> Floats:
    """The zonal mean of a table at latitudes of any shape (beyond a pole: the pole's), units as in the table.

    Args:
        name: ``U850``, ``UBOT``, ``VBOT``, ``TMQ``, ``PSL`` (hPa), ``T500``, ``T200`` or ``TSEA``.
        lat: Degrees.
        season: From -1 (January) to 1 (July).
    """
    january, july = _curves(name)
    inside = np.clip(lat, -90.0, 90.0)
    share = 0.5 * (1.0 + season)
    return np.asarray((1.0 - share) * january(inside) + share * july(inside))


@cache
def _curves(name: str) -> tuple[PchipInterpolator, PchipInterpolator]:
    january, july = (PchipInterpolator(_LATITUDES, values) for values in _TABLES[name])
    return january, july
