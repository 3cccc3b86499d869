"""The axes of files of one layout: time, latitude, longitude, levels; and the reason when a file has no such axes."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from climseg.canonical import orient
from climseg.errors import InputError
from climseg.sources.stored import LARGEST_GRID, Layout, RawTime, StoredFile, StoredVariable, is_time, time_rank
from climseg.units import is_convertible, unit_conversion

LATITUDES: Final = ("lat", "latitude")
LONGITUDES: Final = ("lon", "longitude")
PRESSURE_LEVELS: Final = ("pressure_level", "level", "isobaricInhPa", "isobaricInPa", "plev")

# The cell dimension of unstructured grids: CAM-SE, UGRID, MPAS, ICON.
_UNSTRUCTURED: Final = ("ncol", "n_face", "nface", "nMesh2_face", "nCells", "ncells", "cell")
_EXPECTED: Final = "expected a regular latitude-longitude grid"
_INTERPOLATE: Final = "interpolate it to one first (for example with cdo remapbil)"


@dataclass(frozen=True, eq=False)
class Axes:
    """Where the axes are in files of one layout, and how their rows and columns become canonical.

    Attributes:
        time: The dimension along the time; None where the file is of one moment.
        lat: The dimension of rows.
        lon: The dimension of columns.
        grid: An empty canonical Dataset with the coordinates lat and lon.
        rows: For each canonical row, its row in the file.
        columns: For each canonical column, its column in the file.
    """

    time: str | None
    lat: str
    lon: str
    grid: xr.Dataset
    rows: NDArray[np.intp]
    columns: NDArray[np.intp]


@lru_cache(maxsize=4096)
def find_axes(layout: Layout) -> Axes:
    """The axes of files of one layout.

    Raises:
        InputError: The grid is unstructured, rotated, curvilinear or has no coordinates; the sentence lacks the file's
            name, which the caller knows.
    """
    _refuse_other_grids(layout)
    lat = find_coordinate(layout, LATITUDES, "latitude")
    lon = find_coordinate(layout, LONGITUDES, "longitude")
    if lat is None or lon is None:
        missing = " and ".join(n for n, found in (("latitude", lat), ("longitude", lon)) if found is None)
        raise InputError(f"has no {missing} coordinate (dimensions: {_dims(layout)}); {_EXPECTED}.")
    for axis in (lat, lon):
        if len(axis.dims) == 2:
            raise InputError(f"{axis.name} has two dimensions, a curvilinear grid; {_EXPECTED}, {_INTERPOLATE}.")
        if len(axis.dims) != 1:
            raise InputError(f"{axis.name} is a single value; {_EXPECTED} of at least 2 x 2 points.")
    if lat.dims == lon.dims:
        raise InputError(
            f"lat and lon share the dimension {lat.dims[0]}, an unstructured grid; {_EXPECTED}, {_INTERPOLATE}."
        )
    rows, columns = (_degrees(axis) for axis in (lat, lon))
    if rows.size * columns.size > LARGEST_GRID:
        raise InputError(f"has a grid of {rows.size} x {columns.size} points; expected at most {LARGEST_GRID:,}.")
    dummy = xr.Dataset(
        {"row": ("lat", np.arange(rows.size)), "column": ("lon", np.arange(columns.size))},
        coords={"time": [np.datetime64("2000-01-01", "ns")], "lat": rows, "lon": columns},
    )
    oriented = orient(dummy, _NAMELESS)
    return Axes(
        _time_dimension(layout),
        lat.dims[0],
        lon.dims[0],
        oriented.drop_vars(["row", "column", "time"]),
        oriented["row"].values,
        oriented["column"].values,
    )


# What canonical.orient puts before its sentences, to be taken off again.
_NAMELESS: Final = "the file"


def axes_of(file: StoredFile) -> Axes:
    """:func:`find_axes` of a file's layout, with the file named in an error."""
    try:
        return find_axes(file.layout)
    except InputError as error:
        raise InputError(f"{file.origin}: {str(error).removeprefix(f'{_NAMELESS}: ')}") from error


def find_coordinate(layout: Layout, names: tuple[str, ...], standard_name: str) -> StoredVariable | None:
    """The variable that is an axis: by its name, else by its CF standard name."""
    folded = {name.lower(): variable for name, variable in layout.variables.items()}
    for name in names:
        if name in folded:
            return folded[name]
    return next((v for v in layout.variables.values() if v.attributes.get("standard_name") == standard_name), None)


def times_of(file: StoredFile, time: str | None) -> tuple[pd.Index, dict[str, Any]]:
    """The times of one file, and the encoding to write them with.

    Args:
        file: Of a layout with axes.
        time: The time of a file that has none (ISO 8601, standard calendar).

    Returns:
        An index of datetime64 or cftime objects in whole seconds, so that "days since" in one file and "hours since" in
        another agree on one moment; at least one.

    Raises:
        InputError: There is no usable time.
    """
    axes = axes_of(file)
    if file.time is None:
        if time is None:
            raise InputError(_no_time(file, axes))
        return pd.DatetimeIndex([_parse_time(str(time))]), {}
    if time is not None:
        raise InputError(f"{file.origin}: has a time of its own ({file.time.name}); leave out source.time={time}.")
    index = _decode(file.time, file.origin)
    steps = file.layout.sizes.get("time", index.size)
    if axes.time != "time" and steps not in (1, index.size):
        raise InputError(
            f"{file.origin}: has {steps} steps along 'time', but {file.time.name} gives {index.size} along "
            f"{axes.time!r}."
        )
    # The units of the file as floats: they hold any moment, also those of other files with units of their own.
    encoding = {"units": file.time.units, "calendar": file.time.calendar, "dtype": "float64"}
    return index, {key: value for key, value in encoding.items() if value is not None}


def accumulation_seconds(file: StoredFile, variable: StoredVariable) -> NDArray[np.float64] | None:
    """The period of accumulation of each time step in s, if the file says it; it is never guessed.

    By the range of steps (GRIB) or the bounds of the times (CF conventions, section 7.1). The ``interval`` in
    ``cell_methods`` is no period: it is the spacing of the data that were summed (section 7.3).
    """
    if file.seconds is not None:
        return file.seconds
    if file.time is None or file.time.bounds is None or file.time.units is None:
        return None
    if re.search(r"time:\s*(mean|point)", str(variable.attributes.get("cell_methods"))):
        return None
    unit = _seconds_of(file.time.units.split(" since ")[0].strip())
    if unit is None:
        return None
    lengths = np.abs(np.diff(file.time.bounds.reshape(-1, 2).astype(np.float64), axis=1))[:, 0] * unit
    return lengths if ((lengths > 0) & (lengths < _LONGEST_PERIOD)).all() else None


# s; longer ones are bounds that were never written.
_LONGEST_PERIOD: Final = 400 * 86400.0


def pressure_axis(layout: Layout, variable: StoredVariable) -> StoredVariable | None:
    """The coordinate of a variable's pressure levels, along one of its dims or a scalar; None without one.

    By name, else by units of pressure.
    """
    if hybrid_axis(layout, variable) is not None:
        return None
    named = str(variable.attributes.get("coordinates", "")).split()
    for name in (*variable.dims, *named):
        axis = layout.variables.get(name)
        if axis is None or axis.values is None or len(axis.dims) > 1:
            continue
        if axis.dims and axis.dims[0] not in variable.dims:
            continue
        if name == "P0" or "hybrid" in str(axis.attributes.get("standard_name")):
            continue  # of hybrid levels, which have their nominal pressure over the ocean alone
        if name in PRESSURE_LEVELS or is_convertible(axis.attributes.get("units"), "Pa"):
            return axis
    return None


@dataclass(frozen=True)
class Hybrid:
    """The coefficients of hybrid levels: pressure = a * reference + b * surface pressure.

    Attributes:
        dim: The dimension of levels.
        a: (level,) dimensionless.
        b: (level,) dimensionless.
        reference: Pa.
    """

    dim: str
    a: NDArray[np.float64]
    b: NDArray[np.float64]
    reference: float


def hybrid_axis(layout: Layout, variable: StoredVariable) -> Hybrid | None:
    """The hybrid levels of a variable by CAM's names hyam, hybm and P0, or None.

    hyam may be a pressure by its units (ECHAM, IFS) instead of a share of the reference pressure P0.
    """
    a, b = (layout.variables.get(name) for name in ("hyam", "hybm"))
    if a is None or b is None or a.values is None or b.values is None or a.dims != b.dims or len(a.dims) != 1:
        return None
    if a.dims[0] not in variable.dims:
        return None
    p0 = layout.variables.get("P0")
    reference = 1e5 if p0 is None or p0.values is None else float(np.ravel(p0.values)[0]) * _pascals(p0)
    values = a.values.astype(np.float64)
    if is_convertible(a.attributes.get("units"), "Pa"):
        values, reference = values * _pascals(a), 1.0
    return Hybrid(a.dims[0], values, b.values.astype(np.float64), reference)


def _pascals(variable: StoredVariable) -> float:
    """Pa in a unit of a pressure; without units it is Pa already."""
    units = variable.attributes.get("units")
    return unit_conversion(units, "Pa", variable.name, "the file")[0] if is_convertible(units, "Pa") else 1.0


def _refuse_other_grids(layout: Layout) -> None:
    """Refuse grids that are known by their names or attributes, whether they bring latitudes along or not."""
    if "gridType" in layout.attributes:
        raise InputError(f"has a grid of the kind {layout.attributes['gridType']}; {_EXPECTED}, {_INTERPOLATE}.")
    for name, variable in layout.variables.items():
        if variable.attributes.get("standard_name") == "grid_latitude":
            raise InputError(f"has a rotated pole ({name}); {_EXPECTED}, {_INTERPOLATE}.")
    for dim in _UNSTRUCTURED:
        if dim in layout.sizes:
            raise InputError(f"has an unstructured grid (dimension {dim}); {_EXPECTED}, {_INTERPOLATE}.")


def _degrees(axis: StoredVariable) -> NDArray[np.float64]:
    if axis.values is None or axis.values.dtype.kind not in "iuf":
        raise InputError(f"{axis.name} holds no numbers; {_EXPECTED}.")
    units = str(axis.attributes.get("units", ""))
    if re.search("rad|west|south|degreew|degreeS", units):
        raise InputError(f"{axis.name} is in {units!r}; expected degrees_north or degrees_east.")
    return axis.values.astype(np.float64)


def _time_dimension(layout: Layout) -> str | None:
    times = [v for v in layout.variables.values() if is_time(v)]
    times.sort(key=lambda v: time_rank(v.name))
    if times:
        return times[0].dims[0] if times[0].dims else None
    return "time" if "time" in layout.sizes else None


def _no_time(file: StoredFile, axes: Axes) -> str:
    """Why a file without a time coordinate cannot be used, and what mends it."""
    others = {d: n for d, n in file.layout.sizes.items() if n > 1 and d not in (axes.lat, axes.lon, *PRESSURE_LEVELS)}
    dims = _dims(file.layout)
    if others:
        dim, steps = next(iter(others.items()))
        return (
            f"{file.origin}: has no time coordinate (dimensions: {dims}); the {steps} values along {dim!r} carry no "
            "times. Give the file a time axis (for example with cdo settaxis), or a file for each time step."
        )
    return (
        f"{file.origin}: has no time coordinate (dimensions: {dims}). If it holds a single time step, give it alone, "
        "with its time as source.time=2011-10-11T00."
    )


def _decode(time: RawTime, origin: str) -> pd.Index:
    if time.values.ndim > 1:
        raise InputError(f"{origin}: {time.name} has {time.values.ndim} dimensions; expected one axis of times.")
    if " since " not in str(time.units):
        raise InputError(
            f"{origin}: {time.name} has the units {time.units!r}; expected units such as 'hours since 1900-01-01'."
        )
    values = np.atleast_1d(time.values)
    if values.size == 0:
        raise InputError(f"{origin}: holds no time step.")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise InputError(f"{origin}: {time.name} holds missing values.")
    quick = _decode_standard(values, str(time.units), time.calendar)
    if quick is not None:
        return quick
    attributes = {"units": time.units} | ({} if time.calendar is None else {"calendar": time.calendar})
    try:
        decoded = xr.conventions.decode_cf_variable(time.name, xr.Variable(("time",), values, attributes))
        index = decoded.to_index()
    except (ValueError, OverflowError, TypeError, AttributeError) as error:
        raise InputError(
            f"{origin}: variable {time.name} in {time.units!r} with the calendar {time.calendar or 'standard'!r} "
            "cannot be decoded; expected units such as 'hours since 1900-01-01' and a CF calendar."
        ) from error
    if index.hasnans:
        raise InputError(f"{origin}: {time.name} holds missing values.")
    if isinstance(index, xr.CFTimeIndex) and all(moment.microsecond == 0 for moment in index):
        return index  # rounding cftime objects takes longer than all the rest
    return index.round("s")


# "hours since 1900-01-01", "days since 2001-01-01 00:00:0.0", without an offset from UTC.
_SINCE: Final = re.compile(
    r"(\w+) since (\d{4})-(\d{1,2})-(\d{1,2})(?:[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.0*)?)?)?\s*"
)
_STANDARD: Final = (None, "standard", "gregorian", "proleptic_gregorian")


def _decode_standard(values: NDArray[Any], units: str, calendar: str | None) -> pd.Index | None:
    """Times of the usual units in the usual calendar, a hundred times faster than by xarray; None for all others.

    Years of hourly files are thousands of time axes.
    """
    match = _SINCE.fullmatch(units)
    if match is None or calendar not in _STANDARD:
        return None
    seconds = _seconds_of(match[1])
    year, month, day = (int(n) for n in match.groups()[1:4])
    hour, minute, second = (int(n or 0) for n in match.groups()[4:7])
    if seconds is None or not 1678 <= year <= 2261:
        return None
    try:
        start = np.datetime64(f"{year:04d}-{month:02d}-{day:02d}T{hour:02d}:{minute:02d}:{second:02d}", "s")
    except ValueError:
        return None
    offsets = values.astype(np.float64) * seconds
    if np.abs(offsets).max() > _LONGEST_OFFSET:
        return None
    times = start + np.rint(offsets).astype("timedelta64[s]")
    if times.min() < _FIRST or times.max() > _LAST:
        return None
    return pd.DatetimeIndex(times.astype("datetime64[ns]"))


# What nanoseconds can count, and the start of the Gregorian calendar well inside of it.
_FIRST: Final = np.datetime64("1678-01-01")
_LAST: Final = np.datetime64("2262-01-01")
_LONGEST_OFFSET: Final = 600.0 * 366 * 86400  # s


def _parse_time(time: str) -> np.datetime64:
    if not re.match(r"\d{4}-\d{2}-\d{2}", time):
        raise InputError(f"source.time={time!r} is no time; expected the form 2011-10-11T00.")
    try:
        return np.datetime64(time, "ns")
    except ValueError as error:
        raise InputError(f"source.time={time!r} is no time; expected the form 2011-10-11T00.") from error


def _seconds_of(unit: str) -> float | None:
    units = {"s": 1.0, "second": 1.0, "sec": 1.0, "min": 60.0, "minute": 60.0, "h": 3600.0, "hr": 3600.0}
    units |= {"hour": 3600.0, "day": 86400.0, "d": 86400.0}
    name = unit.lower()
    return units.get(name, units.get(name.rstrip("s")))


def _dims(layout: Layout) -> str:
    return ", ".join(f"{name} of {size}" for name, size in layout.sizes.items()) or "none"
