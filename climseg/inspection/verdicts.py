"""What an input is good for, in words; what is lacking, and how to mend it."""

from collections.abc import Iterable, Sequence
from typing import Final

from climseg.channels import CAM5_CHANNELS
from climseg.inspection.remarks import share
from climseg.inspection.report import MISSING, ChannelReport, Inspection, Verdict
from climseg.labels.kurth2018 import COARSE_DEGREES
from climseg.labels.needs import Needs

# climseg prepare makes three splits, and each wants a step.
_FEWEST_STEPS: Final = 3


def training_verdict(inspection: Inspection, needs: Needs | None, name: str) -> Verdict:
    """Whether a network can be trained on the channels that are there, without those whose values are no good.

    Args:
        inspection: Without verdicts.
        needs: Of the labelling function that makes masks where the files carry none; None where it makes none.
        name: Of that function.
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
    labels, where = _labels_for_training(inspection, needs, name)
    # Without channels= the opener refuses variables that are there and cannot be used.
    bad += [(c.name, c.needs.rstrip(".")) for c in inspection.channels if c.in_the_way and c.name in CAM5_CHANNELS]
    if bad:
        chosen = f"with channels=[{','.join(good)}], which leaves out {'; '.join(_grouped(bad))}"
    else:
        chosen = f"with the {len(good)} channels there" if len(good) > 1 else f"with {good[0]} alone"
    return Verdict(purpose, labels, f"{chosen}; {where}.")


def labels_verdict(inspection: Inspection, needs: Needs | None, name: str) -> Verdict:
    """Whether masks can be made by a labelling function, or what it lacks.

    Args:
        inspection: Without verdicts.
        needs: Of the function; None where it takes the mask that came with the files.
        name: Of the function.
    """
    purpose = f"labels={name}"
    if needs is None:
        if inspection.labels.present:
            return Verdict(purpose, True, "the files carry LABELS.")
        reason = inspection.labels.problem or "the files carry no LABELS; take a heuristic, such as labels=kurth2018."
        return Verdict(purpose, False, reason)
    lacking = what_lacks(inspection, needs.channels)
    if lacking:
        fewer = f" {needs.instead}" if needs.fewer and not what_lacks(inspection, needs.fewer) else ""
        return Verdict(purpose, False, f"{'; '.join(lacking)}.{fewer}")
    gaps = [c for c in needs.channels if (r := inspection.channel(c)) and r.values and r.values.missing_at]
    note = f"; cells where {', '.join(gaps)} is missing get -1, no class" if gaps else ""
    return Verdict(
        purpose, True, f"the {len(needs.channels)} channels that it needs are there{note}.{_coarse(inspection)}"
    )


def _coarse(inspection: Inspection) -> str:
    """A word on grids for which the heuristics' thresholds were not made."""
    step = max((max(grid.lat_spacing, grid.lon_spacing) for grid in inspection.grids), default=0.0)
    if step <= COARSE_DEGREES:
        return ""
    return f" The grid of {step:g} degrees is coarse for it and it may find little; see labels=kurth2018_coarse."


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


def _labels_for_training(inspection: Inspection, needs: Needs | None, name: str) -> tuple[bool, str]:
    """Whether there are labels for training, and from where."""
    if inspection.labels.present:
        return True, "the files carry LABELS (labels=from_file)"
    if needs is not None and not what_lacks(inspection, needs.channels):
        return True, f"the files carry no LABELS, labels={name} makes them"
    if needs is not None and needs.fewer and not what_lacks(inspection, needs.fewer):
        return True, f"the files carry no LABELS, labels={name} {needs.option} makes some"
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
