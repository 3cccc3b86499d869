"""Learning-rate schedules: ``(optimizer, total_steps, ...) -> scheduler``, stepped once per optimiser step.

All begin with a linear warm-up, given as a share of all steps or, if not None, as a number of steps. After the last
step the learning rate stays what it was at the end.
"""

import math
from collections.abc import Callable, Sequence

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from climseg.errors import InputError


def warmup_cosine(
    optimizer: Optimizer,
    total_steps: int,
    warmup_share: float = 0.05,
    final_factor: float = 0.01,
    warmup_steps: int | None = None,
) -> LambdaLR:
    """Linear warm-up, then half a cosine down to a small share of the learning rate (Loshchilov and Hutter 2017).

    Args:
        optimizer: Holds the peak learning rate.
        total_steps: Optimiser steps of the whole training.
        warmup_share: Share of the steps that warm up.
        final_factor: Learning rate at the end, as a share of the peak.
        warmup_steps: Steps that warm up, instead of the share.

    Raises:
        InputError: A share is not within 0 and 1, or the warm-up is longer than the training.
    """
    _check_share("final_factor", final_factor)
    warmup = _warmup(total_steps, warmup_share, warmup_steps)

    def decay(step: int) -> float:
        cosine = 0.5 * (1 + math.cos(math.pi * _progress(step, warmup, total_steps)))
        return final_factor + (1 - final_factor) * cosine

    return _warmed_up(optimizer, warmup, decay)


def warmup_polynomial(
    optimizer: Optimizer,
    total_steps: int,
    warmup_share: float = 0.05,
    power: float = 0.9,
    final_factor: float = 0.01,
    warmup_steps: int | None = None,
) -> LambdaLR:
    """Linear warm-up, then down with a power of the share of steps left, the "poly" policy (Chen et al. 2017).

    Args:
        optimizer: Holds the peak learning rate.
        total_steps: Optimiser steps of the whole training.
        warmup_share: Share of the steps that warm up.
        power: Above 0; 1 is a straight line, 0.9 that of DeepLab (arXiv:1606.00915).
        final_factor: Learning rate at the end, as a share of the peak.
        warmup_steps: Steps that warm up, instead of the share.

    Raises:
        InputError: A share is not within 0 and 1, the power not above 0, or the warm-up longer than the training.
    """
    _check_share("final_factor", final_factor)
    if not (_is_number(power) and 0 < power < math.inf):
        raise InputError(f"scheduler: power={power}; expected a number above 0.")
    warmup = _warmup(total_steps, warmup_share, warmup_steps)

    def decay(step: int) -> float:
        left = 1 - _progress(step, warmup, total_steps)
        return final_factor + (1 - final_factor) * math.pow(left, power)

    return _warmed_up(optimizer, warmup, decay)


def warmup_step(
    optimizer: Optimizer,
    total_steps: int,
    warmup_share: float = 0.05,
    milestones: Sequence[float] = (0.6, 0.85),
    factor: float = 0.1,
    warmup_steps: int | None = None,
) -> LambdaLR:
    """Linear warm-up, then the learning rate times a factor at each milestone, as MLPerf HPC DeepCAM does.

    Args:
        optimizer: Holds the peak learning rate.
        total_steps: Optimiser steps of the whole training.
        warmup_share: Share of the steps that warm up.
        milestones: Steps, warm-up included, or shares of all steps where below 1; rising. One past the end is never
            reached.
        factor: What the learning rate is multiplied by at each, above 0 and up to 1.
        warmup_steps: Steps that warm up, instead of the share.

    Raises:
        InputError: The milestones or the factor are out of range, or the warm-up is longer than the training.
    """
    if not (_is_number(factor) and 0 < factor <= 1):
        raise InputError(f"scheduler: factor={factor}; expected a number above 0 and up to 1.")
    warmup = _warmup(total_steps, warmup_share, warmup_steps)
    at = _milestone_steps(milestones, total_steps)

    def decay(step: int) -> float:
        return float(factor ** sum(step >= milestone for milestone in at))

    return _warmed_up(optimizer, warmup, decay)


def warmup_constant(
    optimizer: Optimizer, total_steps: int, warmup_share: float = 0.05, warmup_steps: int | None = None
) -> LambdaLR:
    """Linear warm-up, then the same learning rate to the end.

    Args:
        optimizer: Holds the learning rate.
        total_steps: Optimiser steps of the whole training.
        warmup_share: Share of the steps that warm up.
        warmup_steps: Steps that warm up, instead of the share.

    Raises:
        InputError: The share is not within 0 and 1, or the warm-up is longer than the training.
    """
    return _warmed_up(optimizer, _warmup(total_steps, warmup_share, warmup_steps), lambda step: 1.0)


def _warmed_up(optimizer: Optimizer, warmup: int, decay: Callable[[int], float]) -> LambdaLR:
    """Scheduler of a linear warm-up to 1 at step ``warmup - 1``, and of ``decay(step)`` from step ``warmup`` on."""

    def factor(step: int) -> float:
        return (step + 1) / warmup if step < warmup else decay(step)

    # A plain function has no state in the scheduler's: a resumed run with more epochs takes its own number of steps.
    return LambdaLR(optimizer, factor)


def _warmup(total_steps: int, share: float, steps: int | None) -> int:
    """Number of warm-up steps, 1 at least: the first step then has the peak rate."""
    if steps is None:
        _check_share("warmup_share", share)
        return max(1, round(total_steps * share))
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 0:
        raise InputError(f"scheduler: warmup_steps={steps}; expected a whole number of 0 or more.")
    if steps > max(1, total_steps):
        raise InputError(
            f"scheduler: warmup_steps={steps}, but the training has {total_steps} steps; give fewer, or warmup_share."
        )
    return max(1, steps)


def _progress(step: int, warmup: int, total_steps: int) -> float:
    """Share of the steps after the warm-up that are done, 1 at the end and ever after."""
    return min(1.0, (step - warmup) / max(1, total_steps - warmup))


def _milestone_steps(milestones: Sequence[float], total_steps: int) -> list[int]:
    """Milestones as steps."""
    given = list(milestones)
    if not all(_is_number(m) and 0 < m < math.inf and (m < 1 or m == int(m)) for m in given):
        raise InputError(f"scheduler: milestones={given}; expected shares above 0 and below 1, or whole steps.")
    steps = [round(m * total_steps) if m < 1 else int(m) for m in given]
    if steps != sorted(steps):
        raise InputError(f"scheduler: milestones={given} are the steps {steps}; expected them to rise.")
    return steps


def _check_share(name: str, value: float) -> None:
    if not (_is_number(value) and 0 <= value <= 1):
        raise InputError(f"scheduler: {name}={value}; expected a share from 0 to 1.")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
