"""Weights against rare classes: a cyclone covers one pixel in a thousand."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import torch
from torch import Tensor

from climseg.errors import InputError, near_matches

SCHEMES: Final[Mapping[str, Callable[[float], float]]] = {
    "inverse_sqrt": lambda frequency: 1 / math.sqrt(frequency),
    "inverse": lambda frequency: 1 / frequency,
    "uniform": lambda frequency: 1.0,
}


def class_weights(frequencies: Sequence[float], scheme: str = "inverse_sqrt") -> Tensor:
    """Return the weight of each class in the loss, (K,) float32 with sum 1.

    ``inverse_sqrt``, w = 1 / sqrt(f), is that of Kurth et al. 2018. ``inverse``, w = 1 / f, gives every class the same
    share of the loss; Kurth et al. found its weights too large for half precision. ``uniform`` weighs all alike.

    A class that never occurs (frequency 0) gets weight 0 and takes no part in the sum: no pixel of it can enter the
    training loss, so that any other number would only make the weights of the others smaller.

    Args:
        frequencies: (K,) shares of the classes among all pixels, or counts: only their ratios matter.
        scheme: inverse_sqrt, inverse or uniform.

    Raises:
        InputError: For an unknown scheme, a negative or undefined frequency, or none above 0.
    """
    if scheme not in SCHEMES:
        near = near_matches(scheme, SCHEMES) or f"; known are {', '.join(SCHEMES)}"
        raise InputError(f"loss: no class weight scheme {scheme!r}{near}")
    if not all(math.isfinite(f) and f >= 0 for f in frequencies) or not any(frequencies):
        raise InputError(f"loss: class frequencies {list(frequencies)} must be 0 or more, and at least one above 0")
    weights = torch.tensor([SCHEMES[scheme](f) if f else 0.0 for f in frequencies], dtype=torch.float64)
    return (weights / weights.sum()).float()
