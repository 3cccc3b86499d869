"""Several files become one Dataset: their times put in order, their variables side by side."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import xarray as xr

from climseg.errors import InputError

# Degrees: two files store the same grid as float32 and float64.
_SAME_COORDINATE = 1e-4

Part = tuple[Path, xr.Dataset]


def combine_files(parts: Sequence[Part]) -> xr.Dataset:
    """Combine the variables of several files on one grid and one time axis.

    Each variable is put together from all files that hold it, in the order of their times (never of their names); then
    all variables must have the same times. So files may follow each other in time, hold one variable each, or both.

    Args:
        parts: For each file its path and its variables, on (time, lat, lon) and in equal units over all files.

    Returns:
        A Dataset on (time, lat, lon), time increasing without repeats, lat and lon as in the first file.

    Raises:
        InputError: Grids, calendars or times of the files do not fit together, by name of the files.
    """
    parts = [part for part in parts if part[1].data_vars]
    if not parts:
        raise ValueError("no file holds a variable; the source must refuse that with a reason")
    _check_same_grid(parts)
    _check_same_calendar(parts)
    names = list(dict.fromkeys(name for _, ds in parts for name in ds.data_vars))
    joined = {str(name): _join([(path, ds[name]) for path, ds in parts if name in ds.data_vars]) for name in names}
    _check_same_times(joined, parts)
    out = xr.Dataset(joined)
    out["time"].encoding = dict(parts[0][1]["time"].encoding)
    return out


def _join(pieces: Sequence[tuple[Path, xr.DataArray]]) -> xr.DataArray:
    """One variable along time, sorted, on the coordinates of the first file."""
    template = pieces[0][1]
    pieces = sorted(pieces, key=lambda piece: piece[1].indexes["time"][0])
    arrays = [array.assign_coords(lat=template["lat"], lon=template["lon"]) for _, array in pieces]
    joined = arrays[0] if len(arrays) == 1 else xr.concat(arrays, "time", join="override", combine_attrs="override")
    times = joined.indexes["time"]
    if times.has_duplicates:
        _refuse_duplicate(times[times.duplicated()][0], pieces)
    return joined if times.is_monotonic_increasing else joined.isel(time=times.argsort())


def _refuse_duplicate(time: object, pieces: Sequence[tuple[Path, xr.DataArray]]) -> None:
    name = pieces[0][1].name
    holders = [path for path, array in pieces for t in array.indexes["time"] if t == time]
    if holders[0] == holders[1]:
        raise InputError(f"{holders[0]}: variable {name} has the time {time} twice; leave one of the two out.")
    raise InputError(
        f"The time {time} of variable {name} is in both {holders[0]} and {holders[1]}; leave one of the two files out."
    )


def _check_same_grid(parts: Sequence[Part]) -> None:
    first_path, first = parts[0]
    for path, ds in parts[1:]:
        for axis in ("lat", "lon"):
            here, there = first[axis].values, ds[axis].values
            if here.shape != there.shape or not np.allclose(here, there, rtol=0.0, atol=_SAME_COORDINATE):
                raise InputError(
                    f"{first_path} and {path} have unequal grids: {axis} is {_range(here)} in the first and "
                    f"{_range(there)} in the second. Interpolate both to one grid, or give them in separate runs."
                )


def _range(values: np.ndarray) -> str:
    return f"{values[0]:g} to {values[-1]:g} in {values.size} points"


def _check_same_calendar(parts: Sequence[Part]) -> None:
    first_path, first = parts[0]
    for path, ds in parts[1:]:
        if _calendar(ds) != _calendar(first):
            raise InputError(
                f"{first_path} has the calendar {_calendar(first)} and {path} has {_calendar(ds)}; one axis cannot "
                "hold both. Give them in separate runs, or convert one (for example with cdo setcalendar)."
            )


def _calendar(ds: xr.Dataset) -> str:
    index = ds.indexes["time"]
    return str(index.calendar) if isinstance(index, xr.CFTimeIndex) else "standard"


def _check_same_times(joined: dict[str, xr.DataArray], parts: Sequence[Part]) -> None:
    """Refuse variables that drift apart in time, naming the first time that one has and another lacks."""
    first_name, first = next(iter(joined.items()))
    for name, variable in joined.items():
        here, there = first.indexes["time"], variable.indexes["time"]
        if here.equals(there):
            continue
        time = here.symmetric_difference(there).min()
        has, lacks = (first_name, name) if time in here else (name, first_name)
        path = next(p for p, ds in parts if has in ds.data_vars and time in ds.indexes["time"])
        raise InputError(
            f"Variable {lacks} has no value at {time}, where {path} has {has}; give files in which all variables have "
            "the same times, or leave one of the two variables out with source.channels."
        )
