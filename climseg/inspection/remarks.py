"""What is strange in the values that were read, in sentences."""

from collections.abc import Iterator, Sequence
from typing import Final

from climseg.inspection.report import ChannelReport, ValuesReport

# How many times are named.
_NAMED: Final = 3


def remarks_on(channels: Sequence[ChannelReport]) -> list[str]:
    """What is strange in the values of channels; a sentence that several share stands once."""
    found: dict[str, list[str]] = {}
    for channel in channels:
        if channel.values is not None:
            for sentence in _strange(channel, channel.values):
                found.setdefault(sentence, []).append(channel.name)
    return [f"{', '.join(names)}: {sentence}" for sentence, names in found.items()]


def share(value: float) -> str:
    """A share in percent, such as ``3.4%`` or ``under 0.1%``."""
    return "under 0.1%" if 0.0 < value < 0.001 else f"{value:.1%}"


def _strange(channel: ChannelReport, values: ValuesReport) -> Iterator[str]:
    if values.unreadable:
        yield f"cannot be read {_when(list(values.unreadable), values)}: {next(iter(values.unreadable.values()))}"
    if values.missing_at:
        yield f"{share(values.missing_share)} of the values are missing, {_when(values.missing_at, values)}."
    if values.constant_at and values.minimum == values.maximum:
        yield f"is {values.minimum:g} {channel.units} everywhere and carries no information; leave it out."
    elif values.constant_at:
        yield f"has one value everywhere {_when(values.constant_at, values)}."
    if values.impossible:
        sentence = values.impossible.removeprefix(f"channel {channel.name} ")
        yield sentence if len(values.impossible_at) == 1 else f"{sentence} So {_when(values.impossible_at, values)}."
    if values.too_small:
        yield (
            f"runs from {values.minimum:g} to {values.maximum:g} {channel.units} on the whole globe, a thousandth of "
            "what is usual; see whether the units attribute is right."
        )


def _when(times: Sequence[str], values: ValuesReport) -> str:
    if len(times) == values.steps:
        return f"in all {values.steps} sampled steps" if values.steps > 1 else f"at {times[0]}"
    named = ", ".join(times[:_NAMED]) + (", ..." if len(times) > _NAMED else "")
    return f"in {len(times)} of {values.steps} sampled steps ({named})"
