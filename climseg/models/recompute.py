"""Activation checkpointing: blocks that are computed twice instead of remembered (Chen et al. 2016)."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils.checkpoint import checkpoint


def recomputed(block: nn.Module, x: Tensor) -> Tensor:
    """Apply a block, keep its input alone, and compute the block again when its gradient is due.

    The gradients are those of ``block(x)``: dropout draws the same values again, and batch normalisation counts the
    batch in its running statistics once.

    Args:
        block: Any module of one tensor.
        x: Its input.
    """
    norms = [module for module in block.modules() if isinstance(module, _BatchNorm)]

    def contexts() -> tuple[AbstractContextManager[Any], AbstractContextManager[Any]]:
        return nullcontext(), _without_counting(norms)

    # Named only where it is needed: torch.compile cannot look through it.
    options: dict[str, Any] = {"context_fn": contexts} if norms else {}
    y: Tensor = checkpoint(block, x, use_reentrant=False, **options)
    return y


@contextmanager
def _without_counting(norms: list[_BatchNorm]) -> Iterator[None]:
    """Leave running statistics and the count of batches as they are.

    By a momentum of 0, not by ``track_running_stats``: what is saved for the gradient must be the same both times.
    """
    before = [(norm.momentum, norm.num_batches_tracked) for norm in norms]
    for norm in norms:
        # A copy, not None, which SyncBatchNorm refuses.
        count = norm.num_batches_tracked
        norm.momentum, norm.num_batches_tracked = 0.0, None if count is None else count.clone()
    try:
        yield
    finally:
        for norm, (momentum, count) in zip(norms, before, strict=True):
            norm.momentum, norm.num_batches_tracked = momentum, count
