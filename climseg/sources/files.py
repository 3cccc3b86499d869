"""From what a user names as input to lazily opened netCDF files."""

import glob
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import dask.array as da
import netCDF4
import numpy as np
import xarray as xr
from dask.base import tokenize
from numpy.typing import NDArray
from xarray.backends.netCDF4_ import NETCDF4_PYTHON_LOCK

from climseg.errors import InputError, near_matches
from climseg.sources.axes import LATITUDES, LONGITUDES, TIMES
from climseg.sources.netcdf3 import expected_size

logger = logging.getLogger(__name__)

Input = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

# A dask chunk holds no more than this of one variable, whatever chunks the file is stored in.
_LARGEST_CHUNK: Final = 128 * 2**20

_ZARR_MARKS: Final = (".zgroup", ".zmetadata", ".zattrs", "zarr.json")
_NETCDF: Final = (b"CDF\x01", b"CDF\x02", b"CDF\x05", b"\x89HDF\r\n\x1a\n")
# First bytes -> what the file is, and what to do with it.
_OTHER_FORMATS: Final = {
    b"PK\x03\x04": "a zip archive, whatever its name says; unzip it and give the netCDF files inside",
    b"GRIB": "a GRIB file, which this version does not read; convert it to netCDF (for example with cdo -f nc copy)",
    b"\x0e\x03\x13\x01": "an HDF4 file, which this version does not read; convert it to netCDF",
    b"\x1f\x8b": "compressed with gzip; decompress it with gunzip first",
    b"BZh": "compressed with bzip2; decompress it with bunzip2 first",
}


def expand_paths(input: Input) -> list[Path]:
    """Turn a path, a pattern or a list of them into existing paths.

    Args:
        input: Relative paths start from the working directory; ``~`` is the home directory; ``*``, ``?``, ``[...]`` and
            ``**`` are expanded, each pattern in the order of names. Folders that a pattern matches are left out.

    Returns:
        Absolute paths, each once.

    Raises:
        InputError: Nothing matches, a file does not exist, or a folder is given.
    """
    items = [input] if isinstance(input, str | os.PathLike) else list(input)
    if not items:
        raise InputError("The input is an empty list; give at least one netCDF file.")
    paths = [path for item in items for path in _expand_one(os.fspath(item))]
    return list(dict.fromkeys(paths))


def _expand_one(item: str) -> list[Path]:
    if not item.strip():
        raise InputError("The input holds an empty path; give a netCDF file or a pattern such as 'data/*.nc'.")
    path = Path(item).expanduser().absolute()
    if path.is_dir() and not _is_zarr(path):
        raise InputError(f"{item} is a folder; give the files in it, for example '{item.rstrip('/')}/*.nc'.")
    if path.exists():
        return [path]
    if glob.has_magic(item):
        pattern = str(Path(item).expanduser())  # not yet absolute: the working directory may hold a "[" itself
        found = [Path(p).absolute() for p in sorted(glob.glob(pattern, recursive=True))]  # noqa: PTH207
        files = [p for p in found if not p.is_dir() or _is_zarr(p)]
        if not files:
            raise InputError(f"No file matches {item!r} (looked for {path}).")
        return files
    if not path.parent.is_dir():
        raise InputError(f"{item} does not exist, nor does its folder {path.parent}.")
    names = [p.name for p in path.parent.iterdir()]
    raise InputError(f"There is no file {path.name!r} in {path.parent}{near_matches(path.name, names) or '.'}")


def open_netcdf(path: Path) -> xr.Dataset:
    """Open one netCDF file lazily.

    Values are unpacked and missing values become NaN when they are read; a floating-point variable without a
    ``_FillValue`` has netCDF's default one. The variables ``time`` and ``valid_time`` are decoded from the units and
    the calendar of this file alone: datetime64 for standard calendars (and where the attribute is absent), cftime
    objects for the others.

    No file stays open: every read opens the file, reads and closes it. All of this happens under the lock under which
    xarray itself reads and writes netCDF, for neither the netCDF nor the HDF5 library is safe with threads. So any dask
    scheduler is safe (xarray's own reader is not while another thread opens a file: xarray issue 9779), and so is
    a process that is forked later.

    Returns:
        The variables and attributes of the file. Arrays of two dims and more are dask arrays, chunked in time as the
        file is (one step where it is not), one level per chunk, whole in latitude and longitude.

    Raises:
        InputError: The file is no netCDF, is damaged, or a time cannot be decoded.
    """
    _check_is_netcdf(path)
    try:
        raw = _read_structure(path)
        decoded = xr.decode_cf(raw, decode_times=False, decode_timedelta=False)
    except (OSError, RuntimeError, ValueError, KeyError, AttributeError) as error:
        raise InputError(f"{path}: cannot be opened as netCDF ({error}); the file may be damaged.") from error
    logger.debug("opened %s with the variables %s", path, list(decoded.variables))
    return _decode_times(decoded, path)


class _StoredVariable:
    """What dask needs of an array, read from a netCDF file that is open only meanwhile."""

    def __init__(self, path: Path, variable: "netCDF4.Variable[Any]") -> None:
        self.path = path
        self.name = variable.name
        self.shape = tuple(variable.shape)
        self.ndim = variable.ndim
        self.dtype = np.dtype(variable.dtype)

    def __getitem__(self, key: Any) -> NDArray[Any]:
        try:
            with NETCDF4_PYTHON_LOCK, netCDF4.Dataset(self.path) as file:
                return np.asarray(_raw(file.variables[self.name])[key])
        except (OSError, RuntimeError) as error:
            raise InputError(
                f"{self.path}: variable {self.name} cannot be read ({error}); the file was damaged or removed."
            ) from error


def _read_structure(path: Path) -> xr.Dataset:
    """Variables as they are stored, not decoded: small ones as values, others as dask arrays."""
    status = path.stat()
    variables: dict[str, xr.Variable] = {}
    with NETCDF4_PYTHON_LOCK, netCDF4.Dataset(path) as file:
        for name, variable in file.variables.items():
            stored = _raw(variable)
            attributes = {key: stored.getncattr(key) for key in stored.ncattrs()}
            numeric = isinstance(stored.dtype, np.dtype) and stored.dtype.kind in "iuf"
            if stored.ndim > 1 and numeric:
                token = tokenize(str(path), status.st_mtime_ns, status.st_size, name)
                data = da.from_array(  # type: ignore[no-untyped-call]
                    _StoredVariable(path, stored),
                    chunks=_chunks(stored),
                    name=f"{name}-{token}",
                    meta=np.empty((0,) * stored.ndim, dtype=stored.dtype),
                    fancy=False,
                )
                if stored.dtype.kind == "f" and not {"_FillValue", "missing_value"} & attributes.keys():
                    fill = netCDF4.default_fillvals[f"f{stored.dtype.itemsize}"]
                    attributes["_FillValue"] = stored.dtype.type(fill)
            else:
                data = stored[...]
            variables[name] = xr.Variable(stored.dimensions, data, attributes)
    return xr.Dataset(variables)


def _raw(variable: "netCDF4.Variable[Any]") -> "netCDF4.Variable[Any]":
    """Switch off netCDF4's own decoding, which xarray does lazily instead."""
    variable.set_auto_maskandscale(False)
    variable.set_auto_chartostring(False)
    return variable


def _chunks(variable: "netCDF4.Variable[Any]") -> tuple[int, ...]:
    """Dask chunks: the stored ones in time, single levels, whole in latitude and longitude."""
    stored = variable.chunking()  # a list, "contiguous", or None for classic files
    chunks = [1] * variable.ndim
    for axis, (dim, size) in enumerate(zip(variable.dimensions, variable.shape, strict=True)):
        if dim.lower() in LATITUDES + LONGITUDES:
            chunks[axis] = max(size, 1)
    for axis, dim in enumerate(variable.dimensions):
        if dim.lower() in TIMES and isinstance(stored, list):
            step = int(np.prod(chunks)) * np.dtype(variable.dtype).itemsize
            chunks[axis] = max(1, min(stored[axis], variable.shape[axis], _LARGEST_CHUNK // step))
    return tuple(chunks)


def _decode_times(ds: xr.Dataset, path: Path) -> xr.Dataset:
    """Decode the time variables; variables in other units of time stay numbers."""
    for name in TIMES:
        units = ds[name].attrs.get("units", "") if name in ds.variables else ""
        if " since " not in str(units):
            continue
        try:
            decoded = xr.conventions.decode_cf_variable(name, ds[name].variable, decode_timedelta=False)
        except (ValueError, OverflowError) as error:
            calendar = ds[name].attrs.get("calendar", "standard")
            raise InputError(
                f"{path}: variable {name} in {units!r} with the calendar {calendar!r} cannot be decoded; expected "
                "units such as 'hours since 1900-01-01' and a CF calendar."
            ) from error
        ds = ds.assign_coords({name: decoded})
    return ds


def _check_is_netcdf(path: Path) -> None:
    """Let the first bytes decide what a file is; its name does not count."""
    if _is_zarr(path):
        raise InputError(f"{path}: is a Zarr store, which this version does not read; expected netCDF files.")
    try:
        with path.open("rb") as file:
            start = file.read(512)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}).") from error
    if not start:
        raise InputError(f"{path}: is empty (0 bytes); copy or download it again.")
    if start.startswith(_NETCDF):
        _check_not_truncated(path, start)
        return
    for first_bytes, meaning in _OTHER_FORMATS.items():
        if start.startswith(first_bytes):
            raise InputError(f"{path}: is {meaning}.")
    text = start.decode("latin-1").strip()
    if text.lower().startswith(("<!doctype html", "<html")):
        raise InputError(f"{path}: is a web page, not netCDF; the download went wrong (a login or an error page).")
    if all(byte >= 32 or byte in b"\t\r\n\f" for byte in start):
        raise InputError(f"{path}: is a text file that begins with {text[:60]!r}; expected netCDF.")
    raise InputError(f"{path}: is no netCDF file (its first bytes are {start[:8]!r}).")


def _check_not_truncated(path: Path, start: bytes) -> None:
    """Refuse a classic netCDF file that is shorter than its header says; HDF5 sees to that itself."""
    if not start.startswith(b"CDF"):
        return
    size = path.stat().st_size
    try:
        expected = expected_size(path)
    except ValueError as error:
        raise InputError(f"{path}: is a truncated netCDF file ({error}); copy or download it again.") from error
    if size < expected:
        raise InputError(
            f"{path}: is a truncated netCDF file ({size} bytes of at least {expected}); copy or download it again."
        )


def _is_zarr(path: Path) -> bool:
    return path.is_dir() and any((path / mark).exists() for mark in _ZARR_MARKS)
