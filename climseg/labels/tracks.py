"""Candidates linked through time into tracks, in one pass over the steps.

What is in memory is what lives at one time: the open tracks, and the steps whose points are not decided yet. A rule has
lower limits only, so that a track which has met them is accepted while the storm still lives.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from climseg.errors import InputError, near_matches
from climseg.grid import EARTH_RADIUS, great_circle_distance
from climseg.labels.options import check_options
from climseg.labels.step import Candidate

# Times are compared with this tolerance, a share of a step: they may come from fractions of days.
_ROUNDING: Final = 0.01


@dataclass(frozen=True)
class TrackRule:
    """What makes candidates of successive steps a track, and a track a storm.

    A candidate is a point of a track if it fulfils every criterion but those of ``lasting``. The nearest point within
    reach continues a track; where two tracks want one point, the nearer one has it (TempestExtremes: the older one). No
    track crosses the equator.

    Attributes:
        max_degrees: Degrees of arc from one point to the next, however long the time between them.
        max_km_per_day: km per day from one point to the next.
        max_gap_hours: The longest time between two successive points of a track; points of neighbouring steps may
            always follow each other.
        min_hours: From the first to the last point of a track.
        lasting: By a name, criteria and the hours in all in which points of the track fulfil them together:
            ``{"criteria": [...], "hours": 48}``; None for none. A point counts as the time since the step before, or
            as the usual time between two steps where that is less.

    Raises:
        InputError: Neither reach is given, a number is impossible, or ``lasting`` is not as said.
    """

    max_degrees: float | None = None
    max_km_per_day: float | None = None
    max_gap_hours: float = 0.0
    min_hours: float = 0.0
    lasting: Mapping[str, Mapping[str, Any]] | None = None

    def __post_init__(self) -> None:
        if self.max_degrees is None and self.max_km_per_day is None:
            raise InputError("labels.cyclones.tracks: give max_degrees or max_km_per_day, or no tracks at all (null).")
        reaches = {"max_degrees": self.max_degrees, "max_km_per_day": self.max_km_per_day}
        for name, reach in reaches.items():
            if isinstance(reach, str):
                raise InputError(f"labels.cyclones.tracks.{name}={reach}: expected a number or null.")
        limits = {"max_gap_hours": self.max_gap_hours, "min_hours": self.min_hours}
        check_options("labels.cyclones.tracks", reaches | limits)
        for name, asked in self.conditions.items():
            key = f"labels.cyclones.tracks.lasting.{name}"
            if not isinstance(asked, Mapping) or set(asked) != {"criteria", "hours"}:
                raise InputError(f"{key}: expected criteria and hours, got {asked}.")
            if not isinstance(asked["criteria"], Sequence) or isinstance(asked["criteria"], str):
                raise InputError(f"{key}.criteria={asked['criteria']}: expected a list, such as [wind].")
            check_options(key, {"hours": asked["hours"]})

    @property
    def conditions(self) -> Mapping[str, Mapping[str, Any]]:
        """``lasting``, empty where nothing is asked for."""
        return self.lasting or {}

    @property
    def lasting_criteria(self) -> frozenset[str]:
        """Criteria that a point of a track may fail."""
        return frozenset(str(c) for asked in self.conditions.values() for c in asked["criteria"])

    def check_criteria(self, known: Sequence[str]) -> None:
        """Refuse names of criteria that the candidates do not have.

        Raises:
            InputError: One is unknown; the near match is named.
        """
        for criterion in sorted(self.lasting_criteria - set(known)):
            raise InputError(
                f"labels.cyclones.tracks.lasting: {criterion!r} is no criterion of the candidates"
                f"{near_matches(criterion, known) or '.'} Known: {', '.join(known)}."
            )

    def is_point(self, candidate: Candidate) -> bool:
        """Whether a candidate can be a point of a track."""
        return set(candidate.rejected_by) <= self.lasting_criteria

    def least_hours(self, step_hours: float) -> float:
        """The time from first to last step in which a track can be accepted at all."""
        counted = max((float(asked["hours"]) for asked in self.conditions.values()), default=0.0)
        return max(self.min_hours, counted - step_hours)

    def words(self) -> str:
        """The rule in words, for the output's definition."""
        reach = [f"max_degrees {self.max_degrees:g}"] if self.max_degrees is not None else []
        reach += [f"max_km_per_day {self.max_km_per_day:g}"] if self.max_km_per_day is not None else []
        limits = [f"max_gap_hours {self.max_gap_hours:g}", f"min_hours {self.min_hours:g}"]
        lasting = [f"{' and '.join(a['criteria'])} in {a['hours']:g} hours" for a in self.conditions.values()]
        return ", ".join(reach + limits + lasting)


@dataclass(frozen=True)
class Point:
    """A candidate after its track was decided.

    Attributes:
        candidate: It.
        track: The number of its track from 1, or None if it is part of none that counts, or no tracks are asked for.
        reason: Why it does not count: the criteria that fail, or what the track lacks; empty where it counts.
    """

    candidate: Candidate
    track: int | None
    reason: str

    @property
    def counts(self) -> bool:
        """Whether it is a point of a storm."""
        return self.reason == ""


@dataclass
class _Track:
    """A chain of points, open or decided."""

    lat: float
    lon: float
    first_hour: float
    last_hour: float
    hours: dict[str, float]
    accepted: bool = False
    ended: bool = False
    number: int | None = None


class TrackLinker:
    """Links the candidates of step after step.

    Args:
        rule: The rule.
        step_hours: The usual time between two steps.

    Example:
        >>> linker = TrackLinker(rule, 6.0)
        >>> for hour, candidates in steps:
        ...     for points in linker.add(hour, candidates):
        ...         ...
        >>> for points in linker.finish():
        ...     ...
    """

    def __init__(self, rule: TrackRule, step_hours: float) -> None:
        self._rule = rule
        self._step_hours = step_hours
        self._gap = max(rule.max_gap_hours, step_hours) + _ROUNDING * step_hours
        self._open: list[_Track] = []
        # Steps in order whose points are not all decided: each candidate with the track that it is a point of.
        self._waiting: deque[list[tuple[Candidate, _Track | None]]] = deque()
        self._numbered = 0
        self._last_hour = -np.inf

    def add(self, hour: float, candidates: Sequence[Candidate]) -> Iterator[list[Point]]:
        """Take the candidates of the next step.

        Args:
            hour: Of the step, from any origin, later than the last one.
            candidates: All of them, also those that some criterion rejects.

        Yields:
            Earlier steps, and this one, whose points are all decided now, in the order of time.
        """
        self._end_tracks(hour)
        points = [c for c in candidates if self._rule.is_point(c)]
        track_of: dict[int, _Track] = self._continue_tracks(hour, points)
        for position, point in enumerate(points):
            if position not in track_of:
                track_of[position] = self._begin_track(hour, point)
        counts = min(self._step_hours, hour - self._last_hour)
        for position, track in track_of.items():
            self._count(track, points[position], counts)
        self._last_hour = hour
        whose = {id(point): track_of[position] for position, point in enumerate(points)}
        self._waiting.append([(c, whose.get(id(c))) for c in candidates])
        yield from self._decided()

    def finish(self) -> Iterator[list[Point]]:
        """Yield the steps that are left; no track goes on any more."""
        self._end_tracks(np.inf)
        yield from self._decided()

    def _end_tracks(self, hour: float) -> None:
        for track in self._open:
            track.ended = hour - track.last_hour > self._gap
        self._open = [track for track in self._open if not track.ended]

    def _continue_tracks(self, hour: float, points: Sequence[Candidate]) -> dict[int, _Track]:
        """Give points to open tracks, the nearest pair first; by the positions of the points."""
        if not points or not self._open:
            return {}
        here = np.array([(p.lat, p.lon) for p in points])
        there = np.array([(t.lat, t.lon) for t in self._open])
        distance = great_circle_distance(there[:, :1], there[:, 1:], here[None, :, 0], here[None, :, 1])
        reach = np.array([self._reach(hour - track.last_hour) for track in self._open])
        near = (distance <= reach[:, None]) & (there[:, :1] * here[None, :, 0] >= 0.0)
        pairs = np.argwhere(near)
        given: dict[int, _Track] = {}
        for which, position in pairs[np.argsort(distance[near], kind="stable")].tolist():
            track = self._open[which]
            if position not in given and track.last_hour < hour:
                given[position] = track
                track.lat, track.lon, track.last_hour = points[position].lat, points[position].lon, hour
        return given

    def _reach(self, hours: float) -> float:
        """How far in m the next point of a track may lie after so many hours."""
        by_arc = np.inf if self._rule.max_degrees is None else np.radians(self._rule.max_degrees) * EARTH_RADIUS
        speed = np.inf if self._rule.max_km_per_day is None else self._rule.max_km_per_day * 1e3 / 24.0
        return float(min(by_arc, speed * hours))

    def _begin_track(self, hour: float, point: Candidate) -> _Track:
        track = _Track(point.lat, point.lon, hour, hour, dict.fromkeys(self._rule.conditions, 0.0))
        self._open.append(track)
        return track

    def _count(self, track: _Track, point: Candidate, hours: float) -> None:
        for name, asked in self._rule.conditions.items():
            if not set(asked["criteria"]) & set(point.rejected_by):
                track.hours[name] += hours
        track.accepted = self._lack(track) == ""

    def _lack(self, track: _Track) -> str:
        """What keeps a track from being accepted."""
        rounding = _ROUNDING * self._step_hours
        lived = track.last_hour - track.first_hour
        if lived < self._rule.min_hours - rounding:
            return f"track of {lived:g} h, at least {self._rule.min_hours:g} h are asked for"
        for name, asked in self._rule.conditions.items():
            if track.hours[name] < asked["hours"] - rounding:
                return (
                    f"{' and '.join(asked['criteria'])} in {track.hours[name]:g} h of its track, at least "
                    f"{asked['hours']:g} h are asked for"
                )
        return ""

    def _decided(self) -> Iterator[list[Point]]:
        while self._waiting and all(t is None or t.accepted or t.ended for _, t in self._waiting[0]):
            yield [self._point(candidate, track) for candidate, track in self._waiting.popleft()]

    def _point(self, candidate: Candidate, track: _Track | None) -> Point:
        if track is None:
            return Point(candidate, None, " and ".join(candidate.rejected_by))
        if not track.accepted:
            return Point(candidate, None, self._lack(track))
        if track.number is None:
            self._numbered += 1
            track.number = self._numbered
        return Point(candidate, track.number, "")


def without_tracks(candidates: Sequence[Candidate]) -> list[Point]:
    """The points of a step where no track is asked for: candidates that fulfil every criterion, without a number."""
    return [Point(c, None, " and ".join(c.rejected_by)) for c in candidates]
