"""The one exception for what a user can mend."""

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """A mistake in files, units, names or options that the user can mend.

    Its message is one clear sentence (or two): which file and variable, what came, what was expected, how to mend it.
    The command line prints the message alone and ends with exit code 2; everything else that is raised is a bug.
    """


def near_matches(word: str, known: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"`` for the nearest known words, or an empty string when nothing is near."""
    folded = {k.lower(): k for k in known}
    found = [folded[m] for m in difflib.get_close_matches(word.lower(), folded, n=2, cutoff=0.6)]
    return f"; did you mean {' or '.join(repr(f) for f in found)}?" if found else ""
