"""Unit conversion by a file's ``units`` attribute, through pint with CF spellings; never by looking at values."""

import re
from functools import cache

import cf_xarray.units  # noqa: F401  (registers UDUNITS spellings such as "kg m-2" with pint)
import pint

from climseg.errors import InputError

# Spellings that occur in climate files and that pint reads otherwise ("mb" as millibarn) or not at all.
_SPELLINGS = {"mb": "millibar", "mbar": "millibar", "Kelvin": "K", "kelvins": "K", "Pascals": "Pa", "fraction": "1"}
# pint reads "deg C" and "degrees Celsius" as a product with an angle: 1 deg C would silently become 0.017 K.
_DEGREES = re.compile(r"deg(?:rees?)?[ _]*(?:(c|celsius)|k|kelvin)", re.IGNORECASE)


@cache
def _linear_conversion(source: str, target: str) -> tuple[float, float]:
    """Scale and offset such that ``target = scale * source + offset``."""
    registry: pint.UnitRegistry[float] = pint.application_registry.get()  # type: ignore[no-untyped-call]
    degrees = _DEGREES.fullmatch(source.strip())
    spelled = ("degC" if degrees[1] else "K") if degrees else _SPELLINGS.get(source.strip(), source)
    zero, one = (registry.Quantity(x, spelled).to(target).magnitude for x in (0.0, 1.0))
    return float(one - zero), float(zero)


def is_convertible(units: object, target: str) -> bool:
    """Whether a ``units`` attribute is a known unit that measures what ``target`` measures."""
    try:
        _linear_conversion(str(units), target)
    except Exception:  # pint raises many kinds, from its own and from its parser's
        return False
    return True


def unit_conversion(units: object, target: str, variable: str, origin: str) -> tuple[float, float]:
    """Scale and offset that convert a variable to ``target`` units by its own ``units`` attribute.

    Args:
        units: The attribute.
        target: UDUNITS spelling, for example ``"kg m-2"``.
        variable: The variable to name in an error.
        origin: The file to name in an error.

    Returns:
        Scale and offset such that ``target = scale * source + offset``.

    Raises:
        InputError: The attribute is absent, unknown or measures something else.
    """
    if not isinstance(units, str) or not units.strip():
        raise InputError(
            f"{origin}: variable {variable} has no units attribute; expected one that converts to {target!r}. "
            "Add it (for example with ncatted); units are never guessed from values."
        )
    try:
        return _linear_conversion(units, target)
    except Exception as error:  # pint raises many kinds, from its own and from its parser's
        raise InputError(
            f"{origin}: variable {variable} is in {units!r}, which does not convert to {target!r}."
        ) from error
