"""Batches of a store for Lightning."""

from pathlib import Path

import pytorch_lightning as pl
import torch
from torch.utils.data import DataLoader

from climseg.errors import InputError
from climseg.samples.augment import roll_longitudes
from climseg.samples.dataset import Sample, StoreSamples


class StoreDataModule(pl.LightningDataModule):
    """Loaders over the training and validation splits of a store.

    Args:
        store: The store's folder.
        batch_size: Samples per step and process.
        workers: Loader processes; 0 reads in the training process, which is fastest for small samples.
        roll_longitude: Turn every training sample by a random number of columns. Ignored on grids that do not close.
        seed: Of the order of samples and of the rolls.
    """

    def __init__(
        self, store: str | Path, batch_size: int = 4, workers: int = 0, roll_longitude: bool = True, seed: int = 0
    ) -> None:
        super().__init__()
        if batch_size < 1 or workers < 0:
            raise InputError(f"data: batch_size={batch_size}, workers={workers}; expected at least 1 and 0.")
        self.train_samples = StoreSamples(store, "train")
        self.validation_samples = StoreSamples(store, "validation")
        self.info = self.train_samples.info
        self.batch_size = batch_size
        self.workers = workers
        self.roll_longitude = roll_longitude and self.info.periodic
        self.seed = seed

    def train_dataloader(self) -> DataLoader[Sample]:
        """Shuffled batches; the last, smaller one is dropped unless it is the only one, so that ranks stay in step."""
        return DataLoader(
            self.train_samples,
            batch_size=self.batch_size,
            shuffle=True,
            drop_last=len(self.train_samples) >= self.batch_size,
            num_workers=self.workers,
            pin_memory=torch.cuda.is_available(),
            generator=torch.Generator().manual_seed(self.seed),
        )

    def val_dataloader(self) -> DataLoader[Sample]:
        """Batches in the order of time."""
        return DataLoader(
            self.validation_samples,
            batch_size=self.batch_size,
            num_workers=self.workers,
            pin_memory=torch.cuda.is_available(),
        )

    def on_after_batch_transfer(self, batch: Sample, dataloader_idx: int) -> Sample:
        """Roll training batches on the device; the shifts depend on seed, step and rank alone."""
        trainer = self.trainer
        if trainer is not None and trainer.training and self.roll_longitude:
            step = trainer.global_step * trainer.world_size + trainer.global_rank
            generator = torch.Generator().manual_seed(self.seed * 1_000_003 + step)
            batch["image"], batch["mask"] = roll_longitudes(batch["image"], batch["mask"], generator)
        return batch
