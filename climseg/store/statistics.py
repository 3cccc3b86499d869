"""Exact statistics from one pass: moments of single time steps are kept and merged."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from climseg.channels import CLASSES
from climseg.store.info import ChannelStatistics
from climseg.store.packing import Packing, StoredType, packing


@dataclass(frozen=True)
class SampleStatistics:
    """Moments of one time step: cells per channel, mean, sum of squared differences, extrema; cells per class."""

    count: int
    mean: list[float]
    squares: list[float]
    minimum: list[float]
    maximum: list[float]
    class_pixels: list[int]


def sample_statistics(image: NDArray[np.float32], mask: NDArray[np.int8]) -> SampleStatistics:
    """Moments in float64 of an image (channel, lat, lon), and the class counts of its mask (lat, lon).

    float64 matters: in float32, mean(x^2) - mean(x)^2 of surface pressure is 0 or negative, as DeepCAM's own
    statistics file shows.
    """
    channels = image.reshape(image.shape[0], -1)
    mean, squares = [], []
    for channel in channels:  # one by one, because one stays in the processor's cache
        values = channel.astype(np.float64)
        mean.append(float(values.mean()))
        values -= mean[-1]
        squares.append(float(np.square(values, out=values).sum()))
    return SampleStatistics(
        count=channels.shape[1],
        mean=mean,
        squares=squares,
        minimum=channels.min(axis=1).tolist(),
        maximum=channels.max(axis=1).tolist(),
        class_pixels=np.bincount(mask[mask >= 0].ravel(), minlength=len(CLASSES)).tolist(),
    )


def sample_packing(sample: SampleStatistics, dtype: StoredType) -> Packing | None:
    """Scale and offset of a time step's channels, or None where images are stored as they are."""
    return None if dtype == "float32" else packing(sample.minimum, sample.maximum, dtype)


def merge_statistics(samples: Iterable[SampleStatistics]) -> tuple[ChannelStatistics, list[int]]:
    """Moments and class counts of many time steps together.

    The pairwise update of Chan, Golub and LeVeque (1979), which is exact and does not cancel.
    """
    parts = list(samples)
    count = 0
    mean = squares = np.zeros(len(parts[0].mean))
    for part in parts:
        difference = np.array(part.mean) - mean
        total = count + part.count
        squares = squares + np.array(part.squares) + difference**2 * (count * part.count / total)
        mean = mean + difference * (part.count / total)
        count = total
    return (
        ChannelStatistics(
            mean=mean.tolist(),
            std=np.sqrt(squares / count).tolist(),
            minimum=np.min([p.minimum for p in parts], axis=0).tolist(),
            maximum=np.max([p.maximum for p in parts], axis=0).tolist(),
        ),
        np.sum([p.class_pixels for p in parts], axis=0).tolist(),
    )
