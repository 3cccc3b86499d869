"""Learning-rate schedules: ``(optimizer, total_steps, ...) -> scheduler``, stepped once per optimiser step."""

import math

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from climseg.errors import InputError


def warmup_cosine(
    optimizer: Optimizer, total_steps: int, warmup_share: float = 0.05, final_factor: float = 0.01
) -> LambdaLR:
    """Linear warm-up, then half a cosine down to a small share of the learning rate (Loshchilov and Hutter 2017).

    Args:
        optimizer: Holds the peak learning rate.
        total_steps: Optimiser steps of the whole training.
        warmup_share: Share of the steps that warm up.
        final_factor: Learning rate at the end, as a share of the peak.

    Raises:
        InputError: A share is not within 0 and 1.
    """
    if not (0 <= warmup_share <= 1 and 0 <= final_factor <= 1):
        raise InputError(
            f"scheduler: warmup_share={warmup_share} final_factor={final_factor}; expected shares from 0 to 1."
        )
    warmup_steps = max(1, round(total_steps * warmup_share))

    def factor(step: int) -> float:
        if step < warmup_steps:
            return (step + 1) / warmup_steps
        progress = min(1.0, (step - warmup_steps) / max(1, total_steps - warmup_steps))
        return final_factor + (1 - final_factor) * 0.5 * (1 + math.cos(math.pi * progress))

    return LambdaLR(optimizer, factor)
