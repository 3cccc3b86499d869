"""Inspect an input: everything that the other modules of this package say, of one survey."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import xarray as xr

from climseg.canonical import iso_times
from climseg.channels import CAM5_CHANNELS, CHANNELS, LABELS
from climseg.errors import InputError
from climseg.inspection.axes import describe_grid, describe_times
from climseg.inspection.channel import describe_channel
from climseg.inspection.files import describe_files
from climseg.inspection.remarks import remarks_on
from climseg.inspection.report import ChannelReport, GridReport, Inspection, LabelsReport, TimeReport
from climseg.inspection.values import Progress, Tally, sample_of
from climseg.inspection.verdicts import labels_verdict, other_labels_verdict, training_verdict
from climseg.labels.heuristic import Heuristic
from climseg.sources.open import Survey, Way, assemble, survey_input
from climseg.sources.paths import Input
from climseg.sources.recipes import Field, Recipe

_Axis = TypeVar("_Axis", bound=TimeReport | GridReport)


def inspect_input(
    input: Input,
    *,
    steps: int | None = 8,
    heuristic: Heuristic | None = None,
    heuristics: Sequence[Heuristic] = (),
    progress: Progress = lambda done, total: None,
    **options: Any,
) -> Inspection:
    """Say what an input is, what is strange in it, and what it is good for.

    Args:
        input: Paths, patterns or URLs.
        steps: How many time steps are read, spread over the record, one in memory at a time; None reads all, 0 none.
        heuristic: What to judge the input for; None for masks that come with the files.
        heuristics: Others, of which those are named that the input is ready for.
        progress: Called with (time steps read, time steps to read).
        options: Of :func:`climseg.sources.open.open_fields`: ``source``, ``channels``, ``period`` and so on.

    Returns:
        Plain values; ``dataclasses.asdict`` makes JSON types of it.

    Raises:
        InputError: The input cannot be read at all, by name of the file.
    """
    return inspect_survey(
        survey_input(input, **options), steps=steps, heuristic=heuristic, heuristics=heuristics, progress=progress
    )


def inspect_survey(
    survey: Survey,
    *,
    steps: int | None = 8,
    heuristic: Heuristic | None = None,
    heuristics: Sequence[Heuristic] = (),
    progress: Progress = lambda done, total: None,
) -> Inspection:
    """Inspect an input that was surveyed already; see :func:`inspect_input`."""
    survey = _with_labels(survey)
    groups, refused = _that_fit_together(survey)
    grids = [describe_grid(ds, _channels_of(ds)) for ds in groups]
    tallies = [Tally(_channels_of(ds), grid.whole_globe) for ds, grid in zip(groups, grids, strict=True)]
    sampled: list[str] = []
    for ds, tally in zip(groups, tallies, strict=True):
        indices = sample_of(ds.sizes["time"], steps)
        tally.read(ds, indices, progress)
        sampled += iso_times(ds.isel(time=indices))

    channels = _describe_channels(survey, groups, tallies, refused)
    per_step, total = _sizes(groups)
    inspection = Inspection(
        source=survey.source,
        title=str(groups[0].attrs["source"]) if groups else survey.table.title,
        why=survey.why,
        files=describe_files(survey),
        times=_merged(
            [
                *(describe_times(ds["time"].to_index(), _channels_of(ds)) for ds in groups if _channels_of(ds)),
                *_times_of_refused(survey, refused),
            ]
        ),
        grids=_merged([grid for grid in grids if grid.channels]),
        together=[_channels_of(ds) for ds in groups],
        channels=channels,
        labels=_describe_labels(survey, groups, tallies, refused),
        sampled=sorted(set(sampled)),
        problems=list(dict.fromkeys([*refused.values(), *_apart(survey, groups)])),
        remarks=remarks_on(channels),
        bytes_per_step=per_step,
        store_bytes=total,
    )
    verdicts = [training_verdict(inspection, groups, heuristic), labels_verdict(inspection, groups, heuristic)]
    others = [other for other in heuristics if heuristic is None or other.name != heuristic.name]
    verdicts += other_labels_verdict(inspection, groups, others)
    return replace(inspection, verdicts=verdicts)


def _with_labels(survey: Survey) -> Survey:
    """With a way to the mask LABELS, where the files carry one."""
    mask = Field(LABELS)
    if LABELS not in survey.table.names or survey.lookup.find(mask) is None:
        return survey
    return replace(survey, ways=survey.ways | {LABELS: Way(LABELS, Recipe((mask,)), (mask,))})


def _that_fit_together(survey: Survey) -> tuple[list[xr.Dataset], dict[str, str]]:
    """Datasets of what shares times and grid, largest first; and why others cannot be opened at all, by name."""
    names = list(survey.ways)
    if not names:
        return [], {}
    if not _refusal(survey, names):
        return [assemble(survey, names)], {}
    refused = {name: sentence for name in names if (sentence := _refusal(survey, [name]))}
    groups: list[list[str]] = []
    for name in (n for n in names if n not in refused):
        for group in groups:
            if not _refusal(survey, [*group, name]):
                group.append(name)
                break
        else:
            groups.append([name])
    refused = _first_of_alike(survey, refused)
    return [assemble(survey, group) for group in sorted(groups, key=len, reverse=True)], refused


def _first_of_alike(survey: Survey, refused: Mapping[str, str]) -> dict[str, str]:
    """The same sentence for all that are refused for the same reason: one, not each with its own variable's name."""
    first: dict[str, str] = {}
    said = {}
    for name, sentence in refused.items():
        reason = sentence
        for field in survey.ways[name].fields():
            found = survey.lookup.find(field)
            for spoken in found.names if found is not None else ():
                reason = reason.replace(f"variable {spoken} ", "variable ")
        said[name] = first.setdefault(reason, sentence)
    return said


def _refusal(survey: Survey, names: Sequence[str]) -> str:
    """Why variables cannot be opened as one Dataset, or an empty string."""
    try:
        assemble(survey, names)
    except InputError as error:
        return str(error)
    return ""


def _apart(survey: Survey, groups: Sequence[xr.Dataset]) -> list[str]:
    """Why the variables of several groups are no single Dataset."""
    return [_refusal(survey, [str(name) for ds in groups for name in ds.data_vars])] if len(groups) > 1 else []


def _channels_of(ds: xr.Dataset) -> list[str]:
    return [str(name) for name in ds.data_vars if name != LABELS]


def _describe_channels(
    survey: Survey, groups: Sequence[xr.Dataset], tallies: Sequence[Tally], refused: Mapping[str, str]
) -> list[ChannelReport]:
    """All channels that the survey looked for, in the usual order, with what was read of them."""
    reports = []
    for name in (c for c in CHANNELS if c in survey.ways or c in survey.missing):
        opened = next(((ds, tally) for ds, tally in zip(groups, tallies, strict=True) if name in ds), None)
        if opened is None:
            reports.append(describe_channel(name, survey, refused=refused.get(name, "")))
            continue
        ds, tally = opened
        report = describe_channel(name, survey, comment=str(ds[name].attrs.get("comment", "")))
        reports.append(replace(report, values=tally.values(name)))
    return reports


def _describe_labels(
    survey: Survey, groups: Sequence[xr.Dataset], tallies: Sequence[Tally], refused: Mapping[str, str]
) -> LabelsReport:
    """The mask of the files; one that does not fit to most channels is of no use."""
    for ds, tally in zip(groups, tallies, strict=True):
        if LABELS in ds:
            report = tally.labels()
            return report if ds is groups[0] else replace(report, present=False, problem=_apart(survey, groups)[0])
    return LabelsReport(False, refused.get(LABELS, survey.lookup.problems.get(Field(LABELS), "")))


def _sizes(groups: Sequence[xr.Dataset]) -> tuple[int, int]:
    """Bytes of one time step and of all: float32 channels, those of CAM5 or else all, and an int8 mask."""
    if not groups:
        return 0, 0
    largest, names = groups[0], _channels_of(groups[0])
    count = len([name for name in names if name in CAM5_CHANNELS]) or len(names)
    per_step = largest.sizes["lat"] * largest.sizes["lon"] * (4 * count + 1)
    return per_step, per_step * largest.sizes["time"]


def _times_of_refused(survey: Survey, refused: Mapping[str, str]) -> list[TimeReport]:
    """The times of channels that could not be opened, above all those with a time twice."""
    reports = []
    for name in refused:
        found = survey.lookup.find(survey.ways[name].fields()[0])
        assert found is not None
        indices = [survey.timeline.of(number)[0] for number in survey.timeline.numbers(found.leading())]
        if name != LABELS and len({str(getattr(index, "calendar", "standard")) for index in indices}) == 1:
            times = indices[0].append(indices[1:])
            reports.append(describe_times(times[np.argsort(times.values, kind="stable")], [name]))
    return reports


def _merged(reports: Iterable[_Axis]) -> list[_Axis]:
    """Equal axes of several groups as one, with the channels of all."""
    merged: list[_Axis] = []
    for report in reports:
        for position, other in enumerate(merged):
            if replace(other, channels=report.channels) == report:
                merged[position] = replace(other, channels=[*other.channels, *report.channels])
                break
        else:
            merged.append(report)
    return merged
