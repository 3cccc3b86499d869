"""One field through all times of all files, as a lazy array.

A series knows for each time the file and the step in it; asked for some times, it opens the files that hold them,
reads, decodes, converts, orders rows and columns canonically, and closes. It is small, pickles, and holds nothing open,
so any dask scheduler and any number of processes can read it. A dask graph of it does not grow with the number of
files.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from climseg.channels import CLASSES, LABELS, MISSING_LABEL
from climseg.errors import InputError
from climseg.sources.scan import read_stored
from climseg.sources.stored import Layout, StoredFile


@dataclass(frozen=True)
class Slot:
    """Where a field is in files of one layout, and how stored values become canonical ones.

    Attributes:
        variable: Name of the variable.
        key: For each stored dimension ``"time"``, ``"lat"``, ``"lon"``, ``"level"``, ``"expver"``, or the position that
            is taken of it.
        levels: Positions along the dimension of levels, or None for a field without levels.
        versions: Positions of final and preliminary values along expver; the second is None where there is none.
        rows: Stored row of each canonical row.
        columns: Stored column of each canonical column.
        fills: Stored values that mean missing, beside NaN.
        scale: Factor of the conversion to canonical units, after unpacking.
        offset: Offset of that conversion.
        time_chunk: Steps that are stored together.
        part_of: See :class:`climseg.sources.stored.StoredVariable`.
        unsigned: Whether signed integers stand for unsigned ones (attribute ``_Unsigned``).
    """

    variable: str
    key: tuple[str | int, ...]
    levels: tuple[int, ...] | None
    versions: tuple[int, int | None] | None
    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    fills: tuple[float, ...]
    scale: float
    offset: float
    time_chunk: int
    part_of: tuple[str, int] | None = None
    unsigned: bool = False


class Series:
    """An array (time, lat, lon) or (time, level, lat, lon) float32 that is read when it is indexed; int8 for LABELS.

    Attributes:
        shape: Its shape.
        dtype: float32 or int8.
        ndim: 3 or 4.
    """

    def __init__(
        self,
        name: str,
        files: Sequence[StoredFile],
        slots: Mapping[Layout, Slot],
        file_of: NDArray[np.int32],
        step_of: NDArray[np.int32],
        times: Any,
    ) -> None:
        """Make a series.

        Args:
            name: Of the channel or ingredient, for messages.
            files: All files of the input.
            slots: Where the field is, by layout.
            file_of: (time,) the position in ``files`` of each time.
            step_of: (time,) the step in that file.
            times: (time,) the times, for messages.
        """
        self.name = name
        self.files = files
        self.slots = slots
        self.file_of = file_of
        self.step_of = step_of
        self.times = times
        slot = next(iter(slots.values()))
        levels = () if slot.levels is None else (len(slot.levels),)
        self.shape = (file_of.size, *levels, slot.rows.size, slot.columns.size)
        self.ndim = len(self.shape)
        self.dtype: np.dtype[Any] = np.dtype(np.int8 if name == LABELS else np.float32)

    def __getitem__(self, key: Any) -> NDArray[Any]:
        """Values of some times (a slice, an integer or an array of them); other axes as numpy would."""
        time, *rest = key if isinstance(key, tuple) else (key,)
        indices = np.atleast_1d(np.arange(self.shape[0])[time])
        values = np.empty((indices.size, *self.shape[1:]), self.dtype)
        for start, stop in _runs(self.file_of[indices], self.step_of[indices]):
            values[start:stop] = self._read(indices[start:stop])
        if np.ndim(np.arange(self.shape[0])[time]) == 0:
            return np.asarray(values[(0, *rest)])
        return np.asarray(values[(slice(None), *rest)])

    def _read(self, indices: NDArray[np.intp]) -> NDArray[Any]:
        """Values at times that follow each other in one file."""
        file = self.files[self.file_of[indices[0]]]
        slot = self.slots[file.layout]
        first = int(self.step_of[indices[0]])
        steps = slice(first, first + indices.size)
        if self.name == LABELS:
            return _class_numbers(_stored(file, slot, steps, None), slot, file)
        if slot.versions is None:
            values = _decoded(file, slot, steps, None)
        else:
            final, preliminary = slot.versions
            values = _decoded(file, slot, steps, final)
            if preliminary is not None and np.isnan(values).any():
                values = np.where(np.isnan(values), _decoded(file, slot, steps, preliminary), values)
        for index, step in zip(indices, values, strict=True):
            if np.isnan(step.flat[0]) and np.isnan(step).all():
                raise InputError(
                    f"{file.origin}: variable {slot.variable} has no value at all at {self.times[index]}: all "
                    f"{step.size} are missing. The file or store is incomplete; get it again, or leave out that time."
                )
        return values


def _runs(files: NDArray[np.int32], steps: NDArray[np.int32]) -> Iterator[tuple[int, int]]:
    """Where times follow each other in one file: start and stop of each run."""
    if files.size == 0:
        return
    breaks = np.flatnonzero((np.diff(files) != 0) | (np.diff(steps) != 1)) + 1
    yield from zip([0, *breaks.tolist()], [*breaks.tolist(), files.size], strict=True)


def _stored(file: StoredFile, slot: Slot, steps: slice, version: int | None) -> NDArray[Any]:
    """Stored values on (time, [level,] row, column), rows and columns canonical."""
    parts: dict[str, Any] = {"time": steps, "lat": slice(None), "lon": slice(None), "expver": version}
    if slot.levels is not None:
        # Read from the first level to the last: the library is slow for scattered ones.
        parts["level"] = slice(min(slot.levels), max(slot.levels) + 1)
    key = tuple(parts[k] if isinstance(k, str) else k for k in slot.key)
    name = slot.variable
    if slot.part_of is not None:
        name, key = slot.part_of[0], (*key, slot.part_of[1])
    values = read_stored(file, name, key)
    left = [k for k in slot.key if isinstance(k, str) and k != "expver"]
    if "time" not in left:
        values, left = values[np.newaxis], ["time", *left]
    wanted = ["time", "lat", "lon"] if slot.levels is None else ["time", "level", "lat", "lon"]
    values = values.transpose([left.index(k) for k in wanted])
    if slot.levels is not None:
        values = values[:, np.asarray(slot.levels) - min(slot.levels)]
    return _take(_take(values, slot.rows, -2), slot.columns, -1)


def _take(values: NDArray[Any], order: NDArray[np.intp], axis: int) -> NDArray[Any]:
    """``np.take``, without copying where nothing moves, or all is reversed."""
    size = values.shape[axis]
    if order.size == size and np.array_equal(order, np.arange(size)):
        return values
    if order.size == size and np.array_equal(order, np.arange(size)[::-1]):
        return np.flip(values, axis)
    return np.take(values, order, axis=axis)


def _decoded(file: StoredFile, slot: Slot, steps: slice, version: int | None) -> NDArray[np.float32]:
    """Values in canonical units, float32, NaN where they are missing."""
    stored = _stored(file, slot, steps, version)
    missing = _is_missing(stored, slot)
    if slot.unsigned:
        stored = stored.astype(f"u{stored.dtype.itemsize}")
    scale, offset = file.packing.get(slot.variable, (1.0, 0.0))
    # Two steps in float64, as unpacking and converting one after the other would give.
    scale, offset = scale * slot.scale, offset * slot.scale + slot.offset
    if (scale, offset) == (1.0, 0.0):
        values = stored.astype(np.float32, copy=False)
    else:
        values = (stored.astype(np.float64) * scale + offset).astype(np.float32)
    return values if missing is None else np.where(missing, np.float32(np.nan), values)


def _is_missing(stored: NDArray[Any], slot: Slot) -> NDArray[np.bool_] | None:
    """Where stored values mean missing; NaN, which stays NaN, does not count. None where there are none."""
    missing: NDArray[np.bool_] | None = None
    for fill in slot.fills:
        here = stored == np.asarray(fill).astype(stored.dtype)
        if here.any():
            missing = here if missing is None else missing | here
    return missing


def _class_numbers(stored: NDArray[Any], slot: Slot, file: StoredFile) -> NDArray[np.int8]:
    """LABELS as int8; a value that is no class is refused."""
    missing = np.isnan(stored) if stored.dtype.kind == "f" else np.zeros(stored.shape, bool)
    filled = _is_missing(stored, slot)
    numbers = np.where(missing if filled is None else missing | filled, MISSING_LABEL, stored)
    known = np.isin(numbers, [MISSING_LABEL, *range(len(CLASSES))])
    if not known.all():
        raise InputError(
            f"{file.origin}: LABELS holds the value {numbers[~known][0]:g}; expected 0 to {len(CLASSES) - 1} "
            f"({', '.join(CLASSES)}) or {MISSING_LABEL} (missing)."
        )
    return numbers.astype(np.int8)
