"""What unit values look like that a channel's own unit cannot give: a hint for a message, never a conversion."""

from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from climseg.channels import CHANNELS
from climseg.grid import GRAVITY
from climseg.units import unit_conversion

# Other units in which files hold a channel, by the channel's name or by its canonical units: what a message calls the
# unit, the unit for the conversion, and the factor that leads from the one to the other (1 kg m-2 of water is 1 mm).
_Unit = tuple[str, str, float]
_OTHER_UNITS: Final[dict[str, tuple[_Unit, ...]]] = {
    "PRECT": (("kg m-2 s-1", "mm s-1", 1.0), ("mm h-1", "mm h-1", 1.0), ("mm day-1", "mm day-1", 1.0)),
    **dict.fromkeys(("Z1000", "Z500", "Z300", "Z200"), (("m2 s-2", "m", 1.0 / GRAVITY), ("km", "km", 1.0))),
    "Pa": (("hPa", "hPa", 1.0), ("kPa", "kPa", 1.0)),
    "K": (("degC", "degC", 1.0),),
    "kg kg-1": (("g kg-1", "g kg-1", 1.0),),
    "kg m-2": (("g m-2", "g m-2", 1.0),),
    "m": (("km", "km", 1.0),),
    "m s-1": (("km h-1", "km h-1", 1.0), ("knots", "knot", 1.0)),
    "s-1": (("1e-5 s-1", "s-1", 1e-5),),
}
# Where zero is possible, any large unit makes values small enough: the largest must still reach this part of the limit.
_SMALLEST_PART: Final = 1e-3


def likely_units(channel: str, values: ArrayLike) -> str:
    """Units mistakes that would explain all the values of a field, in words such as ``hPa labelled Pa``.

    Both directions are tried: values in another unit that carry the canonical unit's name, and values in the canonical
    unit that carry the other's name and were converted.

    Args:
        channel: Name of the channel.
        values: What came, taken for the channel's unit; not finite ones are left out.

    Returns:
        The mistakes; an empty string where none explains the values.
    """
    finite = np.asarray(values, dtype=np.float64)
    finite = finite[np.isfinite(finite)]
    if finite.size == 0:
        return ""
    ends = np.array([finite.min(), finite.max()])
    unit = CHANNELS[channel].units
    mislabelled, converted = [], []
    for words, spelled, factor in _OTHER_UNITS.get(channel, _OTHER_UNITS.get(unit, ())):
        scale, offset = unit_conversion(spelled, unit, channel, "the table of other units")
        if _fits(channel, factor * scale * ends + offset):
            mislabelled.append(words)
        if _fits(channel, (ends - offset) / (factor * scale)):
            converted.append(words)
    mistakes = [f"{' or '.join(mislabelled)} labelled {unit}"] if mislabelled else []
    mistakes += [f"{unit} labelled {' or '.join(converted)}"] if converted else []
    return ", or ".join(mistakes)


def looks_too_small(channel: str, smallest: float, largest: float) -> bool:
    """Whether a whole global field of a channel that may be zero stays near zero, as after one conversion too many.

    Args:
        channel: Name of the channel.
        smallest: Of a field that covers the globe.
        largest: Of the same field.
    """
    lowest, highest = CHANNELS[channel].plausible
    return lowest <= 0.0 and max(-smallest, largest) < _SMALLEST_PART * highest


def _fits(channel: str, ends: NDArray[np.float64]) -> bool:
    lowest, highest = CHANNELS[channel].plausible
    large_enough = lowest > 0.0 or np.abs(ends).max() >= _SMALLEST_PART * highest
    return bool(lowest <= ends[0] and ends[1] <= highest and large_enough)
