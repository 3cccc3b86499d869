"""Lightning's Trainer from a configuration: devices, processes, precision, callbacks."""

import os
import sys
from pathlib import Path
from typing import Any

import hydra
import pytorch_lightning as pl
import torch
from lightning_fabric.plugins.environments.cluster_environment import ClusterEnvironment
from lightning_fabric.plugins.environments.lightning import LightningEnvironment
from lightning_fabric.plugins.environments.slurm import SLURMEnvironment
from omegaconf import DictConfig, OmegaConf
from pytorch_lightning.callbacks import Callback, LearningRateMonitor, ModelCheckpoint, WeightAveraging
from pytorch_lightning.loggers import TensorBoardLogger
from pytorch_lightning.plugins import MixedPrecision
from torch.optim.swa_utils import get_ema_multi_avg_fn

from climseg.cli.training_bar import TrainingBar
from climseg.errors import InputError
from climseg.training.checkpoint_io import AtomicCheckpointIO
from climseg.training.ddp import HookedDDPStrategy
from climseg.training.last_checkpoint import LastCheckpoint
from climseg.training.processes import Started, devices_and_nodes
from climseg.training.report import EpochReport


def build_trainer(
    configuration: DictConfig, found: Started, run_dir: Path, times: list[str], callbacks: list[Callback]
) -> pl.Trainer:
    """The Trainer of ``climseg train``.

    Args:
        configuration: Of the command.
        found: The processes that a scheduler started.
        run_dir: Where it writes.
        times: Of the store's time steps.
        callbacks: Further ones.

    Raises:
        InputError: Numbers of devices or processes contradict each other, or a setting has no value that it may have.
    """
    on_gpu = configuration.trainer.accelerator != "cpu" and torch.cuda.is_available()
    asked = OmegaConf.to_container(configuration.trainer)
    assert isinstance(asked, dict)
    devices, nodes = devices_and_nodes(asked["devices"], asked["num_nodes"], found)
    options: dict[str, Any] = {"devices": devices, "num_nodes": nodes}
    strategy = _strategy(configuration, alone=devices in (1, "1") and nodes == 1)
    if strategy is not None:
        options["strategy"] = strategy
    plugins: list[Any] = [AtomicCheckpointIO(), *_environment(found)]
    if configuration.trainer.precision in ("16-mixed", "bf16-mixed"):
        # Given as a plugin, because the word alone makes Lightning take bf16 for 16 on the CPU.
        plugins.append(MixedPrecision(configuration.trainer.precision, "cuda" if on_gpu else "cpu"))
        options["precision"] = None
    return hydra.utils.instantiate(  # type: ignore[no-any-return]
        configuration.trainer,
        **options,
        max_steps=-1,  # the task stops there
        sync_batchnorm=bool(configuration.trainer.get("sync_batchnorm")) and on_gpu,  # there is none for the CPU
        default_root_dir=str(run_dir),
        callbacks=[*_callbacks(configuration, run_dir, times), *callbacks],
        plugins=plugins,
        enable_progress_bar=False,
        use_distributed_sampler=False,  # climseg.samples.order knows of all processes
        logger=TensorBoardLogger(run_dir, name="", version="tensorboard"),
    )


def _strategy(configuration: DictConfig, alone: bool) -> HookedDDPStrategy | None:
    """Our DDP wherever several processes train, and with gradient lag, which is a hook of DDP; None for any other."""
    named = configuration.trainer.strategy
    hooks = [name for name in ("comm_hook", "bucket_megabytes") if configuration[name] is not None]
    if named == "ddp" or (named == "auto" and (not alone or configuration.gradient_lag)):
        return HookedDDPStrategy(configuration.comm_hook, configuration.gradient_lag, configuration.bucket_megabytes)
    hooks += ["gradient_lag"] if configuration.gradient_lag else []
    if hooks:
        raise InputError(
            f"{hooks[0]} needs trainer=ddp, or several trainer.devices; trainer.strategy={named} has none."
        )
    return None


def _environment(found: Started) -> list[ClusterEnvironment]:
    """Who numbers the processes; never by a guess of Lightning's, which takes a shell on a cluster for a job."""
    if found.by == "srun":
        # What the step was started with; the job's own numbers may be others, and Lightning compares with those.
        os.environ["SLURM_NTASKS_PER_NODE"] = str(found.per_node)
        os.environ["SLURM_NNODES"] = str(found.nodes)
        return [SLURMEnvironment(auto_requeue=False)]  # LastCheckpoint does that: Lightning's own hangs at times
    return [] if found.by else [LightningEnvironment()]


def _callbacks(configuration: DictConfig, run_dir: Path, times: list[str]) -> list[Callback]:
    bar = [TrainingBar()] if sys.stderr.isatty() and os.environ.get("LOCAL_RANK", "0") == "0" else []
    decay = configuration.ema_decay
    # Before those that write checkpoints: they then hold the averaged weights. Not EMAWeightAveraging, whose formula
    # also moves what never changes, such as the channels' statistics: 101325 by 0.5 with a decay of 0.999.
    average = (
        [] if decay is None else [WeightAveraging(multi_avg_fn=get_ema_multi_avg_fn(decay))]  # type: ignore[no-untyped-call]
    )
    return [
        *bar,
        *average,
        EpochReport(run_dir / "metrics.csv", times),
        ModelCheckpoint(run_dir, filename="best", monitor="val/iou_mean", mode="max", enable_version_counter=False),
        LearningRateMonitor(logging_interval="step"),
        LastCheckpoint(
            run_dir / "last.ckpt", configuration.checkpoint_every.minutes, configuration.checkpoint_every.steps
        ),
    ]
