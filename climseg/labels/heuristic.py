"""A heuristic put together: a definition of rivers, one of cyclones, and how the two combine.

``conf/labels/`` names the parts. A definition is a function of one time step (``labels/step.py``) with its thresholds
as keyword options; it says by ``@needs`` which channels it takes.
"""

import functools
import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import xarray as xr

from climseg.canonical import DIMS, LABEL_ATTRIBUTES, check_canonical, check_range, iso_times
from climseg.channels import LABELS
from climseg.errors import InputError
from climseg.grid import Floats, rim, spacing
from climseg.labels.combine import combine, without_rivers_near
from climseg.labels.needs import Needs, Settled, criteria_of, needs_of, together
from climseg.labels.options import check_definition, check_options
from climseg.labels.regions import Mask
from climseg.labels.step import Candidate, Rivers, Step, StormRegion
from climseg.labels.tracks import Point, TrackLinker, TrackRule, without_tracks

# Grids coarser than this are warned of, unless the thresholds are made for them.
COARSE_DEGREES: Final = 1.0
# Hours. Storms move further in a longer time than they lie apart.
LONGEST_STEP: Final = 24.0
# Hours, what a single time step is taken for.
_COMMON_STEP: Final = 6.0

RiverDefinition = Callable[[Step], Rivers]
CandidateDefinition = Callable[[Step], list[Candidate]]
RegionDefinition = Callable[[Step, Candidate], StormRegion]


@dataclass(frozen=True)
class Cyclones:
    """How tropical cyclones are found, followed and marked.

    Attributes:
        candidates: Finds candidates in a time step.
        region: The cells that are marked round one.
        tracks: Which candidates count by their tracks; None takes every step by itself, and a candidate counts where it
            fulfils all criteria at once.

    Raises:
        InputError: An option of a definition is impossible, or a definition is missing.
    """

    candidates: CandidateDefinition
    region: RegionDefinition
    tracks: TrackRule | None = None

    def __post_init__(self) -> None:
        check_definition("labels.cyclones.candidates", self.candidates)
        check_definition("labels.cyclones.region", self.region)
        if self.tracks is not None:
            self.tracks.check_criteria(criteria_of(self.candidates))

    def may_count(self, candidate: Candidate) -> bool:
        """Whether the candidate can become a point of a storm, once the other steps are known."""
        return self.tracks.is_point(candidate) if self.tracks else not candidate.rejected_by


@dataclass(frozen=True)
class Storm:
    """A candidate of one time step, and what is marked if it counts.

    Attributes:
        candidate: It.
        cells: (n,) int64 flat indices of the grid; none where the candidate cannot count.
        radius: Degrees of arc, the size by the definition of the region; NaN where none could be told.
        told: False where the cells may be of the storm or not, as it reaches beyond an open grid.
    """

    candidate: Candidate
    cells: np.ndarray[Any, np.dtype[np.int64]]
    radius: float
    told: bool = True


@dataclass(frozen=True)
class Findings:
    """What one time step holds, before its neighbours in time are asked.

    Attributes:
        rivers: (lat, lon) of the rivers.
        untold: (lat, lon) where rivers cannot be told.
        missing: (lat, lon) where any field is missing: no class can be told.
        regions: One row for each region that the definition of rivers looked at.
        storms: The candidates.
    """

    rivers: Mask
    untold: Mask
    missing: Mask
    regions: list[dict[str, Any]]
    storms: list[Storm]


@dataclass(frozen=True)
class Heuristic:
    """A way to label files without a labeller.

    Attributes:
        name: The choice of ``labels=``, for messages and outputs.
        rivers: The definition of atmospheric rivers, or None for none.
        cyclones: That of tropical cyclones, or None for none.
        rivers_end_within_degrees: River cells within so many degrees of arc of a cyclone are no river; 0 leaves all.
        reference: The publication, for outputs.
        made_for_degrees: Grid spacing that the thresholds were made for.

    Raises:
        InputError: Both definitions are None, or an option is impossible.
    """

    name: str
    rivers: RiverDefinition | None = None
    cyclones: Cyclones | None = None
    rivers_end_within_degrees: float = 0.0
    reference: str = ""
    made_for_degrees: float = 0.25

    def __post_init__(self) -> None:
        if self.rivers is None and self.cyclones is None:
            raise InputError("labels.rivers and labels.cyclones are both null; there is nothing to look for.")
        if self.rivers is not None:
            check_definition("labels.rivers", self.rivers)
        if self.cyclones is not None and not isinstance(self.cyclones, Cyclones):
            raise InputError(
                f"labels.cyclones={self.cyclones}: expected a definition, such as labels/cyclones=tempestextremes, or "
                "null."
            )
        check_options("labels", {"rivers_end_within_degrees": self.rivers_end_within_degrees})

    @property
    def parts(self) -> dict[str, Needs]:
        """What rivers and cyclones need, each alone."""
        found = {} if self.rivers is None else {"rivers": needs_of(self.rivers)}
        if self.cyclones is not None:
            found["cyclones"] = together([needs_of(self.cyclones.candidates), needs_of(self.cyclones.region)])
        return found

    @property
    def needs(self) -> Needs:
        """What it needs in all."""
        return together(self.parts.values())

    def mend(self, available: Collection[str]) -> str:
        """How to do without the part whose channels are not there, where the other part's are; or nothing."""
        lacking = [part for part, asked in self.parts.items() if asked.settle(available).missing]
        if len(lacking) != 1 or len(self.parts) == 1:
            return ""
        (part,) = lacking
        other = next(name for name in self.parts if name != part)
        full = {"rivers": "Atmospheric rivers", "cyclones": "Tropical cyclones"}[part]
        by_transport = part == "rivers" and "TMQ" not in self.parts[part].channels
        instead = "take labels/rivers=kurth2018, which looks at TMQ, or " if by_transport else ""
        return f" {full} need that; {instead}set labels.{part}=null to label {other} alone."

    def definition(self, settled: Settled) -> str:
        """What the classes mean, in words: the definitions, their thresholds, and what stands in."""
        parts = [f"{self.name} ({self.reference})" if self.reference else self.name]
        rivers = "not looked for" if self.rivers is None else described(self.rivers)
        parts.append(f"atmospheric rivers: {rivers}")
        if self.cyclones is None:
            parts.append("tropical cyclones: not looked for")
        else:
            parts.append(f"tropical cyclones: {described(self.cyclones.candidates)}")
            tracks = self.cyclones.tracks
            parts.append(f"tracks: {tracks.words() if tracks else 'none, each time step by itself'}")
            parts.append(f"cells: {described(self.cyclones.region)}")
            if self.rivers is not None and self.rivers_end_within_degrees > 0:
                parts.append(f"no river within {self.rivers_end_within_degrees:g} degrees of a cyclone")
        parts += settled.stand_ins
        return "; ".join(parts)

    def analyse(self, step: Step, explain: bool = False) -> Findings:
        """Look at one time step.

        Args:
            step: Its fields are those of ``Settled.channels``.
            explain: Also give the rows of the regions, and the candidates that cannot count.
        """
        shape = (step.lat.size, step.lon.size)
        nothing = np.zeros(shape, dtype=np.bool_)
        step = replace(step, explain=explain)
        missing = np.logical_or.reduce([np.isnan(f) for f in step.fields.values()])
        found = None if self.rivers is None else self.rivers(step)
        storms = [] if self.cyclones is None else list(_storms(self.cyclones, step))
        return Findings(
            rivers=nothing if found is None else found.mask,
            untold=nothing if found is None else found.untold,
            missing=missing,
            regions=[] if found is None or not explain else _rows(found),
            storms=storms,
        )

    def mask(self, findings: Findings, points: Sequence[Point], lat: Floats, lon: Floats) -> np.ndarray[Any, Any]:
        """Class numbers (lat, lon) int8 of one time step from what was found and how its candidates are decided."""
        storms = [storm for storm, point in zip(findings.storms, points, strict=True) if point.counts]
        cyclones, untold = np.zeros(findings.rivers.shape, dtype=np.bool_), findings.untold.copy()
        for storm in storms:
            (cyclones if storm.told else untold).ravel()[storm.cells] = True
        places = [(s.candidate.lat, s.candidate.lon) for s in storms]
        rivers = without_rivers_near(findings.rivers, lat, lon, places, self.rivers_end_within_degrees)
        return combine(cyclones, rivers, untold=untold, missing=findings.missing)

    def warnings(self, lat: Floats, lon: Floats) -> list[str]:
        """What a user must know of the grid, in sentences."""
        coarse = self.coarse_warning(lat, lon)
        found = [coarse] if coarse else []
        if self.needs.whole_globe and any(outer.any() for outer in rim(lat, lon)):
            found.append(
                f"the rivers of {self.name} are the strongest share of all cells that it is given, and its thresholds "
                "are for the whole globe: of a region it marks other cells."
            )
        return found

    def coarse_warning(self, lat: Floats, lon: Floats) -> str:
        """What loses its meaning on a grid coarser than 1 degree, in a sentence.

        Empty on a finer one, and on one no coarser than the thresholds are made for.
        """
        step = max(spacing(lat), spacing(lon))
        if step <= max(COARSE_DEGREES, self.made_for_degrees):
            return ""
        lost = {
            "rivers": "widths and areas of rivers count in whole cells",
            "cyclones": "vorticity, wind, pressure and warm core of cyclones are smoothed and weak ones missed",
        }
        return (
            f"a grid of {step:g} degrees is coarse, and the thresholds of {self.name} are for "
            f"{self.made_for_degrees:g} degrees: {'; '.join(lost[part] for part in self.parts)}."
        )

    def __call__(self, ds: xr.Dataset) -> xr.DataArray:
        """Label a canonical Dataset in memory, for notebooks; ``climseg label`` (``labels/run.py``) does long inputs.

        Returns:
            LABELS (time, lat, lon) int8, with ``definition``.

        Raises:
            InputError: ``ds`` is not canonical, lacks channels, covers too little time for the tracks, or holds values
                that their unit cannot give (missing ones pass).
        """
        settled = self.settle(ds)
        fields = ds[list(settled.channels)].compute()  # load() would fill the lazy fields of the caller
        lat, lon = axes(fields)
        findings = [self.analyse(step) for step in checked_steps(fields, "the Dataset")]
        masks = np.zeros(tuple(fields.sizes[d] for d in DIMS), dtype=np.int8)
        candidates = ([s.candidate for s in found.storms] for found in findings)
        for index, points in enumerate(self.link(hours(fields), candidates)):
            masks[index] = self.mask(findings[index], points, lat, lon)
        attributes = LABEL_ATTRIBUTES | {"definition": self.definition(settled)}
        coordinates = {name: fields[name] for name in DIMS}
        return xr.DataArray(masks, dims=DIMS, coords=coordinates, name=LABELS, attrs=attributes)

    def settle(self, ds: xr.Dataset) -> Settled:
        """What it takes of a canonical Dataset.

        Raises:
            InputError: A channel is missing and nothing stands in, or the Dataset covers too little time for tracks.
        """
        check_canonical(ds)
        available = [str(name) for name in ds.data_vars]
        settled = self.needs.settle(available)
        try:
            check_canonical(ds, settled.missing)
        except InputError as error:
            raise InputError(f"{error}{self.mend(available)}") from error
        self.check_times(hours(ds))
        return settled

    def check_times(self, hour: Floats) -> None:
        """Refuse an input in which no track can be told.

        Args:
            hour: (time,) from any origin.

        Raises:
            InputError: It is too short, or its steps are too far apart; how to do without tracks is said.
        """
        rule = self.cyclones.tracks if self.cyclones else None
        if rule is None:
            return
        step = usual_step(hour)
        alone = "set labels.cyclones.tracks=null to judge every time step by itself."
        if step > LONGEST_STEP:
            raise InputError(
                f"the time steps of the input are {step:g} hours apart; labels={self.name} follows cyclones through "
                f"time and needs one every {LONGEST_STEP:g} hours at least. Give more time steps, or {alone}"
            )
        gaps = np.flatnonzero(np.diff(hour) > max(rule.max_gap_hours, step) * 1.01)
        starts, ends = np.concatenate([[0], gaps + 1]), np.concatenate([gaps, [hour.size - 1]])
        longest, least = float((hour[ends] - hour[starts]).max()), rule.least_hours(step or _COMMON_STEP)
        if longest >= least - 0.01:
            return
        steps = "a single time step" if hour.size == 1 else f"{longest:g} hours without a gap at most"
        raise InputError(
            f"the input has {steps}; labels={self.name} follows cyclones through time and needs at least {least:g} "
            f"hours. Give more time steps, or {alone}"
        )

    def link(self, hour: Floats, candidates: Iterator[list[Candidate]]) -> Iterator[list[Point]]:
        """Decide the candidates of all steps, in order; see :class:`climseg.labels.tracks.TrackLinker`."""
        rule = self.cyclones.tracks if self.cyclones else None
        if rule is None:
            yield from map(without_tracks, candidates)
            return
        linker = TrackLinker(rule, usual_step(hour))
        for at, found in zip(hour.tolist(), candidates, strict=True):
            yield from linker.add(at, found)
        yield from linker.finish()


def described(definition: Callable[..., Any]) -> str:
    """A definition, by the name of its module, and the values of its options."""
    partial = definition if isinstance(definition, functools.partial) else functools.partial(definition)
    defaults = {
        name: parameter.default
        for name, parameter in inspect.signature(partial.func).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }
    options: Mapping[str, Any] = defaults | partial.keywords
    listed = ", ".join(f"{k} {v:g}" if isinstance(v, int | float) else f"{k} {v}" for k, v in options.items())
    return f"{partial.func.__module__.rpartition('.')[2]} ({listed})"


def axes(ds: xr.Dataset) -> tuple[Floats, Floats]:
    """Latitudes and longitudes in degrees, float64."""
    return np.asarray(ds["lat"].values, dtype=np.float64), np.asarray(ds["lon"].values, dtype=np.float64)


def steps(ds: xr.Dataset) -> Iterator[Step]:
    """The time steps of a Dataset in memory."""
    lat, lon = axes(ds)
    values = {str(name): variable.values for name, variable in ds.data_vars.items()}
    for index, month in enumerate(ds["time"].dt.month.values.tolist()):
        yield Step({name: field[index] for name, field in values.items()}, lat, lon, month)


def checked_steps(ds: xr.Dataset, origin: str) -> Iterator[Step]:
    """As :func:`steps`, with the values looked at first; missing ones (NaN) pass.

    Raises:
        InputError: A channel holds values that its unit cannot give, infinite ones among them; origin, channel, time
            and the mend are named.
    """
    for time, step in zip(iso_times(ds), steps(ds), strict=True):
        for channel, values in step.fields.items():
            check_range(channel, values, time, origin)
        yield step


def hours(ds: xr.Dataset) -> Floats:
    """(time,) hours from the first time step, on the input's calendar."""
    times = ds.indexes["time"]
    return np.asarray((times - times[0]).total_seconds(), dtype=np.float64) / 3600.0


def usual_step(hour: Floats) -> float:
    """The median time between neighbours, hours; 0 for a single step."""
    return float(np.median(np.diff(hour))) if hour.size > 1 else 0.0


def _storms(cyclones: Cyclones, step: Step) -> Iterator[Storm]:
    for candidate in cyclones.candidates(step):
        if cyclones.may_count(candidate):
            region = cyclones.region(step, candidate)
            rows, columns = region.window.cells
            cells = (rows * step.lon.size + columns)[region.mask]
            yield Storm(candidate, np.asarray(cells, dtype=np.int64), region.radius, region.told)
        elif step.explain:
            yield Storm(candidate, np.zeros(0, dtype=np.int64), np.nan)


def _rows(found: Rivers) -> list[dict[str, Any]]:
    table = found.regions
    kept = table.kept
    rejected = [
        " and ".join(name for name, fails in table.failed.items() if fails[region]) for region in range(kept.size)
    ]
    columns = {name: np.asarray(values).tolist() for name, values in table.measures.items()}
    return [{name: c[i] for name, c in columns.items()} | {"rejected_by": rejected[i]} for i in range(kept.size)]
