"""Scores from one summed confusion matrix.

This is the IoU mode of Kurth et al. 2018 and ClimateNet for whole test sets: all cells of all time steps are counted
in one matrix first, and divided last. It is not comparable with means over samples (DeepCAM's mode).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from climseg.channels import CLASSES


@dataclass(frozen=True)
class ClassScores:
    """Scores (K,) in [0, 1]; NaN where a score has no meaning, because a class is absent from both sides of it."""

    iou: NDArray[np.float64]
    precision: NDArray[np.float64]
    recall: NDArray[np.float64]
    f1: NDArray[np.float64]

    @property
    def mean_iou(self) -> float:
        """Mean IoU over the classes that occur in labels or predictions; absent classes are left out."""
        return float(np.nanmean(self.iou)) if np.isfinite(self.iou).any() else float("nan")


def scores_from_confusion(matrix: NDArray[np.integer[Any]]) -> ClassScores:
    """Scores of every class from a confusion matrix.

    Args:
        matrix: (K, K) counts; rows are the labels, columns the predictions (scikit-learn's and torchmetrics' order).
    """
    counts = np.asarray(matrix, dtype=np.float64)
    hits = np.diag(counts)
    labelled = counts.sum(axis=1)
    predicted = counts.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return ClassScores(
            iou=hits / (labelled + predicted - hits),
            precision=hits / predicted,
            recall=hits / labelled,
            f1=2 * hits / (labelled + predicted),
        )


def score_table(matrix: NDArray[np.integer[Any]]) -> dict[str, Any]:
    """Scores and counts as JSON types: one entry per class, the mean IoU, and the matrix itself; NaN becomes None."""
    scores = scores_from_confusion(matrix)

    def number(value: float) -> float | None:
        return float(value) if np.isfinite(value) else None

    return {
        "iou_mode": "one summed confusion matrix; absent classes are left out of the mean",
        "mean_iou": number(scores.mean_iou),
        "classes": {
            name: {
                "iou": number(scores.iou[k]),
                "precision": number(scores.precision[k]),
                "recall": number(scores.recall[k]),
                "f1": number(scores.f1[k]),
                "labelled_cells": int(matrix[k].sum()),
                "predicted_cells": int(matrix[:, k].sum()),
            }
            for k, name in enumerate(CLASSES)
        },
        "confusion_matrix": np.asarray(matrix).tolist(),
    }
