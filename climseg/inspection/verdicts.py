"""What an input is good for, in words; what is lacking, and how to mend it."""

import functools
from collections.abc import Iterable, Sequence
from typing import Final

import xarray as xr

from climseg.channels import CAM5_CHANNELS
from climseg.errors import InputError
from climseg.inspection.remarks import share
from climseg.inspection.report import MISSING, ChannelReport, Inspection, Verdict
from climseg.labels.heuristic import COARSE_DEGREES, Heuristic, hours
from climseg.labels.make_climatology import check_steps, lacks_climatology

# climseg prepare makes three splits, and each wants a step.
_FEWEST_STEPS: Final = 3
# Heuristics for which conf/labels has a second set of thresholds for grids of about 2.5 degrees.
_WITH_COARSE_PRESET: Final = ("kurth2018",)


def training_verdict(inspection: Inspection, groups: Sequence[xr.Dataset], heuristic: Heuristic | None) -> Verdict:
    """Whether a network can be trained on the channels that are there, without those whose values are no good.

    Args:
        inspection: Without verdicts.
        groups: The Datasets of ``inspection.together``.
        heuristic: What makes masks where the files carry none; None where nothing does.
    """
    purpose = "a new network"
    there = [c for c in inspection.channels if c.state != MISSING]
    there = [c for c in there if c.name in CAM5_CHANNELS] or there
    good = [c.name for c in there if not _why_unusable(c)]
    bad = [(c.name, reason) for c in there if (reason := _why_unusable(c))]
    if not good:
        reasons = _grouped(bad) or ["no channel can be had from the input; the table says what each needs"]
        return Verdict(purpose, False, f"{'; '.join(reasons)}.")
    if not _fit_together(good, inspection):
        return Verdict(purpose, False, f"the channels do not fit together. {inspection.problems[0]}")
    steps = next(t.steps for t in inspection.times if good[0] in t.channels)
    if steps < _FEWEST_STEPS:
        few = "1 time step is" if steps == 1 else f"{steps} time steps are"
        return Verdict(purpose, False, f"{few} too few to split into training, validation and test; give more files.")
    labels, where = _labels_for_training(inspection, groups, heuristic)
    # Without channels= the opener refuses variables that are there and cannot be used.
    bad += [(c.name, c.needs.rstrip(".")) for c in inspection.channels if c.in_the_way and c.name in CAM5_CHANNELS]
    if bad:
        chosen = f"with channels=[{','.join(good)}], which leaves out {'; '.join(_grouped(bad))}"
    else:
        chosen = f"with the {len(good)} channels there" if len(good) > 1 else f"with {good[0]} alone"
    return Verdict(purpose, labels, f"{chosen}; {where}.")


def labels_verdict(inspection: Inspection, groups: Sequence[xr.Dataset], heuristic: Heuristic | None) -> Verdict:
    """Whether masks can be made by a heuristic, or what it lacks: channels, or time steps.

    Args:
        inspection: Without verdicts.
        groups: The Datasets of ``inspection.together``; their times alone count.
        heuristic: None for the mask that came with the files.
    """
    if heuristic is None:
        purpose = "labels=from_file"
        if inspection.labels.present:
            return Verdict(purpose, True, "the files carry LABELS.")
        reason = inspection.labels.problem or "the files carry no LABELS; take a heuristic, such as labels=kurth2018."
        return Verdict(purpose, False, reason)
    purpose = f"labels={heuristic.name}"
    available = _good_channels(inspection)
    settled = heuristic.needs.settle(available)
    lacking = what_lacks(inspection, list(dict.fromkeys([*settled.channels, *settled.missing])))
    if lacking:
        return Verdict(purpose, False, f"{'; '.join(lacking)}.{heuristic.mend(available)}")
    if short := _too_short(groups, settled.channels, heuristic):
        return Verdict(purpose, False, short)
    gaps = [c for c in settled.channels if (r := inspection.channel(c)) and r.values and r.values.missing_at]
    notes = [f"cells where {', '.join(gaps)} is missing get -1, no class"] if gaps else []
    count = len(settled.channels)
    taken = f"{count} channels that it takes are" if count > 1 else f"channel {settled.channels[0]} that it takes is"
    said = "; ".join([f"the {taken} there", *settled.stand_ins, *notes])
    return Verdict(purpose, True, f"{said}.{_coarse(inspection, heuristic)}")


def _too_short(groups: Sequence[xr.Dataset], channels: Sequence[str], heuristic: Heuristic) -> str:
    """Why the times of the input are too few for tracks, or for a climatology, in a sentence; empty if they are not."""
    fields = next(ds for ds in groups if all(name in ds for name in channels))
    try:
        heuristic.check_times(hours(fields))
        if isinstance(heuristic.rivers, functools.partial) and lacks_climatology(heuristic.rivers):
            months = fields["time"].dt.month.values
            check_steps(months, heuristic.rivers.keywords["min_steps"], "the input")
    except InputError as error:
        return str(error)
    return ""


def other_labels_verdict(
    inspection: Inspection, groups: Sequence[xr.Dataset], heuristics: Sequence[Heuristic]
) -> list[Verdict]:
    """The heuristics for which the input is ready besides, in one verdict; none where there are none."""
    ready = [f"labels={other.name}" for other in heuristics if labels_verdict(inspection, groups, other).ready]
    return [Verdict("other labels too", True, f"{', '.join(ready)}.")] if ready else []


def _good_channels(inspection: Inspection) -> list[str]:
    return [c.name for c in inspection.channels if c.state != MISSING and not _broken(c)]


def _coarse(inspection: Inspection, heuristic: Heuristic) -> str:
    """A word on grids for which the heuristics' thresholds were not made."""
    step = max((max(grid.lat_spacing, grid.lon_spacing) for grid in inspection.grids), default=0.0)
    if step <= COARSE_DEGREES or heuristic.made_for_degrees > COARSE_DEGREES:
        return ""
    preset = f"; see labels={heuristic.name}_coarse" if heuristic.name in _WITH_COARSE_PRESET else ""
    return f" The grid of {step:g} degrees is coarse for it and it may find little{preset}."


def what_lacks(inspection: Inspection, channels: Sequence[str], *, complete: bool = False) -> list[str]:
    """Why channels cannot be used together: sentences without their last dot, none if they can.

    Args:
        inspection: Without verdicts.
        channels: Their names.
        complete: Refuse missing values too, as networks do.
    """
    reasons = []
    for name in channels:
        report = inspection.channel(name)
        if report is None:
            reasons.append((name, "not among source.channels"))
        elif report.state == MISSING:
            reasons.append((name, report.needs.rstrip(".")))
        elif reason := _broken(report) or (_incomplete(report) if complete else ""):
            reasons.append((name, reason))
    if not reasons and not _fit_together(channels, inspection):
        return [inspection.problems[0].rstrip(".")]
    return _grouped(reasons)


def _labels_for_training(
    inspection: Inspection, groups: Sequence[xr.Dataset], heuristic: Heuristic | None
) -> tuple[bool, str]:
    """Whether there are labels for training, and from where."""
    if inspection.labels.present:
        return True, "the files carry LABELS (labels=from_file)"
    if heuristic is not None:
        available = _good_channels(inspection)
        if labels_verdict(inspection, groups, heuristic).ready:
            return True, f"the files carry no LABELS, labels={heuristic.name} makes them"
        settled = heuristic.needs.settle(available)
        if not settled.missing and _fit_together(settled.channels, inspection):
            return False, f"but the files carry no LABELS, and {_too_short(groups, settled.channels, heuristic)[:-1]}"
        if heuristic.mend(available):
            return (
                True,
                f"the files carry no LABELS, labels={heuristic.name} makes some.{heuristic.mend(available)[:-1]}",
            )
    return False, "but the files carry no LABELS, and no heuristic has the channels that it needs"


def _fit_together(channels: Iterable[str], inspection: Inspection) -> bool:
    return any(set(channels) <= set(group) for group in inspection.together)


def _why_unusable(report: ChannelReport) -> str:
    """Why training would refuse a channel that is there, in some words; or an empty string."""
    return _broken(report) or _incomplete(report) or _everywhere_the_same(report)


def _broken(report: ChannelReport) -> str:
    """Why no command can use a channel that is there."""
    if report.values is None:
        return report.refused.rstrip(".")
    if report.values.unreadable:
        return next(iter(report.values.unreadable.values())).rstrip(".")
    if report.values.mistake:
        return f"values that look like {report.values.mistake}; correct the units attribute"
    return report.values.impossible.removeprefix(f"channel {report.name} ").rstrip(".")


def _incomplete(report: ChannelReport) -> str:
    values = report.values
    return f"{share(values.missing_share)} missing" if values is not None and values.missing_at else ""


def _everywhere_the_same(report: ChannelReport) -> str:
    values = report.values
    constant = values is not None and values.minimum is not None and values.minimum == values.maximum
    return "the same value everywhere" if constant else ""


def _grouped(reasons: Sequence[tuple[str, str]]) -> list[str]:
    """Names and reasons as sentences, a reason that several share once."""
    names: dict[str, list[str]] = {}
    for name, reason in reasons:
        names.setdefault(reason, []).append(name)
    return [r if r.startswith(f"{own[0]} ") else f"{', '.join(own)}: {r}" for r, own in names.items()]
