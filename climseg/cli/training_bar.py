"""Progress of a training on the terminal."""

from typing import Any

import pytorch_lightning as pl
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


class TrainingBar(pl.Callback):
    """A bar over the batches of each epoch, gone when the epoch's line is logged."""

    def __init__(self) -> None:
        self._bar = Progress()

    def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Show an empty bar."""
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task(f"epoch {trainer.current_epoch + 1}", total=trainer.num_training_batches)
        self._bar.start()

    def on_train_batch_end(self, *args: Any, **kwargs: Any) -> None:
        """Move on by one batch."""
        self._bar.advance(self._task)

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Take the bar away."""
        self._bar.stop()

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:
        """Leave the terminal as it was."""
        self._bar.stop()
