"""Which values the options of definitions can have: an impossible one is refused before any file is read."""

import functools
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from climseg.errors import InputError

# By the name of an option: what it can be. Others are any finite number.
_RANGES: Final = {
    "percentile": (0.0, 100.0),
    "min_probability": (0.0, 1.0),
    "min_coherent_share": (0.0, 1.0),
    "min_latitude": (0.0, 90.0),
    "max_latitude": (0.0, 90.0),
    "radius_degrees": (1e-3, 180.0),  # a divisor
    "damping_degrees": (1e-3, 180.0),  # a divisor
}
# Degrees of arc: no two points of a sphere are further apart.
_DEGREES: Final = (0.0, 180.0)


def check_options(where: str, options: Mapping[str, Any]) -> None:
    """Refuse numbers that an option cannot be.

    Args:
        where: The group of keys to name, such as ``labels.rivers``.
        options: Values by name; the name says the unit (``..._degrees``). What is no number passes.

    Raises:
        InputError: One is not finite, or lies beyond its range; the key, the value and the range are named.
    """
    for name, value in options.items():
        if not isinstance(value, int | float) or isinstance(value, bool):
            continue
        low, high = _RANGES.get(name, _DEGREES if name.endswith("_degrees") else (-np.inf, np.inf))
        if not (np.isfinite(value) and low <= value <= high):
            among = f"a number from {low:g} to {high:g}" if np.isfinite(low) else "a finite number"
            raise InputError(f"{where}.{name}={value:g}: expected {among}.")


def check_definition(where: str, definition: Callable[..., Any] | None) -> None:
    """The same for the options that a ``functools.partial`` gives a definition.

    Raises:
        InputError: As :func:`check_options`; or there is no definition.
    """
    if not callable(definition):
        raise InputError(f"{where}={'null' if definition is None else definition}: a definition is expected here.")
    if isinstance(definition, functools.partial):
        check_options(where, definition.keywords)
