"""One line per epoch, in the log and in a table: loss and the IoU of every class."""

import csv
import logging
import math
import time
from pathlib import Path

import pytorch_lightning as pl

from climseg.channels import CLASS_ABBREVIATIONS
from climseg.errors import InputError

log = logging.getLogger(__name__)

_METRICS = ("train/loss_epoch", "val/loss", *(f"val/iou_{c.lower()}" for c in CLASS_ABBREVIATIONS), "val/iou_mean")


class EpochReport(pl.Callback):
    """Logs ``epoch 3/30  loss 0.0123  IoU BG 0.981 TC 0.612 AR 0.720  (12 s)`` after every epoch, on rank 0.

    The same numbers go as a row into a CSV table, which a resumed run continues (Lightning's own begins anew). A loss
    that is not finite stops the training.

    Args:
        table: The CSV file.
    """

    def __init__(self, table: Path) -> None:
        self._table = table
        self._started = time.monotonic()

    def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Start the epoch's clock."""
        self._started = time.monotonic()

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Report the epoch."""
        loss = float(trainer.callback_metrics.get("train/loss_epoch", 0.0))
        if not math.isfinite(loss):
            raise InputError(
                f"the training loss is {loss} in epoch {trainer.current_epoch + 1}; lower optimizer.lr, or use "
                "trainer.precision=32-true."
            )
        if not trainer.is_global_zero:
            return
        seconds = time.monotonic() - self._started
        metrics = {name: float(trainer.callback_metrics.get(name, float("nan"))) for name in _METRICS}
        row = (
            {"epoch": trainer.current_epoch + 1, "step": trainer.global_step} | metrics | {"seconds": round(seconds, 1)}
        )
        new = not self._table.exists()
        with self._table.open("a", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, fieldnames=list(row))
            if new:
                writer.writeheader()
            writer.writerow(row)
        scores = " ".join(f"{c} {metrics[f'val/iou_{c.lower()}']:.3f}" for c in CLASS_ABBREVIATIONS)
        last = trainer.max_epochs if trainer.max_epochs and trainer.max_epochs > 0 else "?"
        log.info("epoch %d/%s  loss %.5f  IoU %s  (%.0f s)", row["epoch"], last, metrics[_METRICS[0]], scores, seconds)
