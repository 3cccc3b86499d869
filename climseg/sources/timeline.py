"""One time axis of many files: the times of each field put in order, and equal for all fields."""

import re
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from climseg.errors import InputError
from climseg.sources.axes import axes_of, times_of
from climseg.sources.stored import Layout, StoredFile

# Degrees: two files store the same grid as float32 and float64.
_SAME_COORDINATE: Final = 1e-4

# data-YYYY-MM-DD-HH-R-N.nc: date, run of the model, number of the expert.
_CLIMATENET_NAME: Final = re.compile(r"data-\d{4}-\d{2}-\d{2}-\d{2}-\d+[-_]\d+\.nc")

# A pandas index of datetime64 or xarray's of cftime objects.
Times = Any
Position = tuple[NDArray[np.int32], NDArray[np.int32]]


class Timeline:
    """The times of the input's files, decoded once."""

    def __init__(self, files: Sequence[StoredFile], time: str | None, period: Sequence[str] | None) -> None:
        """Take the times of these files.

        Args:
            files: All files of the input.
            time: The time of a single file that has none.
            period: First and last time to take, or None.
        """
        self.files = files
        self.time = time
        self.period = period
        self._times: dict[int, tuple[Times, dict[str, Any]]] = {}

    def of(self, number: int) -> tuple[Times, dict[str, Any]]:
        """Times and encoding of the file at a position."""
        if number not in self._times:
            self._times[number] = times_of(self.files[number], self.time)
        return self._times[number]

    def numbers(self, layouts: Collection[Layout]) -> tuple[int, ...]:
        """Positions of the files of some layouts."""
        return tuple(i for i, file in enumerate(self.files) if file.layout in layouts)

    def join(self, numbers: Sequence[int], name: str) -> tuple[Times, NDArray[np.int32], NDArray[np.int32]]:
        """The times of some files in order, and for each its file and the step in it.

        Raises:
            InputError: A time is there twice.
        """
        indices = [self.of(n)[0] for n in numbers]
        times = indices[0].append(indices[1:]) if len(indices) > 1 else indices[0]
        if isinstance(indices[0], xr.CFTimeIndex):
            # append gives a plain index, which knows no partial dates
            times = xr.CFTimeIndex(times)  # type: ignore[no-untyped-call]
        file_of = np.repeat(np.array(numbers, np.int32), [i.size for i in indices])
        step_of = np.concatenate([np.arange(i.size, dtype=np.int32) for i in indices])
        if not times.is_monotonic_increasing:
            order = times.argsort(kind="stable") if hasattr(times, "asi8") else np.argsort(times.values, kind="stable")
            times, file_of, step_of = times[order], file_of[order], step_of[order]
        if times.has_duplicates:
            second = int(np.flatnonzero(times.duplicated())[0])
            self._refuse_duplicate(times[second], name, int(file_of[second - 1]), int(file_of[second]))
        return times, file_of, step_of

    def selection(self, times: Times) -> slice:
        """The part of a time axis that lies in the period wanted.

        Raises:
            InputError: The period is no pair of times, or no time lies in it.
        """
        if self.period is None:
            return slice(0, times.size)
        if isinstance(self.period, str) or len(self.period) != 2:
            raise InputError(
                f"source.period={self.period!r}: expected a first and a last time, such as [2011-10-01,2011-10-31]."
            )
        first, last = (str(text) for text in self.period)
        try:
            found: slice = times.slice_indexer(first, last)
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"source.period=[{first},{last}]: expected times such as 2011-10-01 or 2011-10-01T06, of the input's "
                f"calendar {_calendar(times)}."
            ) from error
        if len(range(*found.indices(times.size))) == 0:
            raise InputError(
                f"source.period=[{first},{last}]: no time of the input lies in it; the input goes from {times[0]} to "
                f"{times[-1]}."
            )
        return found

    def _refuse_duplicate(self, time: object, name: str, first: int, second: int) -> None:
        here, there = (self.files[n].origin for n in (first, second))
        if here == there:
            raise InputError(f"{here}: variable {name} has the time {time} twice; leave one of the two out.")
        here, there = sorted((here, there))
        if all(_CLIMATENET_NAME.fullmatch(Path(path).name) for path in (here, there)):
            raise InputError(
                f"{Path(here).name} and {Path(there).name} hold the same time, labelled by two experts; choose one "
                "file per time, for example with the pattern '*-0.nc', or list the files."
            )
        raise InputError(
            f"The time {time} of variable {name} is in both {here} and {there}; leave one of the two files out."
        )


@dataclass
class JoinedTimes:
    """The time axis of all fields.

    Attributes:
        files: All files of the input, without their times.
        index: The times.
        coordinate: The same as a variable with the encoding of the first file.
        positions: For each field, the file and the step of each time.
        timeline: Where they come from.
        taken: The part of each field's times that is taken.
    """

    files: Sequence[StoredFile]
    index: Times
    coordinate: xr.DataArray
    positions: Mapping[Hashable, Position]
    timeline: Timeline
    taken: slice

    def position(self, wanted: Hashable) -> Position:
        """For each time the file and the step in it that hold a field."""
        return self.positions[wanted]

    def position_of_layouts(self, layouts: Collection[Layout], wanted: Hashable) -> Position:
        """The same for one level of a field whose levels lie in files of their own.

        Raises:
            InputError: The level has other times than the others.
        """
        times, file_of, step_of = self.timeline.join(self.timeline.numbers(layouts), str(wanted))
        if not times[self.taken].equals(self.index):
            raise InputError(
                f"{self.files[file_of[0]].origin}: the levels of one variable have unequal times; give files in which "
                "every level has all times."
            )
        return file_of[self.taken], step_of[self.taken]

    def chunks(self, wanted: Hashable, size: int) -> tuple[int, ...]:
        """Lengths of runs of at most ``size`` steps that begin where stored chunks of a field begin."""
        file_of, step_of = self.positions[wanted]
        new = np.ones(file_of.size, bool)
        new[1:] = (np.diff(file_of) != 0) | (np.diff(step_of) != 1) | (step_of[1:] % size == 0)
        starts = np.flatnonzero(new)
        return tuple(np.diff([*starts.tolist(), file_of.size]).tolist())


def join_times(
    timeline: Timeline,
    fields: Mapping[Any, Collection[Layout]],
    leading: Mapping[Any, Collection[Layout]],
    names: Mapping[Any, str],
) -> JoinedTimes:
    """Join the times of all files that hold some fields.

    Args:
        timeline: Of the input.
        fields: For each field the layouts that hold it.
        leading: Those of them that give it its times: of a column whose levels lie apart, the layouts of one level.
        names: What the files call each field.

    Raises:
        InputError: Grids, calendars or times of the files do not fit together, by name of the files.
    """
    numbers = {f: timeline.numbers(layouts) for f, layouts in leading.items()}
    used = sorted({n for layouts in fields.values() for n in timeline.numbers(layouts)})
    _check_same_grid([timeline.files[n] for n in used])
    _check_same_calendar(timeline, used)
    joined: dict[tuple[int, ...], Any] = {}
    for f, own in numbers.items():
        if own not in joined:
            joined[own] = timeline.join(own, names[f])
    _check_same_times({f: joined[own] for f, own in numbers.items()}, names, timeline)
    first = next(iter(numbers))
    times = joined[numbers[first]][0]
    taken = timeline.selection(times)
    _, encoding = timeline.of(numbers[first][0])
    coordinate = xr.DataArray(times[taken], dims="time", name="time")
    coordinate.encoding = encoding
    positions = {f: (joined[own][1][taken], joined[own][2][taken]) for f, own in numbers.items()}
    return JoinedTimes(_without_times(timeline.files), times[taken], coordinate, positions, timeline, taken)


def _without_times(files: Sequence[StoredFile]) -> list[StoredFile]:
    """The files as a reader needs them: they go to other processes, and there may be many."""
    return [replace(file, time=None, seconds=None) for file in files]


def _check_same_grid(files: Sequence[StoredFile]) -> None:
    first = files[0]
    here = axes_of(first).grid
    for file in {f.layout: f for f in reversed(files)}.values():
        there = axes_of(file).grid
        for axis in ("lat", "lon"):
            a, b = here[axis].values, there[axis].values
            if a.shape != b.shape or not np.allclose(a, b, rtol=0.0, atol=_SAME_COORDINATE):
                have = f"{first.origin} and {file.origin} have unequal grids"
                have = have if first.origin != file.origin else f"{first.origin} holds fields on unequal grids"
                raise InputError(
                    f"{have}: {axis} is {_range(a)} in the first and {_range(b)} in the second. Interpolate both to "
                    "one grid, or give them in separate runs."
                )


def _range(values: NDArray[np.float64]) -> str:
    return f"{values[0]:g} to {values[-1]:g} in {values.size} points"


def _check_same_calendar(timeline: Timeline, numbers: Sequence[int]) -> None:
    first = _calendar(timeline.of(numbers[0])[0])
    for number in numbers[1:]:
        other = _calendar(timeline.of(number)[0])
        if other != first:
            raise InputError(
                f"{timeline.files[numbers[0]].origin} has the calendar {first} and {timeline.files[number].origin} has "
                f"{other}; one axis cannot hold both. Give them in separate runs, or convert one (for example with cdo "
                "setcalendar)."
            )


def _calendar(index: Times) -> str:
    if not isinstance(index, xr.CFTimeIndex):
        return "standard"
    beyond = index.calendar in ("standard", "gregorian", "proleptic_gregorian")  # xarray takes cftime there
    return f"{index.calendar} in years before 1582 or after 2262" if beyond else str(index.calendar)


def _check_same_times(joined: Mapping[Any, Any], names: Mapping[Any, str], timeline: Timeline) -> None:
    """Refuse fields that drift apart in time, naming the first time that one has and another lacks."""
    first, (here, _, _) = next(iter(joined.items()))
    for f, (there, _, _) in joined.items():
        if here is there or here.equals(there):
            continue
        time = here.symmetric_difference(there).min()
        has, lacks = (first, f) if time in here else (f, first)
        times, file_of, _ = joined[has]
        path = timeline.files[int(file_of[times.get_loc(time)])].origin
        raise InputError(
            f"Variable {names[lacks]} has no value at {time}, where {path} has {names[has]}; give files in which all "
            "variables have the same times, or leave one of the two variables out with source.channels."
        )
