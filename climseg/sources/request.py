"""Which channels a source is asked for."""

from collections.abc import Sequence

from climseg.channels import CHANNELS
from climseg.errors import InputError, near_matches


def check_request(channels: Sequence[str]) -> None:
    """Raise InputError unless ``channels`` is a list of names of ``channels.CHANNELS``, each once, and not empty."""
    if isinstance(channels, str) or not channels:
        raise InputError(f"source.channels is {channels!r}; expected a list of names such as ['TMQ', 'PSL'], or null.")
    for position, name in enumerate(channels):
        if name not in CHANNELS:
            raise InputError(
                f"{name!r} is not a channel{near_matches(name, CHANNELS) or '.'} Known: {', '.join(CHANNELS)}."
            )
        if name in channels[:position]:
            raise InputError(f"The channel {name} is asked for twice in source.channels.")
