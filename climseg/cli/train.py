"""``climseg train``: a store to a checkpoint."""

import logging
import os
import sys
from datetime import datetime
from pathlib import Path

import hydra
import pytorch_lightning as pl
import torch
from omegaconf import DictConfig, OmegaConf
from pytorch_lightning.callbacks import Callback, LearningRateMonitor, ModelCheckpoint, RichProgressBar
from pytorch_lightning.loggers import TensorBoardLogger

from climseg.cli.fields import plain
from climseg.errors import InputError
from climseg.grid import area_weights
from climseg.samples.data_module import StoreDataModule
from climseg.store.info import StoreInfo
from climseg.training.contract import contract_for_store, segmenter_for_store
from climseg.training.report import EpochReport
from climseg.training.task import SegmentationTask

log = logging.getLogger(__name__)

_RUN_DIR_VARIABLE = "CLIMSEG_RUN_DIR"


def run(configuration: DictConfig) -> None:
    """Instantiate data, network and trainer; fit."""
    info = StoreInfo.read(str(configuration.data.store))
    run_dir = _run_dir(configuration)
    last = run_dir / "last.ckpt"
    if last.exists() and not configuration.resume and _is_first_process():
        raise InputError(
            f"{run_dir} holds a run already (last.ckpt); choose another run_dir, or go on with it: resume=true."
        )
    # Its hints (other products, settings that are as asked for) help nobody here; Lightning sets the level on import.
    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
    pl.seed_everything(configuration.seed, workers=True, verbose=False)
    data: StoreDataModule = hydra.utils.instantiate(configuration.data)
    network = plain(configuration.model)
    contract = contract_for_store(info, network)
    task = SegmentationTask(
        segmenter=segmenter_for_store(info, network),
        loss=hydra.utils.instantiate(configuration.loss, _partial_=True)(
            frequencies=info.frequencies, area_weights=torch.from_numpy(area_weights(info.lat))
        ),
        optimizer=hydra.utils.instantiate(configuration.optimizer),
        scheduler=hydra.utils.instantiate(configuration.scheduler),
        contract=contract,
        channels_last=configuration.channels_last,
    )
    run_dir.mkdir(parents=True, exist_ok=True)
    OmegaConf.save(configuration, run_dir / "config.yaml", resolve=True)
    trainer: pl.Trainer = hydra.utils.instantiate(
        configuration.trainer,
        default_root_dir=str(run_dir),
        callbacks=_callbacks(run_dir),
        enable_progress_bar=sys.stderr.isatty(),
        logger=TensorBoardLogger(run_dir, name="", version="tensorboard"),
    )
    count = sum(p.numel() for p in task.segmenter.parameters())
    log.info(
        "%s: %.2f M parameters, %d training steps per epoch",
        network["_target_"].rsplit(".", 1)[-1],
        count / 1e6,
        len(data.train_dataloader()),
    )
    trainer.fit(
        task,
        datamodule=data,
        ckpt_path=str(last) if configuration.resume and last.exists() else None,
        weights_only=True,
    )
    if trainer.interrupted:
        raise KeyboardInterrupt
    if trainer.is_global_zero:
        log.info("best checkpoint: %s", run_dir / "best.ckpt")


def _run_dir(configuration: DictConfig) -> Path:
    """The folder of the run; every process of one run takes the folder that the first one chose."""
    if configuration.run_dir is not None:
        return Path(str(configuration.run_dir)).absolute()
    chosen = os.environ.setdefault(_RUN_DIR_VARIABLE, f"runs/{datetime.now():%Y-%m-%d_%H-%M-%S}")
    return Path(chosen).absolute()


def _is_first_process() -> bool:
    return os.environ.get("LOCAL_RANK", "0") == "0" and os.environ.get("RANK", "0") == "0"


def _callbacks(run_dir: Path) -> list[Callback]:
    callbacks: list[Callback] = [
        ModelCheckpoint(
            run_dir, filename="best", monitor="val/iou_mean", mode="max", save_last=True, enable_version_counter=False
        ),
        LearningRateMonitor(logging_interval="step"),
        EpochReport(run_dir / "metrics.csv"),
    ]
    if sys.stderr.isatty():
        callbacks.append(RichProgressBar())
    return callbacks
