"""Memory for batches.

A sample of 768 x 1152 x 16 takes 57 MB. Fresh memory of that size comes from the kernel page by page, each filled with
zeros first, which takes about a third of the time of reading a sample from the page cache. So the memory of a batch is
taken again when the last tensor on it is gone, and never before: a batch that somebody holds does not change.
"""

import weakref
from collections import deque
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import get_worker_info

# Images and masks of two batches.
_KEPT: Final = 4

_free: deque[NDArray[np.uint8]] = deque(maxlen=_KEPT)


def batch_memory(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """A contiguous tensor of any content, that the caller fills.

    In a loader's worker it lies in shared memory, from which the training process takes it without a copy.
    """
    size = int(np.prod(shape)) * dtype.itemsize
    if get_worker_info() is not None:
        storage = torch.UntypedStorage._new_shared(size)  # type: ignore[no-untyped-call]
        return torch.empty(0, dtype=dtype).set_(storage, 0, shape)  # type: ignore[call-overload,no-any-return]
    block = _freed(size)
    if block is None:
        block = np.empty(size, np.uint8)
    # The tensor holds this view, not the block, so that the end of the view is the end of all tensors on it.
    view = block[:]
    weakref.finalize(view, _free.append, block).atexit = False
    return torch.from_numpy(view).view(dtype).view(shape)


def _freed(size: int) -> NDArray[np.uint8] | None:
    # Only steps that cannot be interrupted: batches also end in other threads.
    for _ in range(_KEPT):
        try:
            block = _free.popleft()
        except IndexError:
            return None
        if block.size == size:
            return block
        _free.append(block)
    return None
