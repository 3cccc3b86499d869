"""The mean of a loss per class over the classes that a batch holds."""

import torch
from torch import Tensor


def mean_over_present(losses: Tensor, present: Tensor, weights: Tensor) -> Tensor:
    """Return the weighted mean of losses (K,) over the classes that are present (K,) bool; 0 if none is.

    Overlap is not defined for a class without any pixel in the target. Such a class takes no part, nor does its weight:
    pixels wrongly called by its name count as missed in the class that they belong to.
    """
    share = weights.to(losses.dtype) * present  # (K,)
    # A class of weight 0 may be the only one of a batch (it never occurs in training, but does in validation).
    return (losses * share).sum() / share.sum().clamp_min(torch.finfo(losses.dtype).tiny)
