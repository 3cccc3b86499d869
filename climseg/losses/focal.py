"""Focal loss: pixels that are right already count little (Lin et al. 2017)."""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from climseg.channels import MISSING_LABEL
from climseg.errors import InputError
from climseg.losses.area import as_column, chosen_area_weights
from climseg.losses.class_weights import class_weights
from climseg.losses.precision import at_least_float32


class FocalLoss(nn.Module):
    """Mean over pixels of -w[target] (1 - p)^gamma log p, with p = softmax(logits)[target].

    Lin et al. 2017 (arXiv:1708.02002), equation 5, for classes that exclude each other. As in WeightedCrossEntropy the
    mean is over all pixels, ignored ones included, so that the mean over ranks is the loss of the whole batch; with
    gamma 0 the two are equal. A class absent from the batch changes nothing: each pixel counts by its own class.

    The FocalLoss of segmentation_models_pytorch 0.6 is not used: for several classes it takes the sigmoid of each logit
    instead of the softmax over classes, which trains another network than the one that predicts, and a batch without
    any valid pixel gives NaN.

    Args:
        weights: (K,) weights of the classes, alpha in the paper.
        gamma: How fast pixels that are right lose weight; 0 or more, 2 in the paper.
        area_weights: (H,) relative cell area of each row with mean 1, or None to count all cells alike.
        ignore_index: Target value of pixels without a label.

    Shape:
        logits (B, K, H, W), target (B, H, W) int64 -> scalar float32; 0 with a gradient of 0 if no pixel has a label.

    Raises:
        InputError: gamma is negative or not a number.
    """

    weights: Tensor
    area_weights: Tensor | None

    def __init__(
        self,
        weights: Tensor,
        gamma: float = 2.0,
        area_weights: Tensor | None = None,
        ignore_index: int = MISSING_LABEL,
    ) -> None:
        super().__init__()
        if not (isinstance(gamma, int | float) and 0 <= gamma < math.inf):
            raise InputError(f"loss: gamma={gamma}; expected a number of 0 or more.")
        self.register_buffer("weights", weights.float(), persistent=False)
        self.register_buffer("area_weights", None if area_weights is None else area_weights.float(), persistent=False)
        self.gamma = gamma
        self.ignore_index = ignore_index

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """Return the loss of logits (B, K, H, W) for a target (B, H, W)."""
        with torch.autocast(logits.device.type, enabled=False):
            logits = at_least_float32(logits)
            entropy = F.cross_entropy(logits, target, ignore_index=self.ignore_index, reduction="none")  # -log p
            # 1 - p without cancellation. The floor keeps the gradient of a power below 1 finite where p is 1.
            wrong = -torch.expm1(-entropy)
            wrong = wrong.clamp_min(torch.finfo(logits.dtype).tiny)
            weights = self.weights.to(logits.dtype)[target.masked_fill(target == self.ignore_index, 0)]
            loss = weights * wrong**self.gamma * entropy  # (B, H, W), 0 where ignored
            if self.area_weights is not None:
                loss = loss * as_column(self.area_weights, target.shape[-2])
            return loss.mean()


def focal(
    frequencies: Sequence[float],
    area_weights: Tensor | None = None,
    gamma: float = 2.0,
    scheme: str = "inverse_sqrt",
    area_weighted: bool = False,
) -> FocalLoss:
    """Build the focal loss for a data set.

    Args:
        frequencies: (K,) shares of the classes among the pixels trained on.
        area_weights: (H,) relative cell area of each row with mean 1; only used with ``area_weighted``.
        gamma: How fast pixels that are right lose weight.
        scheme: How weights follow from frequencies: inverse_sqrt, inverse or uniform.
        area_weighted: Whether a cell counts by its area.

    Raises:
        InputError: As class_weights and FocalLoss, or if area weights are asked for but missing.
    """
    return FocalLoss(class_weights(frequencies, scheme), gamma, chosen_area_weights(area_weighted, area_weights))
