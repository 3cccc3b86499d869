"""What a definition needs of its input, so that a command opens that and nothing else, and says what stands in.

A definition (a function of one time step with its thresholds as keyword options) says it by the decorator
:func:`needs`.
"""

import functools
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

_Definition = TypeVar("_Definition", bound=Callable[..., Any])
_ATTRIBUTE: Final = "needs"
_CRITERIA: Final = "criteria"


@dataclass(frozen=True)
class StandIn:
    """Channels that can take the place of a definition's own.

    Attributes:
        channels: Their names.
        words: What that means, for the output's ``definition``: "... in place of ...".
    """

    channels: tuple[str, ...]
    words: str


@dataclass(frozen=True)
class Choice:
    """Channels that a definition needs, and what can stand in for them.

    Attributes:
        channels: Those of the publication.
        stand_ins: In the order of preference.
    """

    channels: tuple[str, ...]
    stand_ins: tuple[StandIn, ...]


@dataclass(frozen=True)
class Needs:
    """What a definition needs under its options.

    Attributes:
        channels: Channels without which it cannot do.
        choices: Channels for which others can stand in.
        whole_globe: Whether it compares each cell with all others, so that a region gives other answers.
    """

    channels: tuple[str, ...]
    choices: tuple[Choice, ...] = ()
    whole_globe: bool = False

    @property
    def all_channels(self) -> tuple[str, ...]:
        """Every channel that may be of use."""
        wanted = [*self.channels]
        for choice in self.choices:
            wanted += [*choice.channels, *(c for stand_in in choice.stand_ins for c in stand_in.channels)]
        return tuple(dict.fromkeys(wanted))

    def settle(self, available: Collection[str]) -> "Settled":
        """Choose by what is there."""
        channels, words, missing = list(self.channels), [], [c for c in self.channels if c not in available]
        for choice in self.choices:
            options = [StandIn(choice.channels, ""), *choice.stand_ins]
            taken = next((o for o in options if all(c in available for c in o.channels)), None)
            if taken is None:
                missing += [c for c in choice.channels if c not in available]
                continue
            channels += taken.channels
            words += [taken.words] if taken.words else []
        return Settled(tuple(dict.fromkeys(channels)), tuple(dict.fromkeys(words)), tuple(dict.fromkeys(missing)))

    def __add__(self, other: "Needs") -> "Needs":
        """What two definitions need together."""
        channels = tuple(dict.fromkeys(self.channels + other.channels))
        return Needs(channels, self.choices + other.choices, self.whole_globe or other.whole_globe)


@dataclass(frozen=True)
class Settled:
    """What a definition takes of an input.

    Attributes:
        channels: The channels to open.
        stand_ins: What stands in, in words.
        missing: Channels that are not there and that nothing there can stand in for.
    """

    channels: tuple[str, ...]
    stand_ins: tuple[str, ...]
    missing: tuple[str, ...]


def needs(asked: Needs | Callable[..., Needs]) -> Callable[[_Definition], _Definition]:
    """Decorate a definition with what it needs, or with a function that says it from the same keyword options."""

    def decorate(function: _Definition) -> _Definition:
        setattr(function, _ATTRIBUTE, asked)
        return function

    return decorate


def criteria(*names: str) -> Callable[[_Definition], _Definition]:
    """Decorate a definition of candidates with the names of all its criteria, as in ``Candidate.rejected_by``."""

    def decorate(function: _Definition) -> _Definition:
        setattr(function, _CRITERIA, names)
        return function

    return decorate


def criteria_of(definition: Callable[..., Any]) -> tuple[str, ...]:
    """The names of all criteria of a definition of candidates, or of a ``functools.partial`` of it."""
    function = definition.func if isinstance(definition, functools.partial) else definition
    names: tuple[str, ...] = getattr(function, _CRITERIA)
    return names


def needs_of(definition: Callable[..., Any]) -> Needs:
    """What a definition, or a ``functools.partial`` of it with its options, needs.

    Raises:
        TypeError: What is needed depends on the options, and one is none of the definition's.
    """
    partial = definition if isinstance(definition, functools.partial) else functools.partial(definition)
    asked: Needs | Callable[..., Needs] = getattr(partial.func, _ATTRIBUTE)
    return asked if isinstance(asked, Needs) else asked(**partial.keywords)


def together(parts: Iterable[Needs]) -> Needs:
    """What several definitions need together."""
    return functools.reduce(Needs.__add__, parts, Needs(()))
