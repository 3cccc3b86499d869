import pytest

from climseg.errors import InputError
from climseg.losses.class_weights import class_weights

KURTH = (0.982, 0.00071, 0.0169)


def test_the_weights_of_kurth_2018() -> None:
    assert class_weights(KURTH).tolist() == pytest.approx([0.0218, 0.812, 0.166], rel=3e-3)


def test_inverse_weights_are_in_inverse_proportion() -> None:
    assert class_weights([0.5, 0.25, 0.125], "inverse").tolist() == pytest.approx([1 / 7, 2 / 7, 4 / 7])


def test_uniform_weights_are_equal() -> None:
    assert class_weights(KURTH, "uniform").tolist() == pytest.approx([1 / 3] * 3)


def test_counts_give_the_same_weights_as_shares() -> None:
    assert class_weights([900, 90, 10]).tolist() == pytest.approx(class_weights([0.9, 0.09, 0.01]).tolist())


@pytest.mark.parametrize("scheme", ["inverse_sqrt", "inverse", "uniform"])
def test_a_class_that_never_occurs_weighs_nothing_and_leaves_the_others_alone(scheme: str) -> None:
    with_absent = class_weights([0.98, 0.0, 0.02], scheme).tolist()
    without = class_weights([0.98, 0.02], scheme).tolist()
    assert with_absent == pytest.approx([without[0], 0.0, without[1]])


@pytest.mark.parametrize("frequencies", [[0.0, 0.0], [1.1, -0.1], [float("nan"), 1.0], [float("inf"), 1.0], []])
def test_impossible_frequencies_are_refused(frequencies: list[float]) -> None:
    with pytest.raises(InputError, match="class frequencies"):
        class_weights(frequencies)


def test_an_unknown_scheme_is_refused_with_the_near_match() -> None:
    with pytest.raises(InputError, match="did you mean 'inverse_sqrt'"):
        class_weights(KURTH, "inverse_sqr")
