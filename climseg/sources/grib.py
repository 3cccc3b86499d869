"""GRIB files through cfgrib's messages, one by one: nothing is skipped because levels or steps differ.

cfgrib puts the messages of a file into hypercubes and leaves out what does not fit (cfgrib issues 13 and 66). Here
every message is looked at, and those of one variable on one level make one part of the file with its own times. No
index is written beside the file (cfgrib issue 292). ecCodes runs in a helper process, which a damaged file may bring
down.
"""

import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from climseg import isolated
from climseg.errors import InputError
from climseg.sources.grib2 import check_sections
from climseg.sources.stored import LARGEST_GRID, LONGEST_COORDINATE, Layout, RawTime, StoredFile, StoredVariable

_REGULAR: Final = ("regular_ll", "regular_gg")
# Names that the same quantity has on many kinds of levels; off the pressure levels theirs is told, as in t@surface.
_ON_MANY_LEVELS: Final = ("u", "v", "t", "z", "gh", "q", "r", "w", "pres", "vo", "d", "absv")
_KEYS: Final = (
    "shortName", "typeOfLevel", "level", "stepType", "stepRange", "stepUnits", "units", "gridType", "Ni", "Nj",
    "centre", "validityDate", "validityTime", "number", "iScansNegatively", "jScansPositively",
    "jPointsAreConsecutive",
    "latitudeOfFirstGridPointInDegrees", "latitudeOfLastGridPointInDegrees", "longitudeOfFirstGridPointInDegrees",
    "longitudeOfLastGridPointInDegrees", "iDirectionIncrementInDegrees", "alternativeRowScanning",
)  # fmt: skip
# Of the processor, for what takes milliseconds and, for the largest grids, a second: see isolated.time_limit.
_HEADER_SECONDS: Final = 3.0
_DECODING_SECONDS: Final = 10.0
_HOURS_OF_STEP: Final = {"m": 1 / 60, "h": 1.0, "D": 24.0, "3h": 3.0, "6h": 6.0, "12h": 12.0, "s": 1 / 3600}


@dataclass(frozen=True)
class _Message:
    """The header of one message."""

    offset: Any
    keys: dict[str, Any]
    latitudes: tuple[float, ...] | None


def scan(path: str) -> list[StoredFile]:
    """What one GRIB file holds: one part for each variable on one level, with the times of its messages.

    Returns:
        Variables (time, latitude, longitude) named by ecCodes' short name, ``name@typeOfLevel`` for winds, temperatures
        and the like off the pressure levels, ``name:stepType`` for means over time; a scalar ``level`` in hPa.

    Raises:
        InputError: The file is damaged or truncated, or holds no message.
    """
    groups: dict[tuple[Any, ...], list[_Message]] = defaultdict(list)
    try:
        check_sections(Path(path))
        for message in _messages(path):
            groups[_group(message)].append(message)
        return [part for group in groups.values() for part in _part(path, group)]
    except Exception as error:  # cfgrib and ecCodes raise many kinds, and a damaged header gives what makes no sense
        raise InputError(
            f"{path}: cannot be read as GRIB ({str(error).strip() or type(error).__name__}); the file is truncated or "
            "damaged. Copy or download it again."
        ) from error


def read(file: StoredFile, name: str, key: tuple[Any, ...]) -> NDArray[np.float32]:
    """Values (time, latitude, longitude) float32 of some messages; missing ones are NaN.

    Args:
        file: A part of :func:`scan`.
        name: Of its variable.
        key: A slice of times, then whole axes.

    Raises:
        InputError: The file was damaged or removed.
    """
    offsets = file.offsets[key[0]]
    shape = file.layout.variables[name].shape[1:]
    try:
        values: NDArray[np.float32] = isolated.call(read_messages, file.path, offsets, shape)
    except isolated.HelperDiedError as error:
        raise InputError(
            f"{file.origin}: variable {name} cannot be read ({error}); the file is damaged. Copy or download it again."
        ) from error
    return values[(slice(None), *key[1:])]


def read_messages(path: str, offsets: tuple[Any, ...], shape: tuple[int, int]) -> NDArray[np.float32]:
    """Values (message, latitude, longitude) of the messages that begin at offsets; runs in the helper process."""
    from cfgrib.messages import FileStream

    stream = FileStream(path, errors="raise")
    try:
        out = np.empty((len(offsets), *shape), np.float32)
        for i, offset in enumerate(offsets):
            with isolated.time_limit(_DECODING_SECONDS):
                message = stream[offset]
                values = np.asarray(message["values"], np.float64)
                if message["bitmapPresent"]:
                    values = np.where(values == message["missingValue"], np.nan, values)
                if message["jPointsAreConsecutive"]:
                    values = values.reshape(shape[::-1]).T
                out[i] = values.reshape(shape)
    except Exception as error:
        raise InputError(
            f"{path}: a message cannot be read ({str(error).strip() or type(error).__name__}); the file was damaged or "
            "removed."
        ) from error
    return out


def _messages(path: str) -> list[_Message]:
    from cfgrib.messages import FileStream

    found: list[_Message] = []
    items = iter(FileStream(path, errors="raise").items())
    while True:
        with isolated.time_limit(_HEADER_SECONDS):
            offset, message = next(items, (None, None))
            if message is None:
                return found
            keys = {key: message.get(key) for key in _KEYS}
            latitudes = tuple(message["distinctLatitudes"]) if keys["gridType"] == "regular_gg" else None
        found.append(_Message(offset, keys, latitudes))


def _group(message: _Message) -> tuple[Any, ...]:
    """What messages share that follow each other in time: everything but the time, the step and the place."""
    own = ("validityDate", "validityTime", "stepRange", "stepUnits")
    return (*(message.keys[k] for k in _KEYS if k not in own), message.latitudes)


def _part(path: str, messages: list[_Message]) -> list[StoredFile]:
    """One variable on one level, or nothing where its grid or time is none that a field here could have."""
    keys = messages[0].keys
    if keys["gridType"] not in _REGULAR or keys["alternativeRowScanning"]:
        # Kept, so that asking for it is refused by the name of its grid.
        values = StoredVariable("values", ("grid",), (1,), np.dtype("f4"), {})
        return [StoredFile(path, path, "grib", Layout({"values": values}, {"gridType": str(keys["gridType"])}), None)]
    messages = sorted(messages, key=lambda m: (m.keys["validityDate"], m.keys["validityTime"]))
    lat, lon = _axes(messages[0])
    on_pressure = keys["typeOfLevel"] in ("isobaricInhPa", "isobaricInPa")
    name = _name(keys, on_pressure)
    shape = (len(messages), lat.size, lon.size)
    variables = {
        "latitude": _axis("latitude", lat, "degrees_north"),
        "longitude": _axis("longitude", lon, "degrees_east"),
        "time": StoredVariable("time", ("time",), (len(messages),), np.dtype("f8"), {}),
        name: StoredVariable(
            name,
            ("time", "latitude", "longitude"),
            shape,
            np.dtype("f4"),
            {"units": str(keys["units"]), "coordinates": "level number"},
            (1, lat.size, lon.size),
        ),
    }
    if on_pressure:
        units = "hPa" if keys["typeOfLevel"] == "isobaricInhPa" else "Pa"
        variables["level"] = StoredVariable(
            "level", (), (), np.dtype("f8"), {"units": units}, None, np.asarray(float(keys["level"]))
        )
    if keys["number"] is not None:
        variables["number"] = StoredVariable("number", (), (), np.dtype("i8"), {}, None, np.asarray(keys["number"]))
    seconds = [_accumulation_seconds(m.keys) for m in messages]
    return [
        StoredFile(
            path,
            path,
            "grib",
            Layout(variables, {"GRIB_centre": str(keys["centre"])}),
            RawTime("time", np.array([_hours(m.keys) for m in messages]), "hours since 1900-01-01", "standard"),
            seconds=None if None in seconds else np.array(seconds, np.float64),
            offsets=tuple(m.offset for m in messages),
        )
    ]


def _axis(name: str, values: NDArray[np.float64], units: str) -> StoredVariable:
    return StoredVariable(name, (name,), values.shape, np.dtype("f8"), {"units": units}, None, values)


def _name(keys: dict[str, Any], on_pressure: bool) -> str:
    name = str(keys["shortName"])
    if not on_pressure and name in _ON_MANY_LEVELS:
        name = f"{name}@{keys['typeOfLevel']}"
    if keys["stepType"] not in ("instant", "accum", None) and not name.startswith("avg_"):
        name = f"{name}:{keys['stepType']}"
    return name


def _axes(message: _Message) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Latitudes and longitudes in the order of the values, whatever the scanning mode."""
    k = message.keys
    first_lat, last_lat = k["latitudeOfFirstGridPointInDegrees"], k["latitudeOfLastGridPointInDegrees"]
    first_lon, last_lon = k["longitudeOfFirstGridPointInDegrees"], k["longitudeOfLastGridPointInDegrees"]
    rows, columns = int(k["Nj"]), int(k["Ni"])
    if max(rows, columns) > LONGEST_COORDINATE or rows * columns > LARGEST_GRID:
        raise ValueError(f"a grid of {rows} x {columns} points")
    if message.latitudes is None:
        lat = np.linspace(first_lat, last_lat, rows)
    else:
        south_first = bool(k["jScansPositively"])
        lat = np.sort(message.latitudes) if south_first else np.sort(message.latitudes)[::-1]
    span = (first_lon - last_lon) % 360.0 if k["iScansNegatively"] else (last_lon - first_lon) % 360.0
    span = span or 360.0  # a cyclic column, the first one again
    lon = first_lon + np.linspace(0.0, -span if k["iScansNegatively"] else span, columns)
    return lat, lon


def _hours(keys: dict[str, Any]) -> float:
    """Valid time in hours since 1900-01-01."""
    date, time = int(keys["validityDate"]), int(keys["validityTime"])
    day = np.datetime64(f"{date // 10000:04d}-{date // 100 % 100:02d}-{date % 100:02d}")
    days = (day - np.datetime64("1900-01-01")).astype(int)
    return float(days * 24 + time // 100 + time % 100 / 60)


def _accumulation_seconds(keys: dict[str, Any]) -> float | None:
    """The period of an accumulation, from its range of steps such as 66-72; None where the message does not say it."""
    match = re.fullmatch(r"(-?\d+)([a-z]?)-(-?\d+)([a-z]?)", str(keys["stepRange"]))
    if keys["stepType"] != "accum" or match is None:
        return None
    unit = match[4] or _step_unit(keys["stepUnits"])
    hours = (int(match[3]) - int(match[1])) * _HOURS_OF_STEP.get(unit, np.nan)
    return hours * 3600.0 if hours > 0 else None


def _step_unit(value: Any) -> str:
    return {"0": "m", "1": "h", "2": "D", "10": "3h", "11": "6h", "12": "12h", "13": "s"}.get(str(value), str(value))
