"""What a labelling function needs of its input, so that a command opens that and nothing else.

A function says it itself, by the decorator :func:`needs`; one that does not gets all channels that the input has.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

_Labels = TypeVar("_Labels", bound=Callable[..., Any])
_ATTRIBUTE: Final = "needs"


@dataclass(frozen=True)
class Needs:
    """What a labelling function needs under its options.

    Attributes:
        channels: Their names.
        fewer: Channels that are enough under another option, or none.
        option: That option, as the command line takes it.
        instead: What it does, a sentence for a message.
    """

    channels: tuple[str, ...]
    fewer: tuple[str, ...] = ()
    option: str = ""
    instead: str = ""


def needs(say: Callable[..., Needs]) -> Callable[[_Labels], _Labels]:
    """Decorate a labelling function with the function that says, from the same keyword options, what it needs."""

    def decorate(function: _Labels) -> _Labels:
        setattr(function, _ATTRIBUTE, say)
        return function

    return decorate


def needs_of(labels: Callable[..., Any]) -> Needs | None:
    """What a labelling function, or a ``functools.partial`` of it with its options, needs; None where it does not say.

    Raises:
        TypeError: An option is none of the function's.
    """
    partial = labels if isinstance(labels, functools.partial) else functools.partial(labels)
    say: Callable[..., Needs] | None = getattr(partial.func, _ATTRIBUTE, None)
    return None if say is None else say(**partial.keywords)
