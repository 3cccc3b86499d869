"""What a training says: one line per epoch, in the log and in a table, and the batch at which it breaks down."""

import csv
import logging
import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytorch_lightning as pl

from climseg.atomic import atomic_file
from climseg.channels import CLASS_ABBREVIATIONS
from climseg.errors import InputError
from climseg.samples.position import epoch_of

log = logging.getLogger(__name__)

_METRICS = ("val/loss", *(f"val/iou_{c.lower()}" for c in CLASS_ABBREVIATIONS), "val/iou_mean")


class EpochReport(pl.Callback):
    """Logs ``epoch 3/30  loss 0.0123  IoU BG 0.981 TC 0.612 AR 0.720  (12 s)`` after every epoch, on rank 0.

    The same numbers go as a row into a CSV table, which a resumed run continues (Lightning's own begins anew). The
    loss is the mean over the epoch's batches of all ranks; a checkpoint in the middle of an epoch keeps its sum.

    A loss that is not finite stops the training on all ranks, and names the time steps of the batch.

    Args:
        table: The CSV file.
        times: Of the time steps, by their index in the store.
    """

    def __init__(self, table: Path, times: Sequence[str]) -> None:
        self._table = table
        self._times = times
        self._started = time.monotonic()
        self._loss_sum = 0.0
        self._batches = 0

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Take out the rows of epochs that a resumed run does again."""
        self._started = time.monotonic()
        if trainer.is_global_zero and self._table.exists():
            with self._table.open(newline="", encoding="utf-8") as file:
                rows = list(csv.DictReader(file))
            kept = [row for row in rows if int(row["epoch"]) <= epoch_of(trainer)]
            if len(kept) < len(rows):
                with atomic_file(self._table) as partial, partial.open("w", newline="", encoding="utf-8") as file:
                    writer = csv.DictWriter(file, fieldnames=list(rows[0]))
                    writer.writeheader()
                    writer.writerows(kept)

    def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Start the epoch's clock and sum."""
        self._started = time.monotonic()
        self._loss_sum, self._batches = 0.0, 0

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Add the batch's loss."""
        own = outputs["loss"].detach().double() * trainer.accumulate_grad_batches  # Lightning has divided it
        # A not finite loss of any rank makes the sum not finite, so that all ranks stop here.
        loss = float(trainer.strategy.reduce(own.clone(), reduce_op="sum")) / trainer.world_size
        if not math.isfinite(loss):
            raise InputError(self._breakdown(float(own), batch["index"].tolist()))
        self._loss_sum += loss
        self._batches += 1

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Report the epoch."""
        if not trainer.is_global_zero:
            return
        seconds = time.monotonic() - self._started
        loss = self._loss_sum / max(1, self._batches)
        metrics = {"train/loss_epoch": loss} | {
            name: float(trainer.callback_metrics.get(name, float("nan"))) for name in _METRICS
        }
        row = (
            {"epoch": trainer.current_epoch + 1, "step": trainer.global_step} | metrics | {"seconds": round(seconds, 1)}
        )
        new = not self._table.exists()
        with self._table.open("a", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, fieldnames=list(row))
            if new:
                writer.writeheader()
            writer.writerow(row)
        scores = "IoU " + " ".join(f"{c} {metrics[f'val/iou_{c.lower()}']:.3f}" for c in CLASS_ABBREVIATIONS)
        if "val/iou_mean" not in trainer.callback_metrics:
            scores = "not validated"
        last = trainer.max_epochs if trainer.max_epochs and trainer.max_epochs > 0 else "?"
        log.info("epoch %d/%s  loss %.5f  %s  (%.0f s)", row["epoch"], last, loss, scores, seconds)

    def state_dict(self) -> dict[str, Any]:
        """The sum so far, which is the same on all ranks."""
        return {"loss_sum": self._loss_sum, "batches": self._batches}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on with the sum of a checkpoint."""
        self._loss_sum, self._batches = state_dict["loss_sum"], state_dict["batches"]

    def _breakdown(self, own: float, indices: list[int]) -> str:
        mend = "lower optimizer.lr, clip more (trainer.gradient_clip_val), or use trainer.precision=32-true."
        if math.isfinite(own):
            return f"the training loss of another process is not finite; {mend}"
        times = ", ".join(self._times[i] for i in indices)
        return f"the training loss is {own} for the batch of {times}; {mend}"
