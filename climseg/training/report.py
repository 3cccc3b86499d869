"""One line per epoch: loss and the IoU of every class."""

import logging
import time

import pytorch_lightning as pl

from climseg.channels import CLASS_ABBREVIATIONS

log = logging.getLogger(__name__)


class EpochReport(pl.Callback):
    """Logs ``epoch 3/30  loss 0.0123  IoU BG 0.98 TC 0.61 AR 0.72`` after every validation, on rank 0."""

    def __init__(self) -> None:
        self._started = time.monotonic()

    def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Start the epoch's clock."""
        self._started = time.monotonic()

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Report the epoch."""
        if not trainer.is_global_zero:
            return
        values = trainer.callback_metrics
        scores = " ".join(
            f"{name} {float(values[key]):.3f}"
            for name in CLASS_ABBREVIATIONS
            if (key := f"val/iou_{name.lower()}") in values
        )
        log.info(
            "epoch %d/%s  loss %.5f  IoU %s  (%.0f s)",
            trainer.current_epoch + 1,
            trainer.max_epochs if trainer.max_epochs and trainer.max_epochs > 0 else "?",
            float(values.get("train/loss_epoch", float("nan"))),
            scores,
            time.monotonic() - self._started,
        )
