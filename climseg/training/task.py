"""The Lightning module: one step, one confusion matrix, one contract."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.core.optimizer import LightningOptimizer
from pytorch_lightning.utilities.types import OptimizerLRScheduler
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler
from torchmetrics import MeanMetric
from torchmetrics.classification import MulticlassConfusionMatrix

from climseg.channels import CLASS_ABBREVIATIONS, CLASSES, MISSING_LABEL
from climseg.errors import InputError
from climseg.evaluation.scores import scores_from_confusion
from climseg.models.segmenter import Segmenter
from climseg.samples.dataset import Batch
from climseg.samples.position import epoch_of
from climseg.samples.randomness import derived_seed
from climseg.training.contract import CONTRACT_KEY, Contract
from climseg.training.ddp import HookedDDPStrategy

Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
OptimizerFactory = Callable[[Iterable[nn.Parameter]], Optimizer]
SchedulerFactory = Callable[[Optimizer, int], LRScheduler]


class SegmentationTask(pl.LightningModule):
    """Trains a segmenter and watches it.

    Args:
        segmenter: Images in canonical units (B, C, H, W) to logits (B, K, H, W).
        loss: ``(logits (B, K, H, W), mask (B, H, W) int64) -> scalar``.
        optimizer: Makes the optimiser from the parameters.
        scheduler: Makes the learning-rate schedule from the optimiser and the number of its steps.
        contract: Goes into every checkpoint.
        seed: Of what the network draws while it trains (dropout): each batch of each rank has its own.
        learning_rate_factor: Multiplies the optimiser's learning rates.
        max_steps: Stop after so many optimiser steps, whatever the epoch; None for no such limit. Not the Trainer's
            limit, with which Lightning resumes inexactly at the end of an epoch.
        channels_last: Keep weights and images in the channels-last memory format, which is faster on most devices.
    """

    def __init__(
        self,
        segmenter: Segmenter,
        loss: nn.Module,
        optimizer: OptimizerFactory,
        scheduler: SchedulerFactory,
        contract: Contract,
        seed: int = 0,
        learning_rate_factor: float = 1.0,
        max_steps: int | None = None,
        channels_last: bool = True,
    ) -> None:
        super().__init__()
        self.memory_format = torch.channels_last if channels_last else torch.contiguous_format
        self.segmenter = segmenter.to(memory_format=self.memory_format)
        self.loss = loss
        self.make_optimizer = optimizer
        self.make_scheduler = scheduler
        self.contract = contract
        self.seed = seed
        self.learning_rate_factor = learning_rate_factor
        self.max_steps = max_steps
        # Summed over batches and ranks, divided once per epoch: the IoU of the whole split, not a mean of batch means.
        self.confusion = MulticlassConfusionMatrix(num_classes=len(CLASSES), ignore_index=MISSING_LABEL)
        self.validation_loss = MeanMetric(nan_strategy=math.nan)  # its own default leaves such batches out

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """Logits (B, K, H, W) of images (B, C, H, W)."""
        logits: torch.Tensor = self.segmenter(image.contiguous(memory_format=self.memory_format))
        return logits

    def on_train_start(self) -> None:
        """Do nothing more in a resumed run that is there already."""
        self._stop_after_max_steps()

    def on_train_batch_end(self, outputs: Any, batch: Batch, batch_idx: int) -> None:
        """Stop after the last step."""
        self._stop_after_max_steps()

    def on_train_batch_start(self, batch: Batch, batch_idx: int) -> None:
        """Draw from here on what a run that was never interrupted would draw."""
        torch.manual_seed(derived_seed(self.seed, epoch_of(self.trainer), batch_idx, self.global_rank))

    def training_step(self, batch: Batch, batch_idx: int) -> torch.Tensor:
        """Loss of one batch."""
        loss: torch.Tensor = self.loss(self(batch["image"]), batch["mask"])
        self.log("train/loss", loss, prog_bar=True, batch_size=len(batch["mask"]))
        return loss

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        """Count one batch in the loss and in the confusion matrix, without the samples that only fill it up."""
        logits = self(batch["image"])
        real = self.trainer.datamodule.real_samples(batch_idx)  # type: ignore[attr-defined]
        if real:
            self.validation_loss.update(self.loss(logits[:real], batch["mask"][:real]), real)
            self.confusion.update(logits[:real].argmax(dim=1), batch["mask"][:real])

    def on_validation_epoch_end(self) -> None:
        """Log the IoU of every class, so that a network that calls everything background is seen at once."""
        scores = scores_from_confusion(self.confusion.compute().cpu().numpy())
        self.confusion.reset()
        self.log("val/loss", self.validation_loss.compute(), rank_zero_only=True)
        self.validation_loss.reset()
        for name, iou in zip(CLASS_ABBREVIATIONS, scores.iou, strict=True):
            self.log(f"val/iou_{name.lower()}", float(iou), rank_zero_only=True)
        self.log("val/iou_mean", scores.mean_iou, prog_bar=True)

    def configure_optimizers(self) -> OptimizerLRScheduler:
        """Optimiser and schedule from their factories."""
        optimizer = self.new_optimizer()
        scheduler = self.make_scheduler(optimizer, _total_steps(self.trainer, self.max_steps))
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}

    def new_optimizer(self) -> Optimizer:
        """The optimiser before the first step.

        Raises:
            InputError: It does not take the settings.
        """
        try:
            optimizer = self.make_optimizer(self.segmenter.parameters())
        except ValueError as error:  # torch's optimisers refuse negative rates and the like so
            raise InputError(f"optimizer: {error}.") from error
        for group in optimizer.param_groups:
            group["lr"] *= self.learning_rate_factor
            if group["lr"] > torch.finfo(torch.float32).max:
                raise InputError(
                    f"optimizer: a learning rate of {group['lr']}; expected a number that float32 can hold."
                )
        return optimizer

    def optimizer_step(
        self,
        epoch: int,
        batch_idx: int,
        optimizer: Optimizer | LightningOptimizer,
        optimizer_closure: Callable[[], Any] | None = None,
    ) -> None:
        """Step, unless gradients are lagged and this is the first step, which has none before it."""
        strategy = self.trainer.strategy
        if isinstance(strategy, HookedDDPStrategy) and strategy.lag is not None and strategy.lag.is_empty:
            assert optimizer_closure is not None
            optimizer_closure()
            return
        super().optimizer_step(epoch, batch_idx, optimizer, optimizer_closure)

    def _stop_after_max_steps(self) -> None:
        if self.max_steps is not None and self.trainer.global_step >= self.max_steps:
            self.trainer.should_stop = True

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Put the contract beside the weights, and the lagged gradients if there are any."""
        checkpoint[CONTRACT_KEY] = self.contract.to_dict()
        if isinstance(self.trainer.strategy, HookedDDPStrategy):
            checkpoint.update(self.trainer.strategy.lag_state())

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Take the lagged gradients back."""
        if isinstance(self.trainer.strategy, HookedDDPStrategy):
            self.trainer.strategy.load_lag_state(checkpoint)


def _total_steps(trainer: pl.Trainer, max_steps: int | None) -> int:
    """Optimiser steps of the whole training.

    Not Lightning's estimate where there is a data module: it makes the loaders to count their batches, and a resumed
    run does not yet know then from where on they shall read.
    """
    data = trainer.datamodule  # type: ignore[attr-defined]
    if data is None:  # loaders of their own, as in a benchmark
        return int(trainer.estimated_stepping_batches)
    batches: int = data.batches_per_epoch
    limit = trainer.limit_train_batches
    batches = min(batches, limit) if isinstance(limit, int) else int(batches * limit)
    steps = -(-batches // trainer.accumulate_grad_batches) * max(1, trainer.max_epochs or 1)
    return steps if max_steps is None else min(steps, max_steps)
