"""The axes of one file: which are time, lat and lon, and the reason when a file has no such axes."""

import re
from typing import Final

import numpy as np
import xarray as xr

from climseg.errors import InputError

# Lower-case names; the first that a file has is taken. valid_time before time: where a file has both, time is the start
# of the forecast.
TIMES: Final = ("valid_time", "time")
LATITUDES: Final = ("lat", "latitude")
LONGITUDES: Final = ("lon", "longitude")

# The cell dimension of unstructured grids: CAM-SE, UGRID, MPAS, ICON.
_UNSTRUCTURED: Final = ("ncol", "n_face", "nface", "nMesh2_face", "nCells", "ncells", "cell")
_EXPECTED: Final = "expected a regular latitude-longitude grid"
_INTERPOLATE: Final = "interpolate it to one first (for example with cdo remapbil)"


def name_axes(ds: xr.Dataset, origin: str, time: str | None = None) -> xr.Dataset:
    """Rename the axes of one file to time, lat and lon.

    Args:
        ds: As :func:`climseg.sources.files.open_netcdf` returns it.
        origin: The file to name in an error.
        time: The time of a file that has none (ISO 8601, standard calendar).

    Returns:
        A new Dataset with the index coordinates time (whole seconds, at least one step), lat and lon. Its variables may
        still lack the time, or have more dimensions; :func:`on_grid` sees to one of them.

    Raises:
        InputError: The grid is unstructured, rotated, curvilinear or has no coordinates; there is no usable time.
    """
    _refuse_other_grids(ds, origin)
    lat = _find(ds, LATITUDES, "latitude")
    lon = _find(ds, LONGITUDES, "longitude")
    if lat is None or lon is None:
        missing = " and ".join(n for n, found in (("latitude", lat), ("longitude", lon)) if found is None)
        raise InputError(f"{origin}: has no {missing} coordinate (dimensions: {_dims(ds)}); {_EXPECTED}.")
    for name in (lat, lon):
        if ds[name].ndim == 2:
            raise InputError(f"{origin}: {name} has two dimensions, a curvilinear grid; {_EXPECTED}, {_INTERPOLATE}.")
        if ds[name].ndim != 1:
            raise InputError(f"{origin}: {name} is a single value; {_EXPECTED} of at least 2 x 2 points.")
    if ds[lat].dims == ds[lon].dims:
        raise InputError(
            f"{origin}: lat and lon share the dimension {ds[lat].dims[0]}, an unstructured grid; {_EXPECTED}, "
            f"{_INTERPOLATE}."
        )
    time_name, times = _times(ds, origin, time)

    old = [n for n in (lat, lon, time_name, "time") if n in ds.variables]
    axes = {"time": times, "lat": ds[lat].variable, "lon": ds[lon].variable}
    renamed = {v.dims[0]: axis for axis, v in axes.items() if v.dims[0] in ds.dims and v.dims[0] != axis}
    out = ds.drop_vars(old).rename_dims(renamed)
    out = out.assign_coords({axis: (axis, v.values, v.attrs, v.encoding) for axis, v in axes.items()})
    if times.size == 1:
        fields = [n for n, v in out.data_vars.items() if {"lat", "lon"} <= set(v.dims) and "time" not in v.dims]
        out = out.assign({n: out[n].expand_dims("time") for n in fields})
    return out


def on_grid(variable: xr.DataArray, origin: str) -> xr.DataArray:
    """Give one variable exactly the dimensions (time, lat, lon), without any other coordinate.

    Dimensions of size one are dropped; a variable without time in a file of one time step gets that time.

    Args:
        variable: From the Dataset of :func:`name_axes`.
        origin: The file to name in an error.

    Raises:
        InputError: It has a longer dimension besides, or lacks one.
    """
    name = variable.name
    for axis in ("lat", "lon"):
        if axis not in variable.dims:
            raise InputError(f"{origin}: variable {name} has the dimensions {variable.dims}; {_EXPECTED}.")
    for dim in variable.dims:
        if dim in ("time", "lat", "lon"):
            continue
        if variable.sizes[dim] != 1:
            raise InputError(
                f"{origin}: variable {name} has {variable.sizes[dim]} values along {dim!r}; expected time, lat and lon "
                f"alone. Choose one first, for example with 'ncks -d {dim},0 in.nc out.nc'."
            )
        variable = variable.isel({dim: 0})
    variable = variable.drop_vars([c for c in variable.coords if c not in ("time", "lat", "lon")])
    if "time" not in variable.dims:
        raise InputError(f"{origin}: variable {name} has no time axis, while the file has several time steps.")
    return variable.transpose("time", "lat", "lon")


def _refuse_other_grids(ds: xr.Dataset, origin: str) -> None:
    """Refuse grids that are known by their names or attributes, whether they bring latitudes along or not."""
    for name, variable in ds.variables.items():
        if variable.attrs.get("standard_name") == "grid_latitude":
            raise InputError(f"{origin}: has a rotated pole ({name}); {_EXPECTED}, {_INTERPOLATE}.")
    for dim in _UNSTRUCTURED:
        if dim in ds.dims:
            raise InputError(f"{origin}: has an unstructured grid (dimension {dim}); {_EXPECTED}, {_INTERPOLATE}.")


def _find(ds: xr.Dataset, names: tuple[str, ...], standard_name: str) -> str | None:
    """The variable that is an axis: by its name, else by its CF standard name."""
    folded = {str(v).lower(): str(v) for v in ds.variables}
    for name in names:
        if name in folded:
            return folded[name]
    return next((str(n) for n, v in ds.variables.items() if v.attrs.get("standard_name") == standard_name), None)


def _times(ds: xr.Dataset, origin: str, time: str | None) -> tuple[str | None, xr.Variable]:
    """The name of the time in the file, and its values on one dimension."""
    name = _find(ds, TIMES, "time")
    if name is None:
        if time is None:
            raise InputError(
                f"{origin}: has no time coordinate (dimensions: {_dims(ds)}). If it holds a single time step, give "
                "its time with source.time=2011-10-11T00."
            )
        times = xr.Variable(("time",), [_parse_time(str(time))])
    else:
        if time is not None:
            raise InputError(f"{origin}: has a time of its own ({name}); leave out source.time={time}.")
        times = _decoded_times(ds[name], origin)
    (dim,) = times.dims
    steps = ds.sizes.get("time", times.size)
    if steps != times.size or (dim != "time" and "time" in ds.sizes):
        raise InputError(
            f"{origin}: has {steps} steps along 'time', but {name or time} gives {times.size} along {dim!r}."
        )
    return name, times


def _decoded_times(time: xr.DataArray, origin: str) -> xr.Variable:
    """Times rounded to seconds, so that "days since" in one file and "hours since" in another agree on one moment."""
    if time.ndim > 1:
        raise InputError(f"{origin}: {time.name} has the dimensions {time.dims}; expected one axis of times.")
    index = xr.Variable(("time",), np.atleast_1d(time.values)).to_index()
    if not (isinstance(index, xr.CFTimeIndex) or index.dtype.kind == "M"):
        raise InputError(
            f"{origin}: {time.name} has the units {time.attrs.get('units')!r}; expected units such as "
            "'hours since 1900-01-01'."
        )
    if index.size == 0:
        raise InputError(f"{origin}: holds no time step.")
    if index.hasnans:
        raise InputError(f"{origin}: {time.name} holds missing values.")
    # The units of the file as floats: they hold any moment, also those of other files with units of their own.
    encoding = {key: time.encoding[key] for key in ("units", "calendar") if key in time.encoding} | {"dtype": "float64"}
    return xr.Variable(time.dims or ("time",), index.round("s"), time.attrs, encoding)


def _parse_time(time: str) -> np.datetime64:
    if not re.match(r"\d{4}-\d{2}-\d{2}", time):
        raise InputError(f"source.time={time!r} is no time; expected the form 2011-10-11T00.")
    try:
        return np.datetime64(time, "ns")
    except ValueError as error:
        raise InputError(f"source.time={time!r} is no time; expected the form 2011-10-11T00.") from error


def _dims(ds: xr.Dataset) -> str:
    return ", ".join(f"{name} of {size}" for name, size in ds.sizes.items()) or "none"
