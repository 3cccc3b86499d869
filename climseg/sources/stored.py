"""What the readers say of one file: its variables as they are stored, its times, and how to read a part of one.

A reader (``netcdf``, ``grib``, ``zarr_store``) turns a path into :class:`StoredFile` objects, without values but those
of coordinates. Years of hourly files are many: what equals between files is shared (:class:`Layout`), so that a file
costs its path and its times, and what follows from a layout is worked out once.
"""

import pickle
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from climseg.errors import InputError

# Lower-case names; the first that a file has is taken. valid_time before time: where a file has both, time is the start
# of the forecast.
TIMES: Final = ("valid_time", "time")
# These differ from file to file for packed variables, and are kept outside of the layout.
PACKING: Final = ("scale_factor", "add_offset")
# More than any file has: beyond these a damaged header would fill the memory. A step of the largest grid takes 1 GiB.
LONGEST_COORDINATE: Final = 4_000_000
LARGEST_GRID: Final = 2**28
# The readers' modules, and what people call their formats.
FORMATS: Final = {"netcdf": "netCDF", "grib": "GRIB", "zarr_store": "Zarr"}


@dataclass(frozen=True)
class StoredVariable:
    """One variable as it is stored.

    Attributes:
        name: Its name, with the path of its group, if any.
        dims: Names of the dimensions.
        shape: Their sizes.
        dtype: The stored type.
        attributes: As in the file, without scale_factor and add_offset.
        chunks: Stored chunk sizes, or None where the file has none.
        values: Of coordinates and other small variables; None for fields.
        part_of: For one channel of a stored (lat, lon, channel) array: that array and the channel's position.
    """

    name: str
    dims: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    attributes: Mapping[str, Any]
    chunks: tuple[int, ...] | None = None
    values: NDArray[Any] | None = None
    part_of: tuple[str, int] | None = None

    @property
    def sizes(self) -> dict[str, int]:
        """Sizes by dimension."""
        return dict(zip(self.dims, self.shape, strict=True))


@dataclass(frozen=True, eq=False)
class Layout:
    """What files of one kind share; compared by identity.

    Attributes:
        variables: By name. The time variable is there without values.
        attributes: Global attributes by which a source is recognised.
    """

    variables: Mapping[str, StoredVariable]
    attributes: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Sizes of all dimensions."""
        return {dim: size for v in self.variables.values() for dim, size in v.sizes.items()}

    def fields(self) -> list[StoredVariable]:
        """Variables with values in space: those that are not read at once, but for axes and bounds."""
        return [v for v in self.variables.values() if v.values is None and len(v.dims) > 1 and not _is_axis(v)]


@dataclass(frozen=True)
class RawTime:
    """A time variable before it is decoded.

    Attributes:
        name: In the file.
        values: Numbers, of any shape.
        units: Such as ``hours since 1900-01-01``; None if absent.
        calendar: CF calendar; None if absent.
        bounds: (time, 2) in the same units, or None.
    """

    name: str
    values: NDArray[Any]
    units: str | None
    calendar: str | None
    bounds: NDArray[Any] | None = None


@dataclass(frozen=True)
class StoredFile:
    """One file, or one part of a file that has its own times (GRIB).

    Attributes:
        path: Where it is read.
        origin: What an error calls it: the path, or "member of archive".
        format: Name of the reader's module: ``netcdf``, ``grib`` or ``zarr_store``.
        layout: Shared with other files.
        time: Its time variable, or None.
        packing: scale_factor and add_offset by variable, where there are any.
        seconds: Of accumulation, one per time, where the file says it beside the times (GRIB), else None.
        offsets: Where the message of each time begins (GRIB).
        options: For the reader (access to an object store).
        stamp: Size and time of modification (ns) when it was looked at, or None for a store of many files.
    """

    path: str
    origin: str
    format: str
    layout: Layout
    time: RawTime | None
    packing: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    seconds: NDArray[np.float64] | None = None
    offsets: tuple[Any, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    stamp: tuple[int, int] | None = None


def is_time(variable: StoredVariable) -> bool:
    """Whether a variable is a time axis by its name or standard name."""
    return variable.name.lower() in TIMES or variable.attributes.get("standard_name") == "time"


def time_rank(name: str) -> int:
    """The place of a time variable among those of a file, of which the first is taken: TIMES, then others."""
    return TIMES.index(name.lower()) if name.lower() in TIMES else len(TIMES)


def raw_time(
    origin: str,
    variable: StoredVariable,
    values: NDArray[Any],
    packing: tuple[float, float] | None,
    bounds: NDArray[Any] | None = None,
) -> RawTime:
    """A time variable as its file has it, unpacked.

    Raises:
        InputError: A time is missing.
    """
    if any(bool((values == fill).any()) for fill in fills_of(variable)):
        raise InputError(f"{origin}: {variable.name} holds missing values.")
    units, calendar = (variable.attributes.get(key) for key in ("units", "calendar"))
    return RawTime(
        variable.name,
        values if packing is None else unpack(values, packing),
        None if units is None else str(units),
        None if calendar is None else str(calendar),
        bounds,
    )


def without_packing(attributes: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[float, float] | None]:
    """The attributes of a variable without scale_factor and add_offset, and these, or None where it has neither."""
    rest = {key: value for key, value in attributes.items() if key not in PACKING}
    if len(rest) == len(attributes):
        return rest, None
    return rest, (float(attributes.get("scale_factor", 1.0)), float(attributes.get("add_offset", 0.0)))


def unpack(values: NDArray[Any], packing: tuple[float, float]) -> NDArray[np.float64]:
    """Values of a packed coordinate: scale_factor times the stored ones, plus add_offset."""
    return np.asarray(values.astype(np.float64) * packing[0] + packing[1])


def fills_of(variable: StoredVariable) -> tuple[float, ...]:
    """Stored values that mean missing."""
    fills: list[float] = []
    for key in ("_FillValue", "missing_value"):
        value = variable.attributes.get(key)
        if value is None or np.asarray(value).dtype.kind not in "iuf":
            continue
        for number in np.ravel(value).tolist():
            whole = variable.dtype.kind == "f" or (np.isfinite(number) and float(number).is_integer())
            if whole and _holds(variable.dtype, number):
                fills.append(float(number))
    return tuple(dict.fromkeys(f for f in fills if not np.isnan(f)))


def _holds(dtype: np.dtype[Any], number: float) -> bool:
    if dtype.kind == "f":
        return True
    limits = np.iinfo(dtype)
    return bool(limits.min <= number <= limits.max)


def _is_axis(variable: StoredVariable) -> bool:
    """Whether a variable describes the grid or the time: coordinates in two dimensions, bounds, names."""
    name, standard_name = variable.name.lower(), variable.attributes.get("standard_name")
    if is_time(variable) or variable.dtype.kind not in "biuf":
        return True
    return (
        name in ("lat", "lon", "latitude", "longitude")
        or standard_name in ("latitude", "longitude")
        or (name.endswith(("_bnds", "_bounds")))
    )


def share_layouts(files: Iterable[StoredFile]) -> list[StoredFile]:
    """The same files, with equal layouts made one."""
    known: dict[bytes, Layout] = {}
    by_identity: dict[int, Layout] = {}
    shared = []
    for file in files:
        layout = by_identity.get(id(file.layout))
        if layout is None:
            key = pickle.dumps((dict(file.layout.variables), dict(file.layout.attributes)))
            layout = known.setdefault(key, file.layout)
            by_identity[id(file.layout)] = layout
        shared.append(file if layout is file.layout else replace(file, layout=layout))
    return shared
