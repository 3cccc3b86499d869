"""What a canonical Dataset is, how coordinates become canonical and back, and the check that says what is wrong.

A canonical Dataset has the dims (time, lat, lon), variables under their CAM5 names as float32 in the units of
``channels.CHANNELS``, latitude ascending and longitude ascending from its first value in [0, 360). On a closed grid
all longitudes lie in [0, 360); a region that crosses Greenwich goes on beyond 360, so that neighbours stay neighbours.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from climseg.channels import CHANNELS, CLASSES, LABELS
from climseg.errors import InputError, near_matches
from climseg.grid import is_periodic, spacing

DIMS: Final = ("time", "lat", "lon")
# Kept on "lat" and "lon" when orienting changed them; restore_orientation() needs it.
SOURCE_VALUES: Final = "source_values"
# Longitudes this part of a step below 0 or 360 are 0: files store them as float32.
_ROUNDING: Final = 1e-3
LABEL_ATTRIBUTES: Final = {
    "long_name": "weather event",
    "flag_values": np.arange(len(CLASSES), dtype=np.int8),
    "flag_meanings": " ".join(CLASSES),
}
COORDINATE_ATTRIBUTES: Final = {
    "time": {"standard_name": "time", "long_name": "time", "axis": "T"},
    "lat": {"standard_name": "latitude", "long_name": "latitude", "units": "degrees_north", "axis": "Y"},
    "lon": {"standard_name": "longitude", "long_name": "longitude", "units": "degrees_east", "axis": "X"},
}


def to_canonical(ds: xr.Dataset, origin: str) -> xr.Dataset:
    """Give a Dataset the canonical axes, dtypes and attributes; its names and units must be canonical already.

    Args:
        ds: Variables under CAM5 names on the dims time, lat, lon in any order. Lazy arrays stay lazy.
        origin: The file or source to name in an error.

    Returns:
        A new canonical Dataset; attributes that say where a variable came from (``comment``) are kept.

    Raises:
        InputError: The coordinates are missing, not one-dimensional, not monotonic or not evenly spaced.
    """
    for name, variable in ds.data_vars.items():
        if set(variable.dims) != set(DIMS):
            raise InputError(
                f"{origin}: variable {name} has the dimensions {tuple(variable.dims)}; expected time, lat and lon on a "
                "regular latitude-longitude grid. Interpolate other grids to one first (for example with CDO remapbil)."
            )
    out = orient(ds, origin).transpose(*DIMS)
    for name in out.data_vars:
        comment = {"comment": ds[name].attrs["comment"]} if "comment" in ds[name].attrs else {}
        if name == LABELS:
            out[name] = out[name].astype(np.int8).assign_attrs(LABEL_ATTRIBUTES | comment)
            out[name].attrs = dict(LABEL_ATTRIBUTES) | comment
        else:
            out[name] = out[name].astype(np.float32)
            out[name].attrs = CHANNELS[str(name)].attributes | comment
        # Packing and chunking of the source file must not reach a file written later (xarray issues 4282, 8135).
        out[name].encoding = {}
    check_canonical(out, origin=origin)
    return out


def orient(ds: xr.Dataset, origin: str) -> xr.Dataset:
    """Order latitude and longitude canonically; the coordinates of the file stay in the attribute ``source_values``."""
    lat = _axis(ds, "lat", origin)
    lon = np.unwrap(_axis(ds, "lon", origin), period=360.0)
    for name, values in (("lat", lat), ("lon", lon)):
        steps = np.diff(values)
        if values.size < 2:
            raise InputError(f"{origin}: {name} has a single point; expected a grid of at least 2 x 2.")
        if not (np.all(steps > 0) or np.all(steps < 0)):
            raise InputError(f"{origin}: {name} must run in one direction without repeats.")
        # Gaussian latitudes and float32 longitudes are uneven by far less.
        if np.abs(steps).max() > 1.5 * np.abs(steps).min():
            raise InputError(
                f"{origin}: {name} is not evenly spaced (steps from {np.abs(steps).min():g} to {np.abs(steps).max():g} "
                "degrees); expected a regular grid without gaps. Select a gapless region or interpolate first."
            )
    if np.abs(lat).max() > 90.0 + 1e-6:
        raise InputError(f"{origin}: lat holds {np.abs(lat).max():g}; latitudes in degrees lie within -90 and 90.")

    lat_order = np.argsort(lat)
    lon_order = np.argsort(lon)
    # Columns that come again after a whole turn: a cyclic point, or a halo.
    lon_order = lon_order[lon[lon_order] - lon[lon_order[0]] < 360.0 - 1e-3]
    lon_sorted = lon[lon_order]
    rounding = _ROUNDING * float(np.diff(lon_sorted).min())
    if is_periodic(lon_sorted):
        lon_sorted = lon_sorted % 360.0
        lon_sorted[lon_sorted > 360.0 - rounding] = 0.0
        start = int(np.argmin(lon_sorted))
        lon_order, lon_sorted = np.roll(lon_order, -start), np.roll(lon_sorted, -start)
    else:
        lon_sorted = lon_sorted - 360.0 * np.floor((lon_sorted[0] + rounding) / 360.0)
        lon_sorted[0] = max(lon_sorted[0], 0.0)

    out = ds.isel(lat=lat_order, lon=lon_order).copy()
    out = out.assign_coords(lat=("lat", lat[lat_order]), lon=("lon", lon_sorted))
    for name in DIMS:
        kept = {SOURCE_VALUES: ds[name].attrs[SOURCE_VALUES]} if SOURCE_VALUES in ds[name].attrs else {}
        out[name].attrs = COORDINATE_ATTRIBUTES[name] | kept
    for name in ("lat", "lon"):
        source = ds[name].values
        if not np.array_equal(source, out[name].values):
            out[name].attrs[SOURCE_VALUES] = np.asarray(source, dtype=np.float64)
    out["time"].encoding = dict(ds["time"].encoding)
    return out


def restore_orientation(ds: xr.Dataset) -> xr.Dataset:
    """Undo :func:`orient`: rows and columns in the order, and with the coordinate values, of the source file.

    A Dataset that was cut or regridded since stays canonical on that axis.
    """
    out = ds
    for name, period in (("lat", None), ("lon", 360.0)):
        source = ds[name].attrs.get(SOURCE_VALUES)
        if source is None:
            continue
        here = ds[name].values
        distance = np.abs(np.asarray(source)[:, None] - here[None, :])
        if period is not None:
            distance = np.minimum(distance % period, -distance % period)
        index = distance.argmin(axis=1)
        attributes = {k: v for k, v in ds[name].attrs.items() if k != SOURCE_VALUES}
        if distance.min(axis=1).max() < _ROUNDING * spacing(here) and np.unique(index).size == here.size:
            out = out.isel({name: index}).assign_coords({name: (name, np.asarray(source), attributes)})
        else:
            out = out.assign_coords({name: (name, here, attributes)})
    return out


def source_longitudes(ds: xr.Dataset) -> Callable[[float], float]:
    """What turns a longitude in degrees into the convention of the source file: from its westernmost one eastward.

    Args:
        ds: Canonical Dataset.
    """
    west = float(np.min(ds["lon"].attrs.get(SOURCE_VALUES, ds["lon"].values)))
    return lambda lon: west + (lon - west) % 360.0


def check_canonical(ds: xr.Dataset, channels: Iterable[str] = (), origin: str = "the Dataset") -> None:
    """Raise InputError with the first thing that makes ``ds`` not canonical, or that ``channels`` need and it lacks."""
    for name in DIMS:
        if name not in ds.dims or name not in ds.coords:
            raise InputError(f"{origin}: has no {name!r} axis; a canonical Dataset has time, lat and lon.")
    times = ds.indexes["time"]
    if times.has_duplicates:
        twice = times[times.duplicated()][0]
        raise InputError(f"{origin}: the time {twice} appears twice; leave out one of the files or time steps.")
    if not times.is_monotonic_increasing:
        raise InputError(f"{origin}: the time axis does not increase; sort it, for example with ds.sortby('time').")
    lat, lon = ds["lat"].values, ds["lon"].values
    if not np.all(np.diff(lat) > 0):
        raise InputError(f"{origin}: lat must ascend from south to north.")
    if not np.all(np.diff(lon) > 0) or not 0.0 <= lon[0] < 360.0:
        raise InputError(f"{origin}: lon must ascend from a first value in [0, 360).")
    for variable_name, variable in ds.data_vars.items():
        name = str(variable_name)
        if variable.dims != DIMS:
            raise InputError(f"{origin}: variable {name} has dims {variable.dims}; expected {DIMS}.")
        if name == LABELS:
            continue
        if name not in CHANNELS:
            raise InputError(f"{origin}: {name!r} is not a channel{near_matches(name, CHANNELS) or '.'}")
        units = variable.attrs.get("units")
        if units != CHANNELS[name].units:
            raise InputError(f"{origin}: variable {name} is in {units!r}; expected {CHANNELS[name].units!r}.")
        if variable.dtype != np.float32:
            raise InputError(f"{origin}: variable {name} is {variable.dtype}; expected float32.")
    missing = [c for c in channels if c not in ds.data_vars]
    if missing:
        known = ", ".join(str(v) for v in ds.data_vars) or "none"
        raise InputError(f"{origin}: has no channel {', '.join(missing)}; found: {known}.")


def iso_times(ds: xr.Dataset) -> list[str]:
    """The times of a Dataset in ISO 8601, on its own calendar."""
    times: list[str] = ds["time"].dt.strftime("%Y-%m-%dT%H:%M:%S").values.tolist()
    return times


def time_chunks(ds: xr.Dataset) -> tuple[int, ...]:
    """Lengths of the longest dask chunks in time of any variable; single steps where nothing is lazy."""
    lazy = [v.chunksizes["time"] for v in ds.variables.values() if v.chunks and "time" in v.dims]
    return min(lazy, key=len) if lazy else (1,) * ds.sizes["time"]


def check_values(channel: str, values: NDArray[np.float32], time: str, origin: str) -> None:
    """Refuse one time step of a channel when it holds missing or infinite values, or values that its unit cannot give.

    Raises:
        InputError: It does; origin, channel, time and the mend are named.
    """
    check_complete(channel, values, time, origin)
    check_range(channel, values, time, origin)


def check_complete(channel: str, values: NDArray[np.float32], time: str, origin: str) -> None:
    """Refuse one time step of a channel when it holds missing or infinite values.

    Raises:
        InputError: It does; how many, origin, channel, time and the mend are named.
    """
    bad = int(values.size - np.isfinite(values).sum())
    if bad:
        raise InputError(
            f"{origin}: channel {channel} has {bad} missing or infinite of {values.size} values at {time}; fill them, "
            "or leave out that time step or that channel."
        )


def check_range(channel: str, values: NDArray[np.float32], time: str, origin: str) -> None:
    """Refuse one time step of a channel when it holds values that its unit cannot give; missing ones (NaN) may be.

    Raises:
        InputError: It does; origin, channel, time, the unit that would explain all the values, and the mend are named.
    """
    lowest, highest = CHANNELS[channel].plausible
    outside = int(((values < lowest) | (values > highest)).sum())
    if not outside:
        return
    from climseg.likely_units import likely_units  # loads pint, for a second; only a refusal needs it

    mistake = likely_units(channel, values)
    raise InputError(
        f"{origin}: channel {channel} runs from {np.nanmin(values):g} to {np.nanmax(values):g} at {time}; in "
        f"{CHANNELS[channel].units} it lies within {lowest:g} and {highest:g}. "
        + (
            f"The values look like {mistake}: correct the units attribute in the files (for example with ncatted)."
            if mistake
            else f"{outside} of {values.size} values lie outside: correct the units attribute, or mark fill values as "
            "missing."
        )
    )


def _axis(ds: xr.Dataset, name: str, origin: str) -> NDArray[Any]:
    """A coordinate as float64 values, refused when absent, not one-dimensional or not finite."""
    if name not in ds.coords:
        raise InputError(f"{origin}: has no {name} coordinate; expected a regular latitude-longitude grid.")
    if ds[name].dims != (name,):
        raise InputError(
            f"{origin}: {name} has the dimensions {ds[name].dims}; expected a regular latitude-longitude grid with a "
            f"one-dimensional {name}. Interpolate curvilinear, rotated or unstructured grids to one first."
        )
    values = np.asarray(ds[name].values, dtype=np.float64)
    if not np.all(np.isfinite(values)):
        raise InputError(f"{origin}: {name} holds missing values.")
    return values
