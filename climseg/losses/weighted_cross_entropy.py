"""Weighted cross-entropy per pixel, the loss of Kurth et al. 2018."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from climseg.channels import MISSING_LABEL
from climseg.losses.area import as_column, chosen_area_weights
from climseg.losses.class_weights import class_weights
from climseg.losses.precision import at_least_float32


class WeightedCrossEntropy(nn.Module):
    """Mean over pixels of -w[target] log softmax(logits)[target].

    The mean is over all pixels, ignored ones included (they add 0), and not over the sum of weights: so the mean of the
    losses of two ranks is the loss of their whole batch, and a batch full of rare classes counts for more. It is
    computed in float32 whatever the precision of the logits, also under autocast (Kurth et al. 2018).

    Args:
        weights: (K,) weights of the classes.
        area_weights: (H,) relative cell area of each row with mean 1, or None to count all cells alike.
        ignore_index: Target value of pixels without a label.

    Shape:
        logits (B, K, H, W), target (B, H, W) int64 -> scalar float32; 0 with a gradient of 0 if no pixel has a label.
    """

    weights: Tensor
    area_weights: Tensor | None

    def __init__(self, weights: Tensor, area_weights: Tensor | None = None, ignore_index: int = MISSING_LABEL) -> None:
        super().__init__()
        # Not persistent: they follow from the data, and the state dict is the network's alone.
        self.register_buffer("weights", weights.float(), persistent=False)
        self.register_buffer("area_weights", None if area_weights is None else area_weights.float(), persistent=False)
        self.ignore_index = ignore_index

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """Return the loss of logits (B, K, H, W) for a target (B, H, W)."""
        with torch.autocast(logits.device.type, enabled=False):
            loss = F.cross_entropy(  # (B, H, W), 0 where ignored
                at_least_float32(logits), target, self.weights, ignore_index=self.ignore_index, reduction="none"
            )
            if self.area_weights is not None:
                loss = loss * as_column(self.area_weights, target.shape[-2])  # (B, H, W)
            return loss.mean()


def weighted_cross_entropy(
    frequencies: Sequence[float],
    area_weights: Tensor | None = None,
    scheme: str = "inverse_sqrt",
    area_weighted: bool = False,
) -> WeightedCrossEntropy:
    """Build the loss for a data set.

    Args:
        frequencies: (K,) shares of the classes among the pixels trained on.
        area_weights: (H,) relative cell area of each row with mean 1 (climseg.grid.area_weights); only used with
            ``area_weighted``.
        scheme: How weights follow from frequencies: inverse_sqrt, inverse or uniform.
        area_weighted: Whether a cell counts by its area, so that the poles weigh no more than they cover.

    Raises:
        InputError: As climseg.losses.class_weights.class_weights, or if area weights are asked for but missing.
    """
    return WeightedCrossEntropy(class_weights(frequencies, scheme), chosen_area_weights(area_weighted, area_weights))
