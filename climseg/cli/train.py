"""``climseg train``: a store to a checkpoint."""

import logging
import os
import sys
from contextlib import nullcontext
from datetime import datetime
from pathlib import Path

import hydra
import pytorch_lightning as pl
import torch
from omegaconf import DictConfig, OmegaConf
from pytorch_lightning.callbacks import Callback, LambdaCallback, LearningRateMonitor, ModelCheckpoint
from pytorch_lightning.loggers import TensorBoardLogger

from climseg.atomic import sole_writer
from climseg.cli.fields import plain
from climseg.cli.training_bar import TrainingBar
from climseg.errors import InputError
from climseg.grid import area_weights
from climseg.samples.data_module import StoreDataModule
from climseg.store.info import StoreInfo
from climseg.training.checkpoint_io import AtomicCheckpointIO
from climseg.training.contract import Contract, contract_for_store, load_checkpoint, segmenter_for_store
from climseg.training.report import EpochReport
from climseg.training.task import SegmentationTask

log = logging.getLogger(__name__)

_RUN_DIR_VARIABLE = "CLIMSEG_RUN_DIR"


def run(configuration: DictConfig) -> None:
    """Instantiate data, network and trainer; fit."""
    info = StoreInfo.read(str(configuration.data.store))
    contract = contract_for_store(info, plain(configuration.model))
    run_dir = _run_dir(configuration)
    last = run_dir / "last.ckpt"
    _check_run_dir(run_dir, last, configuration.resume, contract)
    _check_numbers(configuration)
    # Its hints (other products, settings that are as asked for) help nobody here; Lightning sets the level on import.
    for name in ("pytorch_lightning", "lightning_fabric"):
        logging.getLogger(name).setLevel(logging.ERROR)
    pl.seed_everything(configuration.seed, workers=True, verbose=False)

    data: StoreDataModule = hydra.utils.instantiate(configuration.data)
    task = _task(configuration, info, contract)
    trainer: pl.Trainer = hydra.utils.instantiate(
        configuration.trainer,
        default_root_dir=str(run_dir),
        callbacks=_callbacks(run_dir, configuration),
        plugins=[AtomicCheckpointIO()],
        enable_progress_bar=False,
        logger=TensorBoardLogger(run_dir, name="", version="tensorboard"),
    )
    count = sum(p.numel() for p in task.segmenter.parameters())
    name = contract.network["_target_"].rsplit(".", 1)[-1]
    log.info("%s: %.2f M parameters, %d training samples", name, count / 1e6, len(data.train_samples))
    with sole_writer(run_dir / "run") if _is_first_process() else nullcontext():
        try:
            trainer.fit(task, datamodule=data, ckpt_path=str(last) if last.exists() else None, weights_only=True)
        except SystemExit:
            if trainer.interrupted:  # Lightning ends the process with 1 on Ctrl-C
                raise KeyboardInterrupt from None
            raise
    if trainer.is_global_zero:
        _report(run_dir, last)


def _task(configuration: DictConfig, info: StoreInfo, contract: Contract) -> SegmentationTask:
    """Network, loss, optimiser and schedule, built for a store."""
    loss = hydra.utils.instantiate(configuration.loss, _partial_=True)
    return SegmentationTask(
        segmenter=segmenter_for_store(info, contract.network),
        loss=loss(frequencies=info.frequencies, area_weights=torch.from_numpy(area_weights(info.lat))),
        optimizer=hydra.utils.instantiate(configuration.optimizer),
        scheduler=hydra.utils.instantiate(configuration.scheduler),
        contract=contract,
        channels_last=configuration.channels_last,
    )


def _report(run_dir: Path, last: Path) -> None:
    """Say where the results are; a training without any step is a mistake."""
    best = run_dir / "best.ckpt"
    found = best if best.exists() else last
    if not found.exists():
        raise InputError(f"{run_dir}: nothing was trained, as trainer.limit_train_batches or max_steps left no step.")
    log.info("%s checkpoint: %s", "best" if found == best else "nothing was validated; last", found)
    log.info("table of epochs: %s; curves: tensorboard --logdir %s", run_dir / "metrics.csv", run_dir)


def _check_numbers(configuration: DictConfig) -> None:
    """Refuse what Lightning takes and makes nothing of, or refuses late."""
    if not 0 <= configuration.seed < 2**32:
        raise InputError(f"seed={configuration.seed}: expected 0 to {2**32 - 1}.")
    if configuration.trainer.max_epochs == 0 or configuration.trainer.max_steps == 0:
        raise InputError("trainer.max_epochs and trainer.max_steps must not be 0: that trains nothing.")


def _check_run_dir(run_dir: Path, last: Path, resume: bool, contract: Contract) -> None:
    """Refuse to overwrite a run, and to go on with one of another network or other data."""
    if run_dir.exists() and not run_dir.is_dir():
        raise InputError(f"run_dir={run_dir} is a file; name a folder.")
    if not last.exists():
        if resume:
            log.info("%s holds no run yet; a new one begins", run_dir)
        return
    if not resume:
        if _is_first_process():
            raise InputError(
                f"{run_dir} holds a run already (last.ckpt); choose another run_dir, or go on with it: resume=true."
            )
        return
    before = load_checkpoint(last).contract
    if (before.network, before.channels, before.lat, before.lon) != (
        contract.network,
        contract.channels,
        contract.lat,
        contract.lon,
    ):
        raise InputError(
            f"{run_dir} was trained with another network or store; give the same ones, or another run_dir."
        )


def _run_dir(configuration: DictConfig) -> Path:
    """The folder of the run; every process of one run takes the folder that the first one chose."""
    if configuration.run_dir is not None:
        return Path(str(configuration.run_dir)).absolute()
    chosen = os.environ.setdefault(_RUN_DIR_VARIABLE, f"runs/{datetime.now():%Y-%m-%d_%H-%M-%S}")
    return Path(chosen).absolute()


def _is_first_process() -> bool:
    return os.environ.get("LOCAL_RANK", "0") == "0" and os.environ.get("RANK", "0") == "0"


def _callbacks(run_dir: Path, configuration: DictConfig) -> list[Callback]:
    def save_configuration(trainer: pl.Trainer, task: pl.LightningModule) -> None:
        # Not before everything was built: a mistake must not replace the record of an older run.
        if trainer.is_global_zero:
            OmegaConf.save(configuration, run_dir / "config.yaml", resolve=True)

    bar = [TrainingBar()] if sys.stderr.isatty() and _is_first_process() else []
    return [
        *bar,
        LambdaCallback(on_train_start=save_configuration),
        ModelCheckpoint(run_dir, filename="best", monitor="val/iou_mean", mode="max", enable_version_counter=False),
        # With save_last the callback above would write it only when the best one changes.
        ModelCheckpoint(run_dir, filename="last", save_on_train_epoch_end=True, enable_version_counter=False),
        LearningRateMonitor(logging_interval="step"),
        EpochReport(run_dir / "metrics.csv"),
    ]
