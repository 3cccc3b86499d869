"""Zarr stores, in a folder or in an object store: ARCO-ERA5, WeatherBench2, one's own."""

import pickle
import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import fsspec  # type: ignore[import-untyped]
import numpy as np
import xarray as xr
import zarr
from numpy.typing import NDArray

from climseg.errors import InputError
from climseg.sources.paths import is_url
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

# Set on a variable of which the store holds no chunk at all: every value would read as the fill value.
EMPTY: Final = "climseg_empty"


def scan(path: str, options: dict[str, Any]) -> StoredFile:
    """What one Zarr store holds; values of coordinates only.

    Args:
        path: A folder or a URL such as ``gs://bucket/name.zarr``.
        options: fsspec's storage options, such as ``{"token": "anon"}``.

    Raises:
        InputError: It cannot be opened; for a URL, the package for it may be missing.
    """
    try:
        _open.cache_clear()  # the store may have been written anew
        _open_array.cache_clear()
        return _scan(path, _open(path, _frozen(options)), options)
    except InputError:
        raise
    except ImportError as error:
        raise InputError(
            f"{path}: cannot be opened ({error}); install the package for it: pip install 'climseg[cloud]'."
        ) from error
    except Exception as error:  # zarr, fsspec and the network raise many kinds
        raise InputError(f"{path}: cannot be opened as a Zarr store ({type(error).__name__}: {error}).") from error


def read(file: StoredFile, name: str, key: tuple[Any, ...]) -> NDArray[Any]:
    """Values of a part of one variable as they are stored; see :func:`climseg.sources.netcdf.read`.

    A time step that is the array's fill value throughout because the store lacks its chunk is NaN: where the fill value
    is a number like others (0 for packed values of version 3), it would read as weather. Masks are left as they are.
    """
    try:
        options = _frozen(file.options)
        values = np.asarray(_open(file.path, options)[name].variable[key].values)
        if isinstance(key[0], slice) and (values.dtype.kind == "f" or name in file.packing):
            absent = [i for i, step in enumerate(values) if _is_absent(step, i, file.path, name, key, options)]
            if absent:
                values = values.astype(np.float64)
                values[absent] = np.nan
        return values
    except Exception as error:
        raise InputError(
            f"{file.origin}: variable {name} cannot be read ({type(error).__name__}: {error}); the store is damaged or "
            "out of reach."
        ) from error


def _is_absent(step: NDArray[Any], number: int, path: str, name: str, key: tuple[Any, ...], options: bytes) -> bool:
    """Whether a time step of a part of an array holds its fill value alone, and the store has no chunk for it."""
    if not (step == step.flat[0]).all():
        return False
    array = _open_array(path, name, options)
    if step.flat[0] != (0 if array.fill_value is None else array.fill_value):
        return False
    starts = [(part.start or 0) if isinstance(part, slice) else int(part) for part in key]
    starts[0] += number
    chunk = tuple(start // size for start, size in zip(starts, array.shards or array.chunks, strict=True))
    files, root = fsspec.url_to_fs(path, **pickle.loads(options))
    return not files.exists(f"{root}/{name}/{array.metadata.encode_chunk_key(chunk)}")


def _frozen(options: Mapping[str, Any]) -> bytes:
    """Storage options, which may be nested, as a key of a cache."""
    return pickle.dumps(dict(sorted(options.items())))


@lru_cache(maxsize=16)
def _open(path: str, options: bytes) -> xr.Dataset:
    with warnings.catch_warnings():
        # that metadata are not consolidated; what it costs is paid once
        warnings.filterwarnings(
            "ignore", message="Failed to open Zarr store with consolidated", category=RuntimeWarning
        )
        ds: xr.Dataset = xr.open_zarr(path, chunks=None, decode_cf=False, storage_options=pickle.loads(options) or None)
    return ds


@lru_cache(maxsize=64)
def _open_array(path: str, name: str, options: bytes) -> "zarr.Array[Any]":
    return zarr.open_array(path, path=name, mode="r", storage_options=pickle.loads(options) or None)


def _scan(path: str, ds: xr.Dataset, options: dict[str, Any]) -> StoredFile:
    variables: dict[str, StoredVariable] = {}
    packing: dict[str, tuple[float, float]] = {}
    time: RawTime | None = None
    for key, variable in ds.variables.items():
        name = str(key)
        attributes, pack = without_packing(variable.attrs)
        if pack is not None:
            packing[name] = pack
        stored = StoredVariable(
            name,
            tuple(map(str, variable.dims)),
            variable.shape,
            variable.dtype,
            attributes,
            variable.encoding.get("chunks"),
        )
        if is_time(stored):
            if variable.size > LONGEST_COORDINATE:
                raise ValueError(f"{name} has {variable.size:,} values, more than {LONGEST_COORDINATE:,}")
            if time is None or time_rank(name) < time_rank(time.name):
                time = raw_time(path, stored, variable.values, pack)
            stored = StoredVariable(name, stored.dims, stored.shape, stored.dtype, {"standard_name": "time"})
        elif (
            variable.ndim <= 1
            and variable.size <= LONGEST_COORDINATE
            and variable.dtype.kind in "iuf"
            and not _along_time(ds, variable)
        ):
            stored = replace(stored, values=variable.values if pack is None else unpack(variable.values, pack))
        elif not _has_chunks(path, name):
            stored = replace(stored, attributes=attributes | {EMPTY: True})
        variables[name] = stored
    attributes = {str(k): str(v) for k, v in ds.attrs.items()}
    return StoredFile(path, path, "zarr_store", Layout(variables, attributes), time, packing, options=options)


def _along_time(ds: xr.Dataset, variable: xr.Variable) -> bool:
    """Whether a variable is one value per time step: no coordinate, and as long as the record."""
    dim = variable.dims[0] if variable.dims else None
    return dim in ds.variables and " since " in str(ds[dim].attrs.get("units", ""))


def _has_chunks(path: str, name: str) -> bool:
    """Whether a store in a folder holds any chunk of an array; an object store is not asked, it would take too long."""
    folder = Path(path) / name
    if is_url(path) or not folder.is_dir():
        return True
    return any(item.is_file() and not item.name.startswith((".z", "zarr.json")) for item in folder.rglob("*"))
