import pytest
import torch

from climseg.errors import InputError
from climseg.losses.overlap import dice, jaccard
from climseg.losses.weighted_sum import weighted_sum

TERMS = {"dice": dice, "jaccard": jaccard}
LOGITS = torch.zeros(1, 2, 1, 2)
TARGET = torch.tensor([[[0, 1]]])


def test_the_sum_is_that_of_the_terms_times_their_weights() -> None:
    loss = weighted_sum([1, 1], terms=TERMS, weights={"dice": 2.0, "jaccard": 0.5})
    # a half everywhere: Dice 1/2, Jaccard 1/3
    assert loss(LOGITS, TARGET).item() == pytest.approx(2 * 0.5 + 0.5 * 2 / 3)


def test_a_term_of_weight_zero_is_not_built() -> None:
    loss = weighted_sum([1, 1], terms=TERMS, weights={"dice": 0, "jaccard": 1})
    assert len(loss.terms) == 1
    assert loss(LOGITS, TARGET).item() == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ({"dise": 1.0}, "no term 'dise'; did you mean 'dice'"),
        ({"dice": -1.0}, "weights.dice=-1.0; expected a number of 0 or more"),
        ({"dice": float("nan")}, "weights.dice=nan"),
        ({"dice": "1"}, "weights.dice=1;"),
        ({"dice": 0.0}, "one weight above 0"),
        ({}, "one weight above 0"),
    ],
)
def test_impossible_weights_are_refused(weights: dict[str, float], said: str) -> None:
    with pytest.raises(InputError, match=said):
        weighted_sum([1, 1], terms=TERMS, weights=weights)
