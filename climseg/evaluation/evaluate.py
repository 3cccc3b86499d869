"""A network against the labels of a store."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import DataLoader
from torchmetrics.classification import MulticlassConfusionMatrix

from climseg.channels import CLASSES, MISSING_LABEL
from climseg.errors import InputError
from climseg.samples.dataset import StoreSamples, collate
from climseg.store.info import StoreInfo
from climseg.training.contract import Checkpoint, Contract

Progress = Callable[[int, int], None]


def confusion_on_store(
    checkpoint: Checkpoint,
    store: str | Path,
    split: str,
    *,
    batch_size: int = 4,
    device: str = "cpu",
    progress: Progress = lambda done, total: None,
) -> NDArray[np.int64]:
    """Confusion matrix (K, K) over all labelled cells of a split; rows are the labels, columns the predictions.

    Raises:
        InputError: The store does not fit the network, or the split is empty.
    """
    if batch_size < 1:
        raise InputError(f"batch_size={batch_size}: expected at least 1.")
    samples = StoreSamples(store, split)
    positions = _channel_positions(samples.info, checkpoint.contract, str(store))
    segmenter = checkpoint.segmenter.to(device)
    segmenter.periodic = samples.info.periodic
    confusion = MulticlassConfusionMatrix(num_classes=len(CLASSES), ignore_index=MISSING_LABEL).to(device)
    done = 0
    progress(0, len(samples))
    with torch.inference_mode():
        for batch in DataLoader(samples, batch_size=batch_size, collate_fn=collate):
            image = batch["image"][:, positions].to(device).contiguous(memory_format=torch.channels_last)
            confusion.update(segmenter(image).argmax(dim=1), batch["mask"].to(device))
            done += len(image)
            progress(done, len(samples))
    matrix: NDArray[np.int64] = confusion.compute().cpu().numpy().astype(np.int64)
    return matrix


def _channel_positions(info: StoreInfo, contract: Contract, store: str) -> list[int]:
    """Where the network's channels lie in the store's images."""
    missing = [c for c in contract.channels if c not in info.channels]
    if missing:
        raise InputError(f"{store}: has no channel {', '.join(missing)}, which the network needs.")
    positions = [info.channels.index(c) for c in contract.channels]
    for position, units in zip(positions, contract.units, strict=True):
        if info.units[position] != units:
            raise InputError(
                f"{store}: {info.channels[position]} is in {info.units[position]!r}; "
                f"the network was trained with {units!r}."
            )
    return positions
