"""Batches of a store for Lightning."""

from pathlib import Path
from typing import Any

import pytorch_lightning as pl
from torch.utils.data import DataLoader

from climseg.errors import InputError
from climseg.samples.augment import roll_longitudes
from climseg.samples.dataset import Batch, Sample, StoreSamples, collate
from climseg.samples.order import OrderOfTime, Place, ShuffledOrder
from climseg.samples.position import epoch_of, steps_done_in_epoch
from climseg.store.shard import read_shard


class StoreDataModule(pl.LightningDataModule):
    """Loaders over the training and validation splits of a store.

    The Trainer must be made with ``use_distributed_sampler=False``: the orders here know of all processes.

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
        self._nodes = _nodes_of(self.validation_samples)
        self.batch_size = batch_size
        self.workers = workers
        self.roll_longitude = roll_longitude and self.info.periodic
        self.seed = seed
        self._real_samples = len(self.validation_samples)

    @property
    def batches_per_epoch(self) -> int:
        """Training batches of this process in an epoch, the same for all processes."""
        return self._training_order().steps

    def train_dataloader(self) -> DataLoader[Sample]:
        """Shuffled batches, from the batch on at which a resumed run goes on."""
        order = self._training_order()
        if self.trainer is not None:
            order.start_at(epoch_of(self.trainer), steps_done_in_epoch(self.trainer))
        return self._loader(self.train_samples, order, len(order) // order.steps)

    def val_dataloader(self) -> DataLoader[Sample]:
        """Batches in the order of time."""
        place = self._place()
        of_a_node = -(-len(self.info.indices("validation")) // self._nodes)
        order = OrderOfTime(len(self.validation_samples), place, -(-of_a_node // place.processes))
        self._real_samples = order.real
        return self._loader(self.validation_samples, order, self.batch_size)

    def on_after_batch_transfer(self, batch: Batch, dataloader_idx: int) -> Batch:
        """Roll training samples, on the device; the shifts depend on seed, epoch and sample alone."""
        trainer = self.trainer
        if trainer is not None and trainer.training and self.roll_longitude:
            seeds = [(self.seed, epoch_of(trainer), index) for index in batch["index"].tolist()]
            batch["image"], batch["mask"] = roll_longitudes(batch["image"], batch["mask"], seeds)
        return batch

    def real_samples(self, batch_idx: int) -> int:
        """How many samples of a validation batch are this process's own: the others only fill up the last batch."""
        return min(self.batch_size, max(0, self._real_samples - batch_idx * self.batch_size))

    def _training_order(self) -> ShuffledOrder:
        return ShuffledOrder(len(self.train_samples), self.batch_size, self._place(), self.seed)

    def _place(self) -> Place:
        """The place of this process among those that read the same store: all of them, or those of its node."""
        if self.trainer is None:
            return Place()
        rank, processes = self.trainer.global_rank, self.trainer.world_size
        if self._nodes > 1 and self._nodes != self.trainer.num_nodes:
            raise InputError(
                f"{self.train_samples.store} holds the share of one of {self._nodes} nodes, but the training runs on "
                f"{self.trainer.num_nodes}; stage it anew for that number, or train on the whole store."
            )
        if self._nodes == 1:
            return Place(rank, processes)
        # Not by the global rank: srun may deal the ranks out to the nodes in turn.
        return Place(self.trainer.local_rank, processes // self._nodes)

    def _loader(self, samples: StoreSamples, order: Any, batch_size: int) -> DataLoader[Sample]:
        return DataLoader(
            samples,
            batch_size=batch_size,
            sampler=order,
            num_workers=self.workers,
            persistent_workers=self.workers > 0,
            pin_memory=self.trainer is not None and self.trainer.strategy.root_device.type == "cuda",
            collate_fn=collate,
        )


def _nodes_of(validation: StoreSamples) -> int:
    """Over how many nodes the store is dealt out; 1 for a whole one."""
    shard = read_shard(validation.store)
    nodes = 1 if shard is None else shard.nodes
    samples = len(validation.info.indices("validation"))
    if samples < nodes:
        raise InputError(
            f"{validation.store}: {samples} validation samples for {nodes} nodes; expected one for each: stage for "
            f"{samples} nodes, or train on the whole store."
        )
    return nodes
