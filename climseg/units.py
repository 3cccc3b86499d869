"""Unit conversion by a file's ``units`` attribute, through pint with CF spellings; never by looking at values."""

import re
from functools import cache

import cf_xarray.units  # noqa: F401  (registers UDUNITS spellings such as "kg m-2" with pint)
import pint
import xarray as xr

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


def convert_units(variable: xr.DataArray, target: str, origin: str) -> xr.DataArray:
    """Convert a variable to ``target`` units by its own ``units`` attribute.

    Args:
        variable: Any dims; lazy arrays stay lazy.
        target: UDUNITS spelling, for example ``"kg m-2"``.
        origin: The file to name in an error.

    Returns:
        A new array with the attribute ``units`` set to ``target``.

    Raises:
        InputError: The attribute is absent, unknown or measures something else.
    """
    source = variable.attrs.get("units")
    if not isinstance(source, str) or not source.strip():
        raise InputError(
            f"{origin}: variable {variable.name} has no units attribute; expected one that converts to {target!r}. "
            "Add it (for example with ncatted); units are never guessed from values."
        )
    try:
        scale, offset = _linear_conversion(source, target)
    except Exception as error:  # pint raises many kinds, from its own and from its parser's
        raise InputError(
            f"{origin}: variable {variable.name} is in {source!r}, which does not convert to {target!r}."
        ) from error
    out = variable if (scale, offset) == (1.0, 0.0) else variable * scale + offset
    return out.assign_attrs(variable.attrs | {"units": target})
