"""The grid that a benchmark makes its fields on."""

from typing import Any

import numpy as np
from omegaconf import ListConfig

from climseg.errors import InputError


def global_grid(value: object) -> tuple[Any, Any]:
    """Latitudes and longitudes of ``grid=[rows,columns]``, poles included."""
    if not isinstance(value, ListConfig) or len(value) != 2 or not all(isinstance(n, int) and n > 1 for n in value):
        raise InputError(f"grid={value}: expected the numbers of rows and columns, such as [192,288].")
    rows, columns = value
    return np.linspace(-90, 90, rows), np.arange(columns) * (360 / columns)
