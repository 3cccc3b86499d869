"""Losses are computed in float32, whatever the precision of the network."""

import torch
from torch import Tensor


def at_least_float32(logits: Tensor) -> Tensor:
    """Return half-precision logits as float32; float32 and float64 (which gradient checks need) as they are.

    Sums over a field of 768 x 1152 cells overflow float16 (65504), and log softmax loses all small probabilities.
    """
    return logits if logits.dtype == torch.float64 else logits.float()
