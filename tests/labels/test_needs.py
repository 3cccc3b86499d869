import functools

from climseg.labels.from_file import from_file
from climseg.labels.kurth2018 import CYCLONE_CHANNELS, kurth2018
from climseg.labels.needs import Needs, needs, needs_of


def test_the_heuristic_needs_its_channels_and_rivers_alone_one() -> None:
    both = needs_of(kurth2018)
    assert both is not None
    assert set(both.channels) == set(CYCLONE_CHANNELS)
    assert both.fewer == ("TMQ",)
    assert both.option in both.instead
    rivers = needs_of(functools.partial(kurth2018, tropical_cyclones=False, ar={"threshold": 21.0}))
    assert rivers == Needs(("TMQ",))


def test_a_function_that_does_not_say_what_it_needs_takes_what_there_is() -> None:
    assert needs_of(from_file) is None
    assert needs_of(functools.partial(from_file)) is None


def test_the_decorator_leaves_the_function_as_it_is() -> None:
    def label(ds: int, *, wide: bool = False) -> int:
        return ds

    said = needs(lambda wide=False: Needs(("TMQ", "PSL") if wide else ("TMQ",)))(label)
    assert said is label
    assert needs_of(functools.partial(label, wide=True)) == Needs(("TMQ", "PSL"))
