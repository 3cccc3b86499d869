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
        (-1, -4, 2, 8, 6, 0, -5, -5, -3, -6, -6, -1, 3, 4, 1, -1, 0),
        (-2, -4, 2, 8, 6, 0, -6, -7, -4, -2, -3, -2, 2, 3, 1, -1, 0),
    ),
    "VBOT": (
        (1, 2, -1, -1, 0, 1, 2, 1, -2, -3, -2, 0, 1, 1, 0, 0, 0),
        (2, 3, -1, -1, -1, 1, 3, 4, 3, 0, -1, -1, 0, 1, 0, 0, 0),
    ),
    "TMQ": (
        (0.8, 1.5, 6, 10, 14, 22, 34, 48, 46, 36, 24, 15, 10, 7, 4.5, 2.5, 2),
        (0.3, 0.6, 3.5, 7, 10, 15, 24, 36, 44, 48, 42, 30, 24, 20, 16.5, 12, 10.5),
    ),
    "PSL": (
        (992, 987, 984, 996, 1012, 1015, 1012, 1009, 1009, 1011, 1015, 1019, 1018, 1013, 1010, 1012, 1014),
        (1000, 993, 986, 997, 1013, 1020, 1017, 1013, 1011, 1010, 1010, 1012, 1013, 1012, 1010, 1012, 1012),
    ),
    "T500": (
        (233, 234, 242, 250, 258, 264, 267.5, 268, 267.5, 267, 265, 259, 251, 243, 237, 232, 230),
        (221, 225, 237, 246, 254, 261, 265.5, 267.5, 267.5, 268, 268.5, 267.5, 263, 256, 251, 246, 244),
    ),
    "T200": (
        (224, 222, 219, 216, 215, 216, 217.5, 218.5, 219, 218.5, 217, 214, 212, 212, 210, 203, 200),
        (186, 191, 203, 210, 213, 215, 216.5, 218, 218.5, 219, 219, 218.5, 216, 216, 218, 221, 223),
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
