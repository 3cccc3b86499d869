"""Builders of small files of every kind that a source reads."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import yaml

LAT = np.linspace(-90.0, 90.0, 7)
LON = np.arange(0.0, 360.0, 45.0)


@pytest.fixture
def write_file(tmp_path: Path) -> Callable[..., Path]:
    """A function that writes ``fields`` into a netCDF file of the test's own folder.

    A field is a value or an array that broadcasts to ``dims`` (or to the dims it names itself), then its units or None.
    ``attributes`` are further ones by variable, those of the file under an empty name.
    """

    def write(
        name: str,
        fields: dict[str, tuple[Any, ...]],
        times: Sequence[Any] | None = ("2001-01-01",),
        lat: Any = LAT,
        lon: Any = LON,
        dims: tuple[str, str, str] = ("time", "lat", "lon"),
        extra: dict[str, Any] | None = None,
        attributes: Mapping[str, Mapping[str, Any]] | None = None,
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
            variables[variable] = (axes, np.broadcast_to(values, shape), {} if units is None else {"units": units})
        ds = xr.Dataset(variables, coords=coordinates)
        for variable, more in (attributes or {}).items():
            (ds[variable] if variable else ds).attrs.update(more)
        path = tmp_path / name
        ds.to_netcdf(path, **options)
        return path

    return write


@pytest.fixture
def write_table(tmp_path: Path) -> Callable[..., Path]:
    """A function that writes a name table of the given names and further keys."""

    def write(names: Mapping[str, Any], **keys: Any) -> Path:
        path = tmp_path / "names.yaml"
        path.write_text(yaml.safe_dump({"names": dict(names)} | keys))
        return path

    return write


@pytest.fixture
def write_grib(tmp_path: Path) -> Callable[..., Path]:
    """A function that writes one GRIB message for each mapping of ecCodes' keys, on a regular grid.

    ``values`` is an array in scanning order (row by row from the first latitude on), with NaN where it is missing;
    ``lat`` and ``lon`` give the axes in that order. The parameter is named by ``paramId`` or ``shortName``.
    """
    eccodes = pytest.importorskip("eccodes")

    def write(name: str, messages: Sequence[Mapping[str, Any]], sample: str = "regular_ll_sfc_grib2") -> Path:
        path = tmp_path / name
        with path.open("wb") as file:
            for message in messages:
                keys = dict(message)
                lat, lon, values = keys.pop("lat", LAT[::-1]), keys.pop("lon", LON), keys.pop("values")
                handle = eccodes.codes_grib_new_from_samples(keys.pop("sample", sample))
                axes = {
                    "Ni": len(lon),
                    "Nj": len(lat),
                    "iScansNegatively": int(lon[-1] < lon[0]),
                    "jScansPositively": int(lat[-1] > lat[0]),
                    "latitudeOfFirstGridPointInDegrees": lat[0],
                    "latitudeOfLastGridPointInDegrees": lat[-1],
                    "longitudeOfFirstGridPointInDegrees": lon[0],
                    "longitudeOfLastGridPointInDegrees": lon[-1],
                    "iDirectionIncrementInDegrees": abs(lon[1] - lon[0]),
                    "jDirectionIncrementInDegrees": abs(lat[1] - lat[0]),
                    "dataDate": 20010101,
                    "dataTime": 0,
                    "bitsPerValue": 24,
                }
                for key, value in (axes | keys).items():
                    eccodes.codes_set(handle, key, value)
                flat = np.broadcast_to(np.asarray(values, np.float64), (len(lat), len(lon))).ravel()
                if np.isnan(flat).any():
                    eccodes.codes_set(handle, "bitmapPresent", 1)
                    flat = np.where(np.isnan(flat), eccodes.codes_get(handle, "missingValue"), flat)
                eccodes.codes_set_values(handle, flat)
                eccodes.codes_write(handle, file)
                eccodes.codes_release(handle)
        return path

    return write
