"""How fast a network trains, beside the matrix products of the same machine at the same time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any, Final

import numpy as np
import pytorch_lightning as pl
import torch
from torch import nn
from torch.utils.data import DataLoader
from torch.utils.flop_counter import FlopCounterMode

from climseg.channels import CAM5_CHANNELS, CHANNELS, CLASSES
from climseg.samples.dataset import Sample
from climseg.store.info import ChannelStatistics, StoreInfo
from climseg.training.contract import contract_for_store, segmenter_for_store
from climseg.training.machine import matrix_product_peak, now, peak_memory
from climseg.training.task import OptimizerFactory, SchedulerFactory, SegmentationTask

# Steps that are not timed: one to count operations, one to find memory and kernels.
_WARM_UP: Final = 2
# What the matrix products are made of, by the Trainer's precision.
_PRODUCT_DTYPES: Final[Mapping[str, torch.dtype]] = {
    "32-true": torch.float32,
    "bf16-mixed": torch.bfloat16,
    "16-mixed": torch.float16,
}
PRECISIONS: Final = tuple(_PRODUCT_DTYPES)


@dataclass(frozen=True)
class TrainingSpeed:
    """Timed training steps of one network.

    Attributes:
        device: What it ran on.
        threads: Threads of one process on the CPU.
        parameters: Number of the network's weights.
        batch_size: Samples per step.
        flops: Floating-point operations of the products and convolutions of one step, forward and backward, as
            FlopCounterMode counts them; blocks that are computed twice count twice.
        seconds: Time of each step: from the batch on the host, or the device if that is one, to the new weights.
        peaks: Speed of large matrix products in the precision of the training, FLOP/s: the better of those right before
            and right after each step.
        peak_bytes: The most memory in use beside what was there before training: on the CPU by the process, on a GPU by
            its tensors.
    """

    device: str
    threads: int
    parameters: int
    batch_size: int
    flops: int
    seconds: list[float]
    peaks: list[float]
    peak_bytes: int

    @property
    def samples_per_second(self) -> float:
        """From the median step."""
        return self.batch_size / median(self.seconds)

    @property
    def flops_per_second(self) -> float:
        """From the median step."""
        return self.flops / median(self.seconds)

    @property
    def share(self) -> float:
        """Median over the steps of their speed as a share of the matrix products' beside them."""
        return median(self.flops / s / peak for s, peak in zip(self.seconds, self.peaks, strict=True))


def measure_training(
    network: Mapping[str, Any],
    grid: tuple[Sequence[float], Sequence[float]],
    trainer: Callable[..., pl.Trainer],
    loss: Callable[..., nn.Module],
    optimizer: OptimizerFactory,
    scheduler: SchedulerFactory,
    *,
    precision: str = "32-true",
    channels_last: bool = True,
    batch_size: int = 1,
    repeats: int = 3,
    product_size: int = 4096,
) -> TrainingSpeed:
    """Train a network on a random batch by Lightning's Trainer, as ``climseg train`` does, and time its steps.

    Reading is left out: the batch lies in memory. Normalisation, periodic longitude, loss, clipping, optimiser and
    schedule are those of a training.

    Args:
        network: Configuration of the network, as ``climseg.models.build.build_network`` takes it.
        grid: Latitudes and longitudes of the fields, degrees; the fields have the 16 channels of CAM5.
        trainer: Makes the Trainer; is given precision, number of steps and callbacks.
        loss: Makes the loss from class frequencies and area weights, as in conf/loss.
        optimizer: Makes the optimiser.
        scheduler: Makes the schedule.
        precision: 32-true, bf16-mixed or 16-mixed.
        channels_last: Memory format of images and weights.
        batch_size: Samples per step.
        repeats: Steps that are timed, after two that are not.
        product_size: Rows and columns of the matrices that the steps are compared with.

    Raises:
        InputError: As ``build_network``.
    """
    info = _made_store(grid)
    segmenter = segmenter_for_store(info, network)
    task = SegmentationTask(
        segmenter=segmenter,
        loss=loss(frequencies=info.frequencies, area_weights=torch.ones(len(info.lat))),
        optimizer=optimizer,
        scheduler=scheduler,
        contract=contract_for_store(info, network),
        channels_last=channels_last,
    )
    clock = _Clock(_PRODUCT_DTYPES[precision], product_size)
    steps = _WARM_UP + repeats
    trainer(
        precision=precision,
        max_epochs=1,
        max_steps=steps,
        callbacks=[clock],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
    ).fit(task, DataLoader([_random_batch(info.shape, batch_size)] * steps, batch_size=None))  # type: ignore[arg-type]
    return TrainingSpeed(
        device=torch.cuda.get_device_name(clock.device) if clock.device.type == "cuda" else str(clock.device),
        threads=torch.get_num_threads(),
        parameters=sum(p.numel() for p in segmenter.parameters()),
        batch_size=batch_size,
        flops=clock.counter.get_total_flops(),
        seconds=clock.seconds[_WARM_UP:],
        peaks=[max(before, after) for before, after in pairwise(clock.peaks)],
        peak_bytes=clock.peak_bytes,
    )


class _Clock(pl.Callback):
    """Counts the operations of the first step, and times every step and the matrix products between the last ones."""

    def __init__(self, dtype: torch.dtype, product_size: int) -> None:
        self.dtype = dtype
        self.product_size = product_size
        self.device = torch.device("cpu")
        self.counter = FlopCounterMode(display=False)
        self.seconds: list[float] = []
        self.peaks: list[float] = []
        self.peak_bytes = 0

    def on_train_start(self, trainer: pl.Trainer, task: pl.LightningModule) -> None:
        self.device = task.device
        matrix_product_peak(self.device, self.dtype, self.product_size, repeats=1)  # so that the memory of it is there
        self.bytes_before = peak_memory(self.device)

    def on_train_batch_start(self, trainer: pl.Trainer, task: pl.LightningModule, batch: Any, step: int) -> None:
        if step == 0:
            self.counter.__enter__()  # type: ignore[no-untyped-call]
        self.start = now(self.device)

    def on_train_batch_end(
        self, trainer: pl.Trainer, task: pl.LightningModule, outputs: Any, batch: Any, step: int
    ) -> None:
        self.seconds.append(now(self.device) - self.start)
        if step == 0:
            self.counter.__exit__(None, None, None)  # type: ignore[no-untyped-call]
        self.peak_bytes = peak_memory(self.device) - self.bytes_before
        if step >= _WARM_UP - 1:
            self.peaks.append(matrix_product_peak(self.device, self.dtype, self.product_size))


def _made_store(grid: tuple[Sequence[float], Sequence[float]]) -> StoreInfo:
    """What a store of random fields with the channels of CAM5 would say about itself."""
    lat, lon = (np.asarray(degrees, dtype=float).tolist() for degrees in grid)
    channels = len(CAM5_CHANNELS)
    return StoreInfo(
        channels=list(CAM5_CHANNELS),
        units=[CHANNELS[name].units for name in CAM5_CHANNELS],
        comments={},
        lat=lat,
        lon=lon,
        periodic=True,
        calendar="standard",
        times=["2001-01-01T00:00:00"],
        splits=["train"],
        statistics=ChannelStatistics([0.0] * channels, [1.0] * channels, [-5.0] * channels, [5.0] * channels),
        class_pixels=[982, 1, 17],  # of a thousand, as in Kurth et al. 2018
        labels="random",
        request={},
    )


def _random_batch(shape: tuple[int, int, int], batch_size: int) -> Sample:
    generator = torch.Generator().manual_seed(0)
    mask = torch.randint(len(CLASSES), (batch_size, *shape[1:]), generator=generator)
    return Sample(image=torch.randn(batch_size, *shape, generator=generator), mask=mask, index=0)
