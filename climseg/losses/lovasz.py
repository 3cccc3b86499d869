"""Lovasz-Softmax: the convex extension of the Jaccard loss (Berman et al. 2018)."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from climseg.channels import MISSING_LABEL
from climseg.losses.class_weights import class_weights
from climseg.losses.precision import at_least_float32
from climseg.losses.present import mean_over_present


class LovaszLoss(nn.Module):
    """Mean over classes of the Lovasz extension of 1 - Jaccard index, at the errors |truth - softmax probability|.

    Berman et al. 2018 (arXiv:1705.08790), equations 8 to 11 and algorithm 1, over all labelled pixels of the batch, for
    the classes present in the target (see mean_over_present). The loss of a batch is not the mean of the losses of its
    parts: on several ranks each takes its own samples. A pixel cannot count by its area here.

    The LovaszLoss of segmentation_models_pytorch 0.6 agrees on small fields and is not used: a batch without any valid
    pixel gives an empty tensor (0, K) instead of a scalar, and its gradient is the difference of float32 numbers near
    1, which in fields of millions of pixels comes out as steps of 6e-8 or 0. Here the difference is taken in float64.

    Args:
        weights: (K,) weights of the classes in the mean.
        ignore_index: Target value of pixels without a label.

    Shape:
        logits (B, K, H, W), target (B, H, W) int64 -> scalar float32; 0 with a gradient of 0 if no pixel has a label.
    """

    weights: Tensor

    def __init__(self, weights: Tensor, ignore_index: int = MISSING_LABEL) -> None:
        super().__init__()
        self.register_buffer("weights", weights.float(), persistent=False)
        self.ignore_index = ignore_index

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """Return the loss of logits (B, K, H, W) for a target (B, H, W)."""
        with torch.autocast(logits.device.type, enabled=False):
            probability = at_least_float32(logits).softmax(dim=1).movedim(1, -1)  # (B, H, W, K)
            labelled = target != self.ignore_index
            probability = probability[labelled]  # (P, K)
            truth = target[labelled]  # (P,)
            masks = [truth == k for k in range(probability.shape[1])]
            losses = [_lovasz_extension(probability[:, k], mask) for k, mask in enumerate(masks)]
            present = torch.stack([mask.any() for mask in masks])
            return mean_over_present(torch.stack(losses), present, self.weights)


def _lovasz_extension(probability: Tensor, truth: Tensor) -> Tensor:
    """Lovasz extension of the Jaccard loss of one class: probability (P,) and truth (P,) bool -> scalar."""
    errors = (truth.to(probability.dtype) - probability).abs()
    errors, order = errors.sort(descending=True)
    return (errors * _jaccard_steps(truth[order]).to(errors.dtype)).sum()


def _jaccard_steps(truth: Tensor) -> Tensor:
    """By how much each further wrong pixel raises 1 - Jaccard index: (P,) bool, worst first -> (P,) float64."""
    # 1 - (G - missed) / (G + wrongly found), over one denominator: the wrong pixels so far over the union.
    position = torch.arange(1, len(truth) + 1, device=truth.device, dtype=torch.float64)
    union = truth.sum() + (~truth).cumsum(0)  # int64: exact
    jaccard_loss = position / union
    return torch.diff(jaccard_loss, prepend=jaccard_loss.new_zeros(1))


def lovasz(frequencies: Sequence[float], area_weights: Tensor | None = None, scheme: str = "uniform") -> LovaszLoss:
    """Build the Lovasz-Softmax loss for a data set.

    Args:
        frequencies: (K,) shares of the classes among the pixels trained on.
        area_weights: Not used; every loss is built with them.
        scheme: Weights of the classes in the mean: uniform, inverse_sqrt or inverse.

    Raises:
        InputError: As class_weights.
    """
    return LovaszLoss(class_weights(frequencies, scheme))
