"""Samples of one split of a store."""

from pathlib import Path
from typing import TypedDict

import torch
from torch.utils.data import Dataset

from climseg.errors import InputError
from climseg.store.info import StoreInfo, read_image, read_mask


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
    """Time steps, as the loader puts them together: image (B, C, H, W), mask (B, H, W), index (B,) int64."""

    image: torch.Tensor
    mask: torch.Tensor
    index: torch.Tensor


class StoreSamples(Dataset[Sample]):
    """The time steps of one split, in the order of time.

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

    def __len__(self) -> int:
        """Number of time steps."""
        return len(self.indices)

    def __getitem__(self, position: int) -> Sample:
        """Read one time step from the store."""
        index = self.indices[position]
        return Sample(
            image=torch.from_numpy(read_image(self.store, self.info, index)),
            mask=torch.from_numpy(read_mask(self.store, self.info, index)).long(),
            index=index,
        )
