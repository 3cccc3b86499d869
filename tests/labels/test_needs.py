"""What definitions need, what can stand in, and what is taken of an input."""

import functools

import pytest

from climseg.labels.needs import Choice, Needs, Settled, StandIn, criteria, criteria_of, needs, needs_of, together

CORE = Choice(
    ("Z300", "Z500"),
    (StandIn(("T200", "T500"), "temperature in place of height"), StandIn(("Z200", "Z1000"), "thickness in its place")),
)


@pytest.mark.parametrize(
    ("available", "channels", "stand_ins", "missing"),
    [
        # The published channels win, whatever else is there.
        ("PSL Z300 Z500 T200 T500 Z200 Z1000", "PSL Z300 Z500", [], ""),
        ("PSL Z300 T200 T500 Z200 Z1000", "PSL T200 T500", ["temperature in place of height"], ""),
        ("PSL Z500 T500 Z200 Z1000", "PSL Z200 Z1000", ["thickness in its place"], ""),
        # Nothing whole: what the publication asks for is named, and only what is not there.
        ("PSL Z500 T500", "PSL", [], "Z300"),
        ("", "PSL", [], "PSL Z300 Z500"),
    ],
)
def test_the_first_choice_that_is_there_as_a_whole_is_taken(
    available: str, channels: str, stand_ins: list[str], missing: str
) -> None:
    settled = Needs(("PSL",), (CORE,)).settle(available.split())
    assert settled == Settled(tuple(channels.split()), tuple(stand_ins), tuple(missing.split()))


def test_needs_together_name_each_channel_and_stand_in_once() -> None:
    both = together([Needs(("PSL", "UBOT"), (CORE,)), Needs(("TMQ", "PSL")), Needs(("Z500",), (CORE,))])
    assert both.channels == ("PSL", "UBOT", "TMQ", "Z500")
    settled = both.settle(["PSL", "UBOT", "TMQ", "Z500", "T200", "T500"])
    assert settled.channels == ("PSL", "UBOT", "TMQ", "Z500", "T200", "T500")
    assert settled.stand_ins == ("temperature in place of height",)
    assert settled.missing == ()
    assert together([]) == Needs(())


def test_all_channels_are_those_of_use_in_any_way() -> None:
    wanted = Needs(("PSL", "T500"), (CORE,)).all_channels
    assert wanted == ("PSL", "T500", "Z300", "Z500", "T200", "Z200", "Z1000")


def test_needs_follow_the_options_and_the_decorator_leaves_the_function_as_it_is() -> None:
    def look(step: int, *, wide: bool = False) -> int:
        return step

    said = needs(lambda wide=False: Needs(("TMQ", "PSL") if wide else ("TMQ",)))(look)
    assert said is look
    assert needs_of(look) == Needs(("TMQ",))
    assert needs_of(functools.partial(look, wide=True)) == Needs(("TMQ", "PSL"))
    with pytest.raises(TypeError, match="narrow"):
        needs_of(functools.partial(look, **{"narrow": True}))


def test_criteria_are_those_of_the_function_whatever_its_options() -> None:
    @criteria("wind", "warm core")
    def look(step: int, *, least: float = 1.0) -> int:
        return step

    assert criteria_of(look) == criteria_of(functools.partial(look, least=2.0)) == ("wind", "warm core")
