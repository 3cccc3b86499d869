"""What a source is asked for: channels, and the time of a file without one."""

from collections.abc import Sequence

from climseg.channels import CHANNELS
from climseg.errors import InputError, near_matches


def check_request(paths: Sequence[str], channels: Sequence[str] | None, time: str | None) -> None:
    """Refuse channels that are not names of ``channels.CHANNELS``, each once, and a time for more than one file.

    Raises:
        InputError: They are so.
    """
    if channels is not None:
        _check_channels(channels)
    if time is not None and len(paths) > 1:
        raise InputError(f"source.time supplies the time of a single file; the input has {len(paths)} files.")


def _check_channels(channels: Sequence[str]) -> None:
    if isinstance(channels, str) or not channels:
        raise InputError(f"source.channels is {channels!r}; expected a list of names such as ['TMQ', 'PSL'], or null.")
    for position, name in enumerate(channels):
        if name not in CHANNELS:
            raise InputError(
                f"{name!r} is not a channel{near_matches(str(name), CHANNELS) or '.'} Known: {', '.join(CHANNELS)}."
            )
        if name in channels[:position]:
            raise InputError(f"The channel {name} is asked for twice in source.channels.")
