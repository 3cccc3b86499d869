"""Samples of one split of a store.

The samples of a batch are read straight into the batch's own memory, by as many threads as PyTorch uses (in a loader's
worker: one). No file stays open, so none can cross a fork into a worker (pytorch issue 11929).
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final, TypedDict

import torch
from torch.utils.data import Dataset, default_collate

from climseg.errors import InputError
from climseg.samples.memory import batch_memory
from climseg.store.info import StoreInfo, image_chunk, mask_chunk, read_packing, unreadable, wrong_size
from climseg.store.packing import Packing, StoredType
from climseg.store.shard import read_shard

# Bytes that one thread reads at a time.
_PIECE: Final = 8 * 2**20
_MOST_THREADS: Final = 8


class Sample(TypedDict):
    """One time step.

    Attributes:
        image: (C, H, W) float32, canonical units; the network normalises.
        mask: (H, W) int64 class numbers; -1 where no class could be told.
        index: Position of the time step in the store.
    """

    image: torch.Tensor
    mask: torch.Tensor
    index: int


class Batch(TypedDict):
    """Time steps together.

    Attributes:
        image: (B, C, H, W) float32, contiguous.
        mask: (B, H, W) int64, contiguous.
        index: (B,) int64.
    """

    image: torch.Tensor
    mask: torch.Tensor
    index: torch.Tensor


class _Together(list[Sample]):
    """Samples that are views of one batch."""

    def __init__(self, batch: Batch) -> None:
        super().__init__(
            Sample(image=image, mask=mask, index=index)
            for image, mask, index in zip(batch["image"], batch["mask"], batch["index"].tolist(), strict=True)
        )
        self.batch = batch


def collate(samples: Sequence[Sample]) -> Batch:
    """For a DataLoader: the batch that ``StoreSamples`` read at once, without another copy of it."""
    batch: Batch = samples.batch if isinstance(samples, _Together) else default_collate(list(samples))
    return batch


class StoreSamples(Dataset[Sample]):
    """The time steps of one split, in the order of time; of a staged store those that this node holds.

    Args:
        store: The store's folder.
        split: ``train``, ``validation`` or ``test``.

    Raises:
        InputError: No complete store, or the split has no time step.
    """

    def __init__(self, store: str | Path, split: str) -> None:
        self.store = Path(store)
        self.info = StoreInfo.read(self.store)
        self.indices = self.info.indices(split)
        if not self.indices:
            raise InputError(
                f"{store}: the split {split!r} has no time step; choose another split or make a new store."
            )
        shard = read_shard(self.store)
        if shard is not None:
            self.indices = shard.indices[split]
        self._packing = None if self.info.dtype == "float32" else read_packing(self.store, self.info)

    def __len__(self) -> int:
        """Number of time steps."""
        return len(self.indices)

    def __getitem__(self, position: int) -> Sample:
        """Read one time step from the store."""
        return self.__getitems__([position])[0]

    def __getitems__(self, positions: Sequence[int]) -> list[Sample]:
        """Read the time steps of a batch; :func:`collate` hands the batch on as it is.

        Raises:
            InputError: A file of the store is absent, too short or too long.
        """
        indices = [self.indices[position] for position in positions]
        image = batch_memory((len(indices), *self.info.shape), torch.float32)
        if self._packing is None:
            _read_float32(image, [image_chunk(self.store, index) for index in indices])
        else:
            for index, out in zip(indices, image, strict=True):
                _read_packed(out, image_chunk(self.store, index), self.info.dtype, self._packing.at(index))
        mask = batch_memory((len(indices), *self.info.shape[1:]), torch.int64)
        _read_masks(mask, [mask_chunk(self.store, index) for index in indices])
        return _Together(Batch(image=image, mask=mask, index=torch.tensor(indices)))


def _read_float32(images: torch.Tensor, paths: Sequence[Path]) -> None:
    """Fill images (B, C, H, W) from their files."""

    def read(path: Path, whole: memoryview, start: int) -> None:
        with _opened(path, len(whole), 4) as file:
            _fill(file, whole[start : start + _PIECE], start, path)

    buffers = [_bytes_of(image) for image in images]
    pieces = [(p, b, start) for p, b in zip(paths, buffers, strict=True) for start in range(0, len(b), _PIECE)]
    _in_threads(read, pieces)


def _read_packed(image: torch.Tensor, path: Path, dtype: StoredType, how: Packing) -> None:
    """Fill an image (C, H, W) from its file of two-byte numbers, as ``climseg.store.packing`` describes them."""
    stored = torch.empty(image.shape[1:], dtype=getattr(torch, dtype))  # one channel, which stays in the cache
    buffer = _bytes_of(stored)
    with _opened(path, len(buffer) * len(image), 2) as file:
        rows = zip(image, how.scale.tolist(), how.offset.tolist(), strict=True)
        for channel, (values, scale, offset) in enumerate(rows):
            _fill(file, buffer, channel * len(buffer), path)
            values.copy_(stored).mul_(scale).add_(offset)


def _read_masks(masks: torch.Tensor, paths: Sequence[Path]) -> None:
    """Fill masks (B, H, W) int64 from their files of int8."""
    stored = torch.empty(masks.shape[1:], dtype=torch.int8)
    buffer = _bytes_of(stored)
    for mask, path in zip(masks, paths, strict=True):
        with _opened(path, len(buffer), 1) as file:
            _fill(file, buffer, 0, path)
        mask.copy_(stored)


@contextmanager
def _opened(path: Path, size: int, itemsize: int) -> Iterator[int]:
    """A file of a store, opened for reading; refused if it has not this number of bytes."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise unreadable(path, error) from error
    try:
        found = os.fstat(file).st_size
        if found != size:
            raise wrong_size(path, found // itemsize, size // itemsize)
        yield file
    finally:
        os.close(file)


def _fill(file: int, buffer: memoryview, start: int, path: Path) -> None:
    """Fill the buffer with the bytes of a file from ``start`` on; the system may give them in several parts."""
    done = 0
    while done < len(buffer):
        try:
            read = os.preadv(file, [buffer[done:]], start + done)
        except OSError as error:
            raise unreadable(path, error) from error
        if read == 0:
            raise InputError(f"{path}: became shorter while it was read; make the store anew.")
        done += read


def _bytes_of(tensor: torch.Tensor) -> memoryview:
    return tensor.view(torch.uint8).view(-1).numpy().data


def _in_threads(read: Callable[..., None], pieces: Iterable[tuple[Any, ...]]) -> None:
    """Call it for each piece, in as many threads as PyTorch uses for a tensor."""
    threads = min(torch.get_num_threads(), _MOST_THREADS)
    if threads == 1:
        for piece in pieces:
            read(*piece)
    else:
        for _ in _pool(os.getpid(), threads).map(lambda piece: read(*piece), pieces):
            pass


@cache
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    """Threads of this process: those of its parent did not come along when it was forked."""
    return ThreadPoolExecutor(threads, thread_name_prefix="climseg-read")
