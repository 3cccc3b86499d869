"""Channels beyond CAM5's 16, made from these: transport of water vapour, and heights at 300 and 500 hPa."""

from typing import Final

import numpy as np

from climseg.grid import GRAVITY
from climseg.synthetic.canvas import Fields

GAS_CONSTANT: Final = 287.05  # of dry air, J/kg/K
FURTHER_CHANNELS: Final = ("IVT", "UIVT", "VIVT", "Z300", "Z500")
# Wind that carries the column's water vapour over the wind at 850 hPa: most vapour lies lower, where friction slows
# the wind. With it trade winds carry up to 300 kg/m/s and full-grown rivers 500 to 1200.
TRANSPORT_SHARE: Final = 0.8


def add_further_channels(fields: Fields) -> None:
    """Add ``FURTHER_CHANNELS`` (lat, lon), float64, by formulas that hold everywhere, over an object or not.

    - UIVT, VIVT: TMQ times 0.8 of the wind at 850 hPa; IVT: the magnitude, kg/m/s.
    - Z500, Z300 (m): the hypsometric equation downward from Z200, the temperature linear in the logarithm of pressure
      between T500 and T200.

    Args:
        fields: TMQ, U850, V850, Z200, T200 and T500 in canonical units.
    """
    for name, wind in (("UIVT", "U850"), ("VIVT", "V850")):
        fields[name] = TRANSPORT_SHARE * fields["TMQ"] * fields[wind]
    fields["IVT"] = np.hypot(fields["UIVT"], fields["VIVT"])
    scale, upper, lower = GAS_CONSTANT / GRAVITY, fields["T200"], fields["T500"]
    fields["Z500"] = fields["Z200"] - scale * 0.5 * (upper + lower) * np.log(500.0 / 200.0)
    # The mean temperature of a layer is that at the middle of its logarithms of pressure.
    share = 0.5 * np.log(500.0 / 300.0) / np.log(500.0 / 200.0)
    fields["Z300"] = fields["Z500"] + scale * ((1.0 - share) * lower + share * upper) * np.log(500.0 / 300.0)
