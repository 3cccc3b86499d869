"""How the learning rate follows the global batch."""

import math
from collections.abc import Callable, Mapping
from typing import Final

from climseg.errors import InputError, near_matches

RULES: Final[Mapping[str, Callable[[float], float]]] = {
    "none": lambda ratio: 1.0,
    "linear": lambda ratio: ratio,
    "sqrt": math.sqrt,
}


def scaled_learning_rate(lr: float, global_batch: int, reference_batch: int, rule: str = "none") -> float:
    """Return the learning rate for a global batch, from the one that is right for a reference batch.

    ``linear`` multiplies by global_batch / reference_batch (Goyal et al. 2017, arXiv:1706.02677), which suits SGD after
    a warm-up. ``sqrt`` multiplies by its square root, which keeps the variance of the update (Krizhevsky 2014,
    arXiv:1404.5997) and suits Adam and LAMB (You et al. 2020, arXiv:1904.00962). ``none`` leaves it.

    Args:
        lr: Learning rate at the reference batch, above 0.
        global_batch: Samples of one optimiser step: of all ranks and of all accumulated batches.
        reference_batch: Samples that lr is meant for.
        rule: none, linear or sqrt.

    Raises:
        InputError: An unknown rule, a batch below 1, or a learning rate not above 0.
    """
    if rule not in RULES:
        near = near_matches(str(rule), RULES) or f"; known are {', '.join(RULES)}."
        raise InputError(f"lr_scaling.rule: no rule {rule!r}{near}")
    if not 0 < lr < math.inf:
        raise InputError(f"optimizer: lr={lr}; expected a number above 0.")
    if rule != "none" and not (global_batch >= 1 and reference_batch >= 1):
        raise InputError(
            f"lr_scaling.rule={rule}: global batch {global_batch}, lr_scaling.reference_batch={reference_batch}; "
            "expected 1 sample or more."
        )
    return lr if rule == "none" else lr * RULES[rule](global_batch / reference_batch)
