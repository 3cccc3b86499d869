"""What the machine can do, and how a training gets it."""

import ctypes
import re
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import torch

# Numbers of mallopt(3) in glibc's malloc.h.
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_MAX: Final = -4


def keep_freed_memory() -> bool:
    """Let the C library keep the memory that tensors on the CPU free, for the tensors that come next.

    Every training step makes the same activations anew. By default each large one is mapped from the system and given
    back, and the system fills all of its pages with zeros again in every step: a tenth of the time of a step of
    Tiramisu. Call it once, before the first large tensor. The process then holds the most that it ever needed, and a
    little more, as the free pieces do not always fit.

    Returns:
        Whether the C library can be told so; only that of GNU/Linux can, elsewhere nothing happens.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    return bool(mallopt(_M_MMAP_MAX, 0)) and bool(mallopt(_M_TRIM_THRESHOLD, -1))  # no mapping, no giving back


def matrix_product_peak(device: torch.device, dtype: torch.dtype, size: int, repeats: int = 3) -> float:
    """The speed of the fastest of several large matrix products, FLOP/s: what a network can be measured by.

    float32 on a GPU takes TF32 where convolutions do, which is PyTorch's default.

    Args:
        device: Where.
        dtype: Of both factors and of the product.
        size: Rows and columns of both, n; a product has 2 n^3 operations.
        repeats: How many products are timed, after one that is not.
    """
    left, right = torch.rand(2, size, size, device=device).to(dtype)
    product = torch.empty_like(left)
    seconds = []
    with _tf32_as_convolutions():
        for _ in range(repeats + 1):
            start = now(device)
            torch.mm(left, right, out=product)
            seconds.append(now(device) - start)
    return float(2 * size**3 / min(seconds[1:]))


def now(device: torch.device) -> float:
    """The time in seconds at which all work given to the device is done; only differences mean something."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def peak_memory(device: torch.device) -> int:
    """The most memory that was ever in use, bytes: of this process on the CPU, of its tensors on a GPU."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    status = Path("/proc/self/status")
    if status.exists():  # getrusage's figure counts what the process was before it became this program
        found = re.search(r"^VmHWM:\s+(\d+) kB", status.read_text(), re.MULTILINE)
        if found:
            return int(found[1]) * 1024
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest if sys.platform == "darwin" else largest * 1024


@contextmanager
def _tf32_as_convolutions() -> Iterator[None]:
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before
