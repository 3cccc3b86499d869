"""A builder of small netCDF files."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

LAT = np.linspace(-90.0, 90.0, 7)
LON = np.arange(0.0, 360.0, 45.0)


@pytest.fixture
def write_file(tmp_path: Path) -> Callable[..., Path]:
    """A function that writes ``fields`` into a netCDF file of the test's own folder.

    A field is a value or an array that broadcasts to ``dims`` (or to the dims it names itself), then its units or None.
    """

    def write(
        name: str,
        fields: dict[str, tuple[Any, ...]],
        times: Sequence[Any] | None = ("2001-01-01",),
        lat: Any = LAT,
        lon: Any = LON,
        dims: tuple[str, str, str] = ("time", "lat", "lon"),
        extra: dict[str, Any] | None = None,
        **options: Any,
    ) -> Path:
        t, y, x = dims
        coordinates: dict[str, Any] = {y: lat, x: lon}
        if times is not None:
            cftimes = hasattr(times[0], "calendar")
            coordinates = {t: list(times) if cftimes else np.array(times, "datetime64[ns]")} | coordinates
        coordinates |= extra or {}
        sizes = xr.Dataset(coords=coordinates).sizes
        variables = {}
        for variable, (values, units, *own_dims) in fields.items():
            axes = own_dims[0] if own_dims else tuple(d for d in dims if d in coordinates)
            shape = [sizes[axis] for axis in axes]
            values = np.asarray(values, dtype=getattr(values, "dtype", np.float32))
            attributes = {} if units is None else {"units": units}
            variables[variable] = (axes, np.broadcast_to(values, shape), attributes)
        path = tmp_path / name
        xr.Dataset(variables, coords=coordinates).to_netcdf(path, **options)
        return path

    return write
