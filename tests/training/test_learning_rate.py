import pytest

from climseg.errors import InputError
from climseg.training.learning_rate import scaled_learning_rate


def test_goyal_2017_has_a_rate_of_3_2_at_a_batch_of_8192() -> None:
    assert scaled_learning_rate(0.1, 8192, 256, "linear") == pytest.approx(3.2)


def test_the_square_root_rule_doubles_the_rate_for_four_times_the_batch() -> None:
    assert scaled_learning_rate(0.001, 512, 128, "sqrt") == pytest.approx(0.002)


def test_without_a_rule_the_rate_stays() -> None:
    assert scaled_learning_rate(0.1, 8192, 256) == 0.1


@pytest.mark.parametrize("rule", ["linear", "sqrt", "none"])
def test_at_the_reference_batch_no_rule_changes_the_rate(rule: str) -> None:
    assert scaled_learning_rate(0.003, 64, 64, rule) == 0.003


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((0.1, 8, 4, "linaer"), "no rule 'linaer'; did you mean 'linear'"),
        ((0.1, 8, 4, "cube"), "known are none, linear, sqrt"),
        ((0.1, 0, 4, "linear"), "global batch 0"),
        ((0.1, 8, 0, "sqrt"), "lr_scaling.reference_batch=0"),
        ((0.0, 8, 4, "sqrt"), "lr=0.0"),
        ((float("nan"), 8, 4, "none"), "lr=nan"),
    ],
)
def test_impossible_arguments_are_refused(arguments: tuple[float, int, int, str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        scaled_learning_rate(*arguments)
