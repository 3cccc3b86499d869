"""Fields looked up in files: by a name table, on the level that a recipe wants, with the conversion of their units."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from climseg.channels import CHANNELS, LABELS
from climseg.errors import InputError
from climseg.sources.axes import Axes, accumulation_seconds, axes_of, hybrid_axis, pressure_axis, times_of
from climseg.sources.recipes import EQUIVALENTS, LOWEST_LEVEL, MODEL_LEVELS, PRESSURE_LEVELS, Field
from climseg.sources.series import Slot
from climseg.sources.stored import Layout, StoredFile, StoredVariable, fills_of
from climseg.sources.table import NameTable
from climseg.sources.zarr_store import EMPTY
from climseg.units import is_convertible, unit_conversion


@dataclass
class Found:
    """Where one field is.

    Attributes:
        slots: By layout; several where single levels of a column lie in layouts of their own.
        names: What the files call it, for messages and comments.
        notes: How units were read, where the units attribute alone does not say it.
        pressures: Of the levels of a slot in Pa, by layout, for a field on pressure levels.
        hybrid: Coefficients a, b and the reference pressure, for a field on model levels.
    """

    slots: dict[Layout, Slot] = field(default_factory=dict)
    names: dict[str, None] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)
    pressures: dict[Layout, tuple[float, ...]] = field(default_factory=dict)
    hybrid: tuple[Any, Any, float] | None = None

    @property
    def levels_apart(self) -> bool:
        """Whether the levels of a column lie in layouts of their own."""
        return bool(self.pressures) and all(slot.levels is None for slot in self.slots.values())

    def leading(self) -> list[Layout]:
        """The layouts that give the field its times: all, or those of one level where levels lie apart."""
        if not self.levels_apart:
            return list(self.slots)
        first = min(self.pressures.values())
        return [layout for layout in self.slots if self.pressures[layout] == first]


class _PeriodUnknownError(InputError):
    """The user must say over which period precipitation was accumulated."""


class Lookup:
    """Finds fields in files, and remembers why one could not be had.

    Attributes:
        problems: Fields that are there and cannot be used, and why.
        questions: Fields that can be used once the user says what the files do not, and what that is.
    """

    def __init__(self, files: Sequence[StoredFile], table: NameTable, accumulation_hours: float | None) -> None:
        """Look in these files by this table; the period of accumulation is for those that do not say it."""
        self.files = files
        self.table = table
        self.accumulation_hours = accumulation_hours
        self.problems: dict[Field, str] = {}
        self.questions: dict[Field, str] = {}
        self._files_of: dict[Layout, list[StoredFile]] = defaultdict(list)
        for file in files:
            self._files_of[file.layout].append(file)
        self._found: dict[Field, Found | None] = {}

    def find(self, wanted: Field) -> Found | None:
        """Where a field is, or None; ``problems`` or ``questions`` may then say why."""
        if wanted not in self._found:
            self._found[wanted] = self._search(wanted)
        return self._found[wanted]

    def _search(self, wanted: Field) -> Found | None:
        found = Found()
        covered: set[str] = set()
        try:
            for name in self.table.names.get(wanted.name, ()):
                # A file that holds the field under several names gives it under the first of them.
                added = []
                for layout, files in self._files_of.items():
                    fresh = layout not in found.slots and not covered.issuperset(file.origin for file in files)
                    if fresh and self._take(wanted, name, layout, files, found):
                        added += [file.origin for file in files]
                covered |= set(added)
            _check_column(wanted, found)
            self._check_one_member(found)
        except _PeriodUnknownError as error:
            self.questions[wanted] = str(error)
            return None
        except InputError as error:
            self.problems[wanted] = str(error)
            return None
        return found if found.slots else None

    def _take(self, wanted: Field, name: str, layout: Layout, files: list[StoredFile], found: Found) -> bool:
        """Add the variable of this name in files of one layout, if it is what is wanted."""
        variable = layout.variables.get(name)
        if variable is None or variable.values is not None:
            return False
        level = self._level(wanted, layout, variable)
        if level is None:
            return False
        if variable.attributes.get(EMPTY):
            raise InputError(nothing_stored(files[0], variable))
        if wanted.name == "rain":
            self._check_period(variable, files)
        found.slots[layout] = self._slot(wanted, layout, axes_of(files[0]), variable, level, files[0].origin, found)
        found.names.setdefault(_spoken(variable, wanted))
        return True

    def _level(self, wanted: Field, layout: Layout, variable: StoredVariable) -> "_Level | None":
        """Where a variable has what is wanted on the vertical, or None where it has not."""
        hybrid, pressure = hybrid_axis(layout, variable), pressure_axis(layout, variable)
        if wanted.where == MODEL_LEVELS:
            return None if hybrid is None else _Level(hybrid.dim, tuple(range(hybrid.a.size)), hybrid=hybrid)
        if wanted.where == LOWEST_LEVEL:
            if hybrid is None:
                return None
            # The one with the highest pressure under a standard surface pressure.
            return _Level(hybrid.dim, int(np.argmax(hybrid.a * hybrid.reference + hybrid.b * 1e5)))
        if pressure is None:
            return _Level() if wanted.where is None and hybrid is None else None
        assert pressure.values is not None
        levels = np.atleast_1d(pressure.values).astype(np.float64)
        units = pressure.attributes.get("units") or self.table.levels.get(pressure.name)
        scale, _ = unit_conversion(units, "Pa", pressure.name, self._origin(layout))
        pascals = np.round(levels * scale, 3)
        dim = pressure.dims[0] if pressure.dims else None
        if wanted.where == PRESSURE_LEVELS:
            positions = tuple(range(levels.size)) if dim is not None and levels.size > 1 else None
            return _Level(dim, positions if positions is not None else 0, tuple(pascals))
        level = wanted.where if isinstance(wanted.where, int) else None
        if level is None and wanted.name in CHANNELS:
            level = CHANNELS[wanted.name].level_hpa
        if level is None:
            return _Level(dim, 0) if levels.size == 1 else _Level()
        index = np.flatnonzero(np.isclose(pascals, level * 100.0, rtol=0.0, atol=1.0))
        return _Level(dim, int(index[0])) if index.size else None

    def _slot(
        self,
        wanted: Field,
        layout: Layout,
        axes: Axes,
        variable: StoredVariable,
        level: "_Level",
        origin: str,
        found: Found,
    ) -> Slot:
        key: list[str | int] = []
        versions: tuple[int, int | None] | None = None
        for axis in (axes.lat, axes.lon):
            if axis not in variable.dims:
                raise InputError(
                    f"{origin}: variable {variable.name} has the dimensions {variable.dims}; expected a regular "
                    "latitude-longitude grid."
                )
        for dim, size in variable.sizes.items():
            if dim == axes.time:
                key.append("time")
            elif dim == axes.lat:
                key.append("lat")
            elif dim == axes.lon:
                key.append("lon")
            elif dim == level.dim:
                key.append(level.position if isinstance(level.position, int) else "level")
            elif dim == "expver":
                key.append("expver")
                versions = _versions(layout, size, origin)
            elif size == 1:
                key.append(0)
            else:
                raise InputError(
                    f"{origin}: variable {variable.name} has {size} values along {dim!r}; expected time, lat and lon "
                    f"alone. Choose one first, for example with 'ncks -d {dim},0 in.nc out.nc'."
                )
        if axes.time is not None and "time" not in key and layout.sizes.get(axes.time, 1) > 1:
            raise InputError(
                f"{origin}: variable {variable.name} has no time axis, while the file has several time steps."
            )
        scale, offset = self._conversion(wanted, layout, variable, origin, found)
        if level.pressures:
            found.pressures[layout] = level.pressures
        if level.hybrid is not None:
            here = (level.hybrid.a, level.hybrid.b, level.hybrid.reference)
            if found.hybrid is not None and not _all_close(here, found.hybrid):
                raise InputError(
                    f"{origin}: the hybrid levels of {variable.name} differ between files; give files with the same "
                    "levels."
                )
            found.hybrid = here
        chunk = variable.chunks[key.index("time")] if variable.chunks and "time" in key else 1
        unsigned = str(variable.attributes.get("_Unsigned", "")).lower() == "true" and variable.dtype.kind == "i"
        return Slot(
            variable=variable.name,
            key=tuple(key),
            levels=level.position if isinstance(level.position, tuple) else None,
            versions=versions,
            rows=axes.rows,
            columns=axes.columns,
            fills=fills_of(variable),
            scale=scale,
            offset=offset,
            time_chunk=chunk,
            part_of=variable.part_of,
            unsigned=unsigned,
        )

    def _conversion(
        self, wanted: Field, layout: Layout, variable: StoredVariable, origin: str, found: Found
    ) -> tuple[float, float]:
        """Scale and offset to the wanted units; a note where the attribute alone does not say them."""
        if wanted.name == LABELS:
            _check_labels(variable, origin)
            return 1.0, 0.0
        units = variable.attributes.get("units")
        if self.table.unitless and not any(str(v.attributes.get("units") or "").strip() for v in layout.fields()):
            found.notes.setdefault(
                f"units: the file gives none for any variable; {wanted.units} taken as documented for "
                f"{self.table.title}"
            )
            return 1.0, 0.0
        meant = self.table.misprints.get(variable.name, {}).get(str(units))
        if meant is not None:
            found.notes.setdefault(f"units: {units!r} of {variable.name} is a known misprint of {meant!r}")
            units = meant
        if wanted.name in EQUIVALENTS and is_convertible(units, EQUIVALENTS[wanted.name][0]):
            other, factor, words = EQUIVALENTS[wanted.name]
            scale, offset = unit_conversion(units, other, variable.name, origin)
            if wanted.name != "z":
                found.notes.setdefault(f"derived: {variable.name} {words}")
            return scale * factor, offset * factor
        return unit_conversion(units, wanted.units, variable.name, origin)

    def _check_one_member(self, found: Found) -> None:
        """Refuse a field of several members of an ensemble, each in messages or files of its own."""
        numbers = {layout: layout.variables["number"].values for layout in found.slots if "number" in layout.variables}
        members = {n.item(): self._origin(layout) for layout, n in numbers.items() if n is not None and n.size == 1}
        if len(members) > 1:
            listed = ", ".join(map(str, sorted(members)))
            raise InputError(
                f"{members[max(members)]}: {' and '.join(found.names)} is there of the ensemble members {listed}; give "
                f"one of them, for example by 'grib_copy -w number={min(members)} in.grib out.grib'."
            )

    def _check_period(self, variable: StoredVariable, files: list[StoredFile]) -> None:
        """Refuse an accumulation over a period that nothing says."""
        for file in files:
            if self.seconds(file, variable) is None:
                raise _PeriodUnknownError(
                    f"{file.origin}: {variable.name} is accumulated over a period that the file does not say; give it "
                    "with source.accumulation_hours (1 for hourly ERA5, 3 for its ensemble)."
                )

    def seconds(self, file: StoredFile, variable: StoredVariable) -> NDArray[np.float64] | None:
        """The period of accumulation (time,) in s: as the file says, its documentation, or the user; else None."""
        seconds = accumulation_seconds(file, variable)
        hours = self.table.accumulated.get(variable.name, self.accumulation_hours)
        if seconds is not None or hours is None:
            return seconds
        return np.full(1 if file.time is None else file.time.values.size, hours * 3600.0)

    def _origin(self, layout: Layout) -> str:
        return self._files_of[layout][0].origin


@dataclass(frozen=True)
class _Level:
    """The dimension of levels, if any, and the position or positions taken of it."""

    dim: str | None = None
    position: int | tuple[int, ...] = 0
    pressures: tuple[float, ...] = ()
    hybrid: Any = None


def _all_close(here: tuple[Any, ...], there: tuple[Any, ...]) -> bool:
    return all(np.shape(a) == np.shape(b) and np.allclose(a, b) for a, b in zip(here, there, strict=True))


def _check_column(wanted: Field, found: Found) -> None:
    """Refuse a column whose levels differ from file to file."""
    if wanted.where != PRESSURE_LEVELS:
        return
    columns = {p for p in found.pressures.values() if len(p) > 1}
    singles = {p for p in found.pressures.values() if len(p) == 1}
    if len(columns) > 1 or (columns and singles):
        raise InputError(
            f"the pressure levels of {' or '.join(found.names)} differ between files; give files with the same levels."
        )


def _versions(layout: Layout, size: int, origin: str) -> tuple[int, int | None]:
    """Positions of ERA5's final values (expver 1) and preliminary ones (5) along expver; never their sum."""
    axis = layout.variables.get("expver")
    given = [] if axis is None or axis.values is None else np.ravel(axis.values).tolist()
    names = [(v.decode() if isinstance(v, bytes) else str(v)).strip().lstrip("0") for v in given]
    if set(names) - {"1", "5"} or len(set(names)) != len(names) or len(names) != size:
        raise InputError(
            f"{origin}: expver holds {', '.join(names) or 'no values'}; expected 1 (final) and 5 (preliminary)."
        )
    if "1" not in names:
        return names.index("5"), None
    return names.index("1"), names.index("5") if "5" in names else None


def _check_labels(variable: StoredVariable, origin: str) -> None:
    if variable.dtype.kind not in "biuf":
        raise InputError(f"{origin}: LABELS is of type {variable.dtype}; expected class numbers 0 to 2.")


def _spoken(variable: StoredVariable, wanted: Field) -> str:
    """A field's name in words, such as ``u at 850 hPa``."""
    if isinstance(wanted.where, int):
        return f"{variable.name} at {wanted.where} hPa"
    return variable.name if wanted.where is None else f"{variable.name} on {wanted.where}"


def nothing_stored(file: StoredFile, variable: StoredVariable) -> str:
    """The sentence for a variable of which a Zarr store holds no chunk."""
    index, _ = times_of(file, None)
    return (
        f"{file.origin}: variable {variable.name} has no value at all from {index[0]} to {index[-1]}: the store holds "
        "none of its chunks, and every value would read as missing. The copy is incomplete; get it again."
    )


def describe_variables(files: Sequence[StoredFile]) -> str:
    """The fields of the files with their pressure levels, such as ``msl, u at 850, 500 hPa``, for a message."""
    levels: dict[str, dict[str, None]] = defaultdict(dict)
    units: dict[str, str] = {}
    for layout in dict.fromkeys(file.layout for file in files):
        for variable in layout.fields():
            axis = pressure_axis(layout, variable)
            levels[variable.name] |= {}
            if axis is not None and axis.values is not None:
                units[variable.name] = str(axis.attributes.get("units", ""))
                levels[variable.name] |= dict.fromkeys(f"{level:g}" for level in np.atleast_1d(axis.values))
    words = [f"{name}{_at(list(at), units.get(name, ''))}" for name, at in sorted(levels.items())]
    shown = words if len(words) <= 40 else [*words[:40], f"and {len(words) - 40} more"]
    return ", ".join(shown) or "no variable"


def _at(levels: list[str], units: str) -> str:
    if len(levels) > 8:
        return f" at {len(levels)} levels from {levels[0]} to {levels[-1]} {units}"
    return f" at {', '.join(levels)} {units}" if levels else ""


def names_in(files: Sequence[StoredFile]) -> Mapping[str, None]:
    """The names of all fields of the files, in their order."""
    layouts = dict.fromkeys(file.layout for file in files)
    return dict.fromkeys(v.name for layout in layouts for v in layout.fields())
