"""A weighted sum of losses."""

import math
from collections.abc import Callable, Mapping, Sequence

from torch import Tensor, nn

from climseg.errors import InputError, near_matches

LossFactory = Callable[..., nn.Module]


class WeightedSum(nn.Module):
    """Sum of losses, each times its weight.

    What each term does with ignored pixels, absent classes and half precision, its own docstring says.

    Args:
        terms: Losses ``(logits, target) -> scalar``.
        weights: Their weights.

    Shape:
        logits (B, K, H, W), target (B, H, W) int64 -> scalar float32.
    """

    def __init__(self, terms: Sequence[nn.Module], weights: Sequence[float]) -> None:
        super().__init__()
        self.terms = nn.ModuleList(terms)
        self.weights = tuple(weights)

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """Return the loss of logits (B, K, H, W) for a target (B, H, W)."""
        losses = [weight * term(logits, target) for weight, term in zip(self.weights, self.terms, strict=True)]
        total: Tensor = sum(losses[1:], start=losses[0])
        return total


def weighted_sum(
    frequencies: Sequence[float],
    area_weights: Tensor | None = None,
    *,
    terms: Mapping[str, LossFactory],
    weights: Mapping[str, float],
) -> WeightedSum:
    """Build a sum of losses for a data set.

    Args:
        frequencies: (K,) shares of the classes among the pixels trained on.
        area_weights: (H,) relative cell area of each row; each term decides whether it uses them.
        terms: Factories of losses by name, each ``(frequencies=, area_weights=) -> loss``.
        weights: Weights by the names of terms; a term of weight 0, or without one, is left out.

    Raises:
        InputError: A weight is negative or not a number, or for no term, or all are 0; and what the terms raise.
    """
    for name, weight in weights.items():
        if name not in terms:
            near = near_matches(name, terms) or f"; known are {', '.join(terms)}"
            raise InputError(f"loss: weights.{name}={weight}, but there is no term {name!r}{near}")
        if not (isinstance(weight, int | float) and 0 <= weight < math.inf):
            raise InputError(f"loss: weights.{name}={weight}; expected a number of 0 or more.")
    used = {name: weight for name, weight in weights.items() if weight > 0}
    if not used:
        raise InputError("loss: a weighted sum needs one weight above 0, for example loss.weights.dice=1")
    built = [terms[name](frequencies=frequencies, area_weights=area_weights) for name in used]
    return WeightedSum(built, list(used.values()))
