"""last.ckpt: written so often that little is lost, and at once when the batch system or a user asks to stop."""

import signal
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, Final

import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import Checkpoint

_ASKS_TO_STOP: Final = (signal.SIGUSR1, signal.SIGTERM)
_Handler = Callable[[int, FrameType | None], Any] | int | None


class Stopped(Exception):  # noqa: N818 - no error
    """A training that was asked to stop and has written its checkpoint.

    Attributes:
        number: The signal that asked.
        step: Optimiser steps done.
    """

    def __init__(self, number: int, step: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name} after {step} steps")
        self.number = number
        self.step = step


class LastCheckpoint(Checkpoint):
    """Writes a checkpoint after every epoch, every so many minutes or steps, and when a signal asks to stop.

    The handler of a signal only notes it: ranks get theirs at different moments. At the end of each optimiser step all
    ranks agree on what to do (one small all-reduce), so that they write together and stop together. Lightning's own
    handlers, which act at once, are kept out while the training runs.

    A checkpoint is written between optimiser steps only, and not after the last batch of an epoch, where the one of
    the epoch follows.

    It must stand behind all other callbacks in the Trainer's list, so that the checkpoint of an epoch holds what they
    know of that epoch, such as the best score so far. A Checkpoint for Lightning, because it moves those to the end.

    Args:
        path: The file.
        minutes: Longest time between two checkpoints, by the clock of rank 0; None for no such limit.
        steps: Optimiser steps between two checkpoints; None for no such limit.

    Raises:
        Stopped: From the training, on every rank.
    """

    def __init__(self, path: Path, minutes: float | None = None, steps: int | None = None) -> None:
        self._path = path
        self._minutes = minutes
        self._steps = steps
        self._asked = 0
        self._written = time.monotonic()
        self._handlers: dict[signal.Signals, _Handler] = {}

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        """Take the signals, so that one that comes before the first step ends the run after that step."""
        self._take_signals()

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Take them again: Lightning has put its own handler before ours since."""
        self._written = time.monotonic()
        self._take_signals()

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Agree whether to write or to stop."""
        loop = trainer.fit_loop
        if loop._should_accumulate() or loop.epoch_loop.batch_progress.is_last_batch:
            return
        due = trainer.is_global_zero and self._is_due(trainer.global_step)
        number, due_anywhere = _largest(trainer, self._asked, int(due))
        if number or due_anywhere:
            self._write(trainer)
        if number:
            raise Stopped(number, trainer.global_step)

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Write the epoch's checkpoint; stop if that was asked for in its last batch or in the validation."""
        self._write(trainer)
        (number,) = _largest(trainer, self._asked)
        if number:
            raise Stopped(number, trainer.global_step)

    def teardown(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        """Give the signals back."""
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._handlers = {}

    def _take_signals(self) -> None:
        for number in _ASKS_TO_STOP:
            before = signal.signal(number, self._note)
            self._handlers.setdefault(number, before)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._asked = max(self._asked, number)  # SIGTERM wins: who ends a job does not want it requeued

    def _is_due(self, step: int) -> bool:
        by_step = self._steps is not None and step % self._steps == 0
        return by_step or (self._minutes is not None and time.monotonic() - self._written >= 60 * self._minutes)

    def _write(self, trainer: pl.Trainer) -> None:
        trainer.save_checkpoint(self._path)
        self._written = time.monotonic()


def _largest(trainer: pl.Trainer, *numbers: int) -> list[int]:
    """The largest of each number over all ranks."""
    if trainer.world_size == 1:
        return list(numbers)
    values = torch.tensor(numbers, device=trainer.strategy.root_device)
    torch.distributed.all_reduce(values, op=torch.distributed.ReduceOp.MAX)
    largest: list[int] = values.tolist()
    return largest
