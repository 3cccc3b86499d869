"""netCDF and HDF5 files: what is in them, and reading a part of a variable.

No file stays open (but within :func:`files_kept_open`): every read opens the file, reads and closes it. All of this
happens under the lock under which xarray itself reads and writes netCDF, for neither the netCDF nor the HDF5 library is
safe with threads. So any dask scheduler is safe (xarray issues 9779 and 7990), and so is a process that is forked later
(pytorch issue 11929).
"""

import math
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import netCDF4
import numpy as np
from numpy.typing import NDArray

from climseg.errors import InputError
from climseg.sources.netcdf3 import expected_size
from climseg.sources.stored import (
    LONGEST_COORDINATE,
    Layout,
    RawTime,
    StoredFile,
    StoredVariable,
    is_time,
    raw_time,
    time_rank,
    unpack,
    without_packing,
)

# Types whose values all occur: netCDF's default fill value does not count for them.
_BYTES: Final = ("i1", "u1")
# Bytes.
_CHUNK_CACHE: Final = 1024
# Global attributes by which a source is recognised; others (history) differ from file to file.
_ATTRIBUTES: Final = ("Conventions", "GRIB_centre", "institution", "source", "title", "Title", "ShortName", "model_id")


def scan(path: str) -> StoredFile:
    """What one netCDF or HDF5 file holds.

    Returns:
        Its variables, those of groups too under ``group/name``; values of coordinates only. A floating-point variable
        without a ``_FillValue`` has netCDF's default one.

    Raises:
        InputError: It is damaged or truncated.
    """
    _check_not_truncated(Path(path))
    try:
        with netCDF4.Dataset(path) as file:
            return _scan(path, file)
    except InputError:
        raise
    except Exception as error:  # the library raises many kinds for what is damaged
        raise InputError(
            f"{path}: cannot be opened as netCDF ({type(error).__name__}: {error}); the file may be damaged."
        ) from error


def read(file: StoredFile, name: str, key: tuple[Any, ...]) -> NDArray[Any]:
    """Values of a part of one variable as they are stored.

    Args:
        file: From :func:`scan`.
        name: Of the variable.
        key: An integer, slice or list of increasing integers for each dimension.

    Raises:
        InputError: The file was damaged or removed.
    """
    from xarray.backends.netCDF4_ import NETCDF4_PYTHON_LOCK  # xarray is not needed to scan

    try:
        with files_kept_open(), NETCDF4_PYTHON_LOCK:
            kept = _kept.datasets
            assert kept is not None
            if file.path not in kept:
                kept[file.path] = netCDF4.Dataset(file.path)
            variable = _raw(_variable(kept[file.path], name))
            if isinstance(variable.chunking(), list):
                # No chunk is read twice, and by default every variable of an open file may keep 64 MiB of them.
                variable.set_var_chunk_cache(size=_CHUNK_CACHE)
            return np.asarray(variable[key])
    except (OSError, RuntimeError, IndexError, KeyError, ValueError) as error:
        raise InputError(
            f"{file.origin}: variable {name} cannot be read ({error}); the file was damaged or removed."
        ) from error


class _Kept(threading.local):
    """The files that this thread keeps open, or None where it keeps none."""

    datasets: "dict[str, netCDF4.Dataset] | None" = None


_kept = _Kept()


@contextmanager
def files_kept_open() -> Iterator[None]:
    """Within the block, files read by this thread stay open, and are closed at its end.

    For reading many variables of one time step at once, with dask's synchronous scheduler: opening takes longer than
    reading where files are small.
    """
    from xarray.backends.netCDF4_ import NETCDF4_PYTHON_LOCK

    if _kept.datasets is not None:  # within another such block
        yield
        return
    _kept.datasets = {}
    try:
        yield
    finally:
        with NETCDF4_PYTHON_LOCK:
            for dataset in _kept.datasets.values():
                dataset.close()
        _kept.datasets = None


def _scan(path: str, file: "netCDF4.Dataset") -> StoredFile:
    variables: dict[str, StoredVariable] = {}
    packing: dict[str, tuple[float, float]] = {}
    time: RawTime | None = None
    found = _all_variables(file)
    described = {name: _describe(name, _raw(variable)) for name, variable in found.items()}
    for name, (stored, pack) in described.items():
        variable = found[name]
        if pack is not None:
            packing[name] = pack
        if is_time(stored) and (time is None or time_rank(name) < time_rank(time.name)):
            if (steps := math.prod(stored.shape)) > LONGEST_COORDINATE:
                raise InputError(
                    f"{path}: {name} has {steps:,} values; expected at most {LONGEST_COORDINATE:,} time steps in a "
                    "file. It may be damaged; copy or download it again."
                )
            time = raw_time(path, stored, np.asarray(variable[...]), pack, _bounds(file, stored))
        if is_time(stored):
            stored = StoredVariable(name, stored.dims, stored.shape, stored.dtype, {"standard_name": "time"})
        elif _is_coordinate(stored, described):
            values = np.asarray(variable[...])
            if stored.dtype.kind == "S":  # rows of characters
                values = netCDF4.chartostring(values)
            elif pack is not None:
                values = unpack(values, pack)
            stored = replace(stored, values=values)
        variables[name] = stored
    attributes: dict[str, Any] = {key: str(file.getncattr(key)) for key in _ATTRIBUTES if key in file.ncattrs()}
    return StoredFile(path, path, "netcdf", Layout(variables, attributes), time, packing)


def _all_variables(group: "netCDF4.Dataset", prefix: str = "") -> dict[str, "netCDF4.Variable[Any]"]:
    found = {f"{prefix}{name}": variable for name, variable in group.variables.items()}
    for name, inner in group.groups.items():
        found |= _all_variables(inner, f"{prefix}{name}/")
    return found


def _variable(dataset: "netCDF4.Dataset", name: str) -> "netCDF4.Variable[Any]":
    group: Any = dataset
    *groups, last = name.split("/")
    for step in groups:
        group = group.groups[step]
    variable: netCDF4.Variable[Any] = group.variables[last]
    return variable


def _describe(name: str, variable: "netCDF4.Variable[Any]") -> tuple[StoredVariable, tuple[float, float] | None]:
    """A variable without values, and how it is packed."""
    attributes, packing = without_packing({key: _attribute(variable, key) for key in variable.ncattrs()})
    dtype = variable.dtype if isinstance(variable.dtype, np.dtype) else np.dtype(object)
    if dtype.kind in "iuf" and not {"_FillValue", "missing_value"} & attributes.keys() and dtype.str[1:] not in _BYTES:
        attributes["_FillValue"] = dtype.type(netCDF4.default_fillvals[dtype.str[1:]])
    chunks = variable.chunking()  # a list, "contiguous", or None for classic files
    stored = StoredVariable(
        name,
        tuple(variable.dimensions),
        tuple(variable.shape),
        dtype,
        attributes,
        tuple(chunks) if isinstance(chunks, list) else None,
    )
    return stored, packing


def _attribute(variable: "netCDF4.Variable[Any]", key: str) -> Any:
    """An attribute; one that the library cannot read is as good as absent."""
    try:
        return variable.getncattr(key)
    except Exception:  # strings that are no UTF-8, types of damaged files
        return None


def _is_coordinate(variable: StoredVariable, others: Mapping[str, tuple[StoredVariable, Any]]) -> bool:
    """Whether values are read at once: scalars and short axes, but nothing along the time or without numbers."""
    size = math.prod(variable.shape)
    if size > LONGEST_COORDINATE:
        return False
    if variable.dtype.kind in "SO":  # names along a dimension, such as expver
        return variable.dims[:1] == (variable.name,)
    if variable.dtype.kind not in "iuf" or len(variable.dims) > 1:
        return False
    if " since " in str(variable.attributes.get("units", "")):
        return False
    along = variable.dims[0] if variable.dims else ""
    return along not in others or not is_time(others[along][0])


def _bounds(file: "netCDF4.Dataset", time: StoredVariable) -> NDArray[Any] | None:
    """The bounds (time, 2) of a time variable, or None."""
    bounds = file.variables.get(str(time.attributes.get("bounds", "")))
    return None if bounds is None or bounds.shape != (*time.shape, 2) else np.asarray(_raw(bounds)[...])


def _raw(variable: "netCDF4.Variable[Any]") -> "netCDF4.Variable[Any]":
    """Switch off netCDF4's own decoding; values are decoded where they are used."""
    variable.set_auto_maskandscale(False)
    variable.set_auto_chartostring(False)
    return variable


def _check_not_truncated(path: Path) -> None:
    """Refuse a classic netCDF file that is shorter than its header says; HDF5 sees to that itself."""
    with path.open("rb") as opened:
        classic = opened.read(3) == b"CDF"
    if not classic:
        return
    size = path.stat().st_size
    try:
        expected = expected_size(path)
    except (ValueError, OSError, OverflowError, MemoryError, RecursionError) as error:
        raise InputError(f"{path}: is a truncated netCDF file ({error}); copy or download it again.") from error
    if size < expected:
        raise InputError(
            f"{path}: is a truncated netCDF file ({size} bytes of at least {expected}); copy or download it again."
        )
