"""The Lightning module: one step, one confusion matrix, one contract."""

from collections.abc import Callable, Iterable
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.utilities.types import OptimizerLRScheduler
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler
from torchmetrics.classification import MulticlassConfusionMatrix

from climseg.channels import CLASS_ABBREVIATIONS, CLASSES, MISSING_LABEL
from climseg.errors import InputError
from climseg.evaluation.scores import scores_from_confusion
from climseg.models.segmenter import Segmenter
from climseg.samples.dataset import Sample
from climseg.training.contract import CONTRACT_KEY, Contract

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
        channels_last: Keep weights and images in the channels-last memory format, which is faster on most devices.
    """

    def __init__(
        self,
        segmenter: Segmenter,
        loss: nn.Module,
        optimizer: OptimizerFactory,
        scheduler: SchedulerFactory,
        contract: Contract,
        channels_last: bool = True,
    ) -> None:
        super().__init__()
        self.memory_format = torch.channels_last if channels_last else torch.contiguous_format
        self.segmenter = segmenter.to(memory_format=self.memory_format)
        self.loss = loss
        self.make_optimizer = optimizer
        self.make_scheduler = scheduler
        self.contract = contract
        # Summed over batches and ranks, divided once per epoch: the IoU of the whole split, not a mean of batch means.
        self.confusion = MulticlassConfusionMatrix(num_classes=len(CLASSES), ignore_index=MISSING_LABEL)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """Logits (B, K, H, W) of images (B, C, H, W)."""
        logits: torch.Tensor = self.segmenter(image.contiguous(memory_format=self.memory_format))
        return logits

    def training_step(self, batch: Sample, batch_idx: int) -> torch.Tensor:
        """Loss of one batch."""
        loss: torch.Tensor = self.loss(self(batch["image"]), batch["mask"])
        self.log("train/loss", loss, prog_bar=True, on_step=True, on_epoch=True, batch_size=len(batch["mask"]))
        return loss

    def validation_step(self, batch: Sample, batch_idx: int) -> None:
        """Count one batch in the confusion matrix."""
        logits = self(batch["image"])
        self.log("val/loss", self.loss(logits, batch["mask"]), sync_dist=True, batch_size=len(batch["mask"]))
        self.confusion.update(logits.argmax(dim=1), batch["mask"])

    def on_validation_epoch_end(self) -> None:
        """Log the IoU of every class, so that a network that calls everything background is seen at once."""
        scores = scores_from_confusion(self.confusion.compute().cpu().numpy())
        self.confusion.reset()
        for name, iou in zip(CLASS_ABBREVIATIONS, scores.iou, strict=True):
            self.log(f"val/iou_{name.lower()}", float(iou), rank_zero_only=True)
        self.log("val/iou_mean", scores.mean_iou, prog_bar=True)

    def configure_optimizers(self) -> OptimizerLRScheduler:
        """Optimiser and schedule from their factories."""
        try:
            optimizer = self.make_optimizer(self.segmenter.parameters())
        except ValueError as error:  # torch's optimisers refuse negative rates and the like so
            raise InputError(f"optimizer: {error}.") from error
        total_steps = int(self.trainer.estimated_stepping_batches)
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": self.make_scheduler(optimizer, total_steps), "interval": "step"},
        }

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Put the contract beside the weights."""
        checkpoint[CONTRACT_KEY] = self.contract.to_dict()
