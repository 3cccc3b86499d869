"""Overlap losses: Jaccard, Dice and focal Tversky are one formula with three sets of weights."""

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
from climseg.losses.present import mean_over_present


class OverlapLoss(nn.Module):
    """Mean over classes of (1 - T)^(1/gamma) with the Tversky index T = TP / (TP + a FP + b FN).

    TP, FP and FN are sums of softmax probabilities over all labelled pixels of the batch (Salehi et al. 2017,
    arXiv:1706.05721, whose alpha is a and beta is b). a = b = 1 is the Jaccard index, a = b = 1/2 the Dice coefficient
    (Milletari et al. 2016, arXiv:1606.04797, with plain sums in the denominator instead of sums of squares), and gamma
    above 1 the focal Tversky loss (Abraham and Khan 2019, arXiv:1810.07842, whose alpha is b and beta is a).

    The mean is over classes present in the target, see mean_over_present. The loss of a batch is not the mean of the
    losses of its parts: on several ranks each takes the overlap of its own samples.

    The losses of segmentation_models_pytorch 0.6 equal these where all classes are present, and are not used because
    an absent class enters their mean as 0, so that a batch of background alone has a third of the loss; TverskyLoss
    raises the mean over classes to gamma, not each class, which also makes the gradient of a batch without any valid
    pixel NaN for powers below 1; and half-precision sums overflow.

    Args:
        weights: (K,) weights of the classes in the mean.
        false_positives: a, 0 or more.
        false_negatives: b, above 0.
        gamma: Above 1 it raises the share of classes that are nearly right; 1 or more.
        area_weights: (H,) relative cell area of each row, or None to count all cells alike.
        ignore_index: Target value of pixels without a label.

    Shape:
        logits (B, K, H, W), target (B, H, W) int64 -> scalar float32; 0 with a gradient of 0 if no pixel has a label.

    Raises:
        InputError: An option is out of its range.
    """

    weights: Tensor
    area_weights: Tensor | None

    def __init__(
        self,
        weights: Tensor,
        false_positives: float,
        false_negatives: float,
        gamma: float = 1.0,
        area_weights: Tensor | None = None,
        ignore_index: int = MISSING_LABEL,
    ) -> None:
        super().__init__()
        # With b = 0 an index of 0 / 0 is possible: a class that is there, and nowhere found.
        if not (0 <= false_positives < math.inf and 0 < false_negatives < math.inf):
            raise InputError(
                f"loss: false_positives={false_positives} false_negatives={false_negatives}; expected a number of 0 or "
                "more, and one above 0."
            )
        if not 1 <= gamma < math.inf:
            raise InputError(f"loss: gamma={gamma}; expected a number of 1 or more.")
        self.register_buffer("weights", weights.float(), persistent=False)
        self.register_buffer("area_weights", None if area_weights is None else area_weights.float(), persistent=False)
        self.false_positives = false_positives
        self.false_negatives = false_negatives
        self.gamma = gamma
        self.ignore_index = ignore_index

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """Return the loss of logits (B, K, H, W) for a target (B, H, W)."""
        with torch.autocast(logits.device.type, enabled=False):
            probability = at_least_float32(logits).softmax(dim=1)  # (B, K, H, W)
            cells = self._cells(target, probability.dtype)  # (B, 1, H, W)
            truth = _one_hot(target, self.ignore_index, probability.shape[1]) * cells  # (B, K, H, W)
            dims = (0, 2, 3)
            count = truth.sum(dims)  # (K,)
            hits = (probability * truth).sum(dims)
            missed = ((1 - probability) * truth).sum(dims)
            wrong = (probability * (cells - truth)).sum(dims)
            # 1 - T without cancellation
            errors = self.false_positives * wrong + self.false_negatives * missed
            present = count > 0
            losses = _power(errors / torch.where(present, hits + errors, 1.0), 1 / self.gamma)
            return mean_over_present(losses, present, self.weights)

    def _cells(self, target: Tensor, dtype: torch.dtype) -> Tensor:
        """How much each cell counts, (B, 1, H, W): 0 if ignored."""
        cells = (target != self.ignore_index)[:, None].to(dtype)
        if self.area_weights is None:
            return cells
        return cells * as_column(self.area_weights, target.shape[-2]).to(dtype)


def _one_hot(target: Tensor, ignore_index: int, classes: int) -> Tensor:
    """Target (B, H, W) as (B, K, H, W) int64; ignored pixels as class 0 (their cells count nothing)."""
    return F.one_hot(target.masked_fill(target == ignore_index, 0), classes).movedim(-1, 1)


def _power(values: Tensor, exponent: float) -> Tensor:
    """Return values >= 0 to a power, with gradient 0 at 0: of a power below 1 it would be infinite there."""
    if exponent == 1:
        return values
    positive = values > 0
    return torch.where(positive, torch.where(positive, values, 1.0) ** exponent, 0.0)


def jaccard(
    frequencies: Sequence[float],
    area_weights: Tensor | None = None,
    scheme: str = "uniform",
    area_weighted: bool = False,
) -> OverlapLoss:
    """Build 1 - soft Jaccard index (intersection over union) for a data set.

    Args:
        frequencies: (K,) shares of the classes among the pixels trained on.
        area_weights: (H,) relative cell area of each row; only used with ``area_weighted``.
        scheme: Weights of the classes in the mean: uniform, inverse_sqrt or inverse.
        area_weighted: Whether a cell counts by its area.

    Raises:
        InputError: As class_weights, or if area weights are asked for but missing.
    """
    chosen = chosen_area_weights(area_weighted, area_weights)
    return OverlapLoss(class_weights(frequencies, scheme), 1.0, 1.0, area_weights=chosen)


def dice(
    frequencies: Sequence[float],
    area_weights: Tensor | None = None,
    scheme: str = "uniform",
    area_weighted: bool = False,
) -> OverlapLoss:
    """Build 1 - soft Dice coefficient (Milletari et al. 2016) for a data set; arguments and errors as jaccard."""
    chosen = chosen_area_weights(area_weighted, area_weights)
    return OverlapLoss(class_weights(frequencies, scheme), 0.5, 0.5, area_weights=chosen)


def focal_tversky(
    frequencies: Sequence[float],
    area_weights: Tensor | None = None,
    false_positives: float = 0.3,
    false_negatives: float = 0.7,
    gamma: float = 4 / 3,
    scheme: str = "uniform",
    area_weighted: bool = False,
) -> OverlapLoss:
    """Build the focal Tversky loss for a data set; its defaults are the best of Abraham and Khan 2019.

    Args:
        frequencies: (K,) shares of the classes among the pixels trained on.
        area_weights: (H,) relative cell area of each row; only used with ``area_weighted``.
        false_positives: Weight of false positives, the paper's beta.
        false_negatives: Weight of false negatives, the paper's alpha; larger finds more of a rare class.
        gamma: The paper's gamma; 1 is the Tversky loss of Salehi et al. 2017.
        scheme: Weights of the classes in the mean: uniform, inverse_sqrt or inverse.
        area_weighted: Whether a cell counts by its area.

    Raises:
        InputError: As class_weights and OverlapLoss, or if area weights are asked for but missing.
    """
    chosen = chosen_area_weights(area_weighted, area_weights)
    return OverlapLoss(class_weights(frequencies, scheme), false_positives, false_negatives, gamma, chosen)
