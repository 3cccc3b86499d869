"""``climseg train``: a store to a checkpoint."""

import logging
import signal
from contextlib import nullcontext
from datetime import datetime
from pathlib import Path

import hydra
import pytorch_lightning as pl
import torch
from omegaconf import DictConfig, OmegaConf
from pytorch_lightning.callbacks import LambdaCallback

from climseg.atomic import sole_writer
from climseg.cli.fields import plain
from climseg.cli.trainer import build_trainer
from climseg.errors import InputError
from climseg.grid import area_weights
from climseg.samples.data_module import StoreDataModule
from climseg.store.info import INFO_FILE, StoreInfo
from climseg.training.contract import Contract, contract_for_store, load_checkpoint, segmenter_for_store
from climseg.training.last_checkpoint import Stopped
from climseg.training.learning_rate import scaled_learning_rate
from climseg.training.machine import keep_freed_memory
from climseg.training.processes import UNFINISHED, Started, requeue, shared_folder, slurm_job, started
from climseg.training.resumable import check_resumable
from climseg.training.task import SegmentationTask

log = logging.getLogger(__name__)

# A terabyte: more than any device holds, and far below where the number of bytes overflows.
_MOST_BUCKET_MEGABYTES = 2**20


def run(configuration: DictConfig) -> None:
    """Instantiate data, network and trainer; fit."""
    found = started()
    keep_freed_memory()
    try:
        run_dir, trainer, task, data = _prepare(configuration, found)
    except InputError:
        if found.rank:  # the first process says it for all
            raise SystemExit(2) from None
        raise
    last = run_dir / "last.ckpt"
    before = last.stat().st_mtime_ns if last.exists() else None
    with sole_writer(run_dir / "run") if found.rank == 0 else nullcontext():
        try:
            trainer.fit(task, datamodule=data, ckpt_path=str(last) if last.exists() else None, weights_only=True)
        except Stopped as stop:
            if found.rank and not found.by:
                # Lightning started this process, and kills the first one within seconds when another code comes.
                raise SystemExit(0) from None
            _say_stopped(stop, run_dir, trainer.is_global_zero)
        except RuntimeError as error:
            if trainer.world_size > 1 and _lost_another(error):
                raise InputError(
                    f"another process of this training ended, so this one cannot go on; see its message, then go on "
                    f"with resume=true run_dir={run_dir}."
                ) from error
            raise
        except SystemExit:
            if trainer.interrupted:  # Lightning ends the process with 1 on Ctrl-C
                raise KeyboardInterrupt from None
            raise
    if trainer.is_global_zero:
        if before is not None and last.stat().st_mtime_ns == before:
            log.info("%s is complete already: %d epochs, %d steps", run_dir, trainer.current_epoch, trainer.global_step)
        _report(run_dir, last)


def _prepare(configuration: DictConfig, found: Started) -> tuple[Path, pl.Trainer, SegmentationTask, StoreDataModule]:
    """Everything before the first step, with every mistake that can be found there."""
    info = StoreInfo.read(str(configuration.data.store))
    contract = contract_for_store(info, plain(configuration.model))
    run_dir = _run_dir(configuration, found)
    _check_run_dir(run_dir, configuration.resume, contract)
    _check_numbers(configuration)
    # Its hints (other products, settings that are as asked for) help nobody here; Lightning sets the level on import.
    for name in ("pytorch_lightning", "lightning_fabric"):
        logging.getLogger(name).setLevel(logging.ERROR)
    pl.seed_everything(configuration.seed, workers=True, verbose=False)

    def save_configuration(trainer: pl.Trainer, task: pl.LightningModule) -> None:
        # Not before everything was built: a mistake must not replace the record of an older run.
        if trainer.is_global_zero:
            OmegaConf.save(configuration, run_dir / "config.yaml", resolve=True)

    data: StoreDataModule = hydra.utils.instantiate(configuration.data)
    record = LambdaCallback(on_train_start=save_configuration)
    trainer = build_trainer(configuration, found, run_dir, info.times, [record])
    task = _task(configuration, info, contract, trainer.world_size)
    if (run_dir / "last.ckpt").exists():
        check_resumable(run_dir / "last.ckpt", task)
    count = sum(p.numel() for p in task.segmenter.parameters())
    name = contract.network["_target_"].rsplit(".", 1)[-1]
    log.info(
        "%s: %.2f M parameters, %d training samples, %d %s",
        name,
        count / 1e6,
        len(data.train_samples),
        trainer.world_size,
        "process" if trainer.world_size == 1 else "processes",
    )
    return run_dir, trainer, task, data


def _task(configuration: DictConfig, info: StoreInfo, contract: Contract, processes: int) -> SegmentationTask:
    """Network, loss, optimiser and schedule, built for a store."""
    loss = hydra.utils.instantiate(configuration.loss, _partial_=True)
    scaling = configuration.lr_scaling
    global_batch = configuration.data.batch_size * processes * configuration.trainer.accumulate_grad_batches
    task = SegmentationTask(
        segmenter=segmenter_for_store(info, contract.network),
        loss=loss(frequencies=info.frequencies, area_weights=torch.from_numpy(area_weights(info.lat))),
        optimizer=hydra.utils.instantiate(configuration.optimizer),
        scheduler=hydra.utils.instantiate(configuration.scheduler),
        contract=contract,
        seed=configuration.seed,
        learning_rate_factor=scaled_learning_rate(1.0, global_batch, scaling.reference_batch, scaling.rule),
        max_steps=configuration.trainer.max_steps if configuration.trainer.max_steps > 0 else None,
        channels_last=configuration.channels_last,
    )
    if configuration.comm_hook == "powersgd":
        task.segmenter.to(memory_format=torch.contiguous_format)  # it takes gradients for matrices row by row
    if configuration.compile:
        task.segmenter.network.compile()
    return task


def _say_stopped(stop: Stopped, run_dir: Path, first: bool) -> None:
    """End with the exit code that tells why: 0 requeued, 75 to be started again, 143 ended from outside (SIGTERM)."""
    asked_early = stop.number == signal.SIGUSR1  # by Slurm, some time before the job's end, or by a user
    job = slurm_job() if asked_early else None
    if job is not None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # which Slurm sends to the tasks of a job that is queued again
    if first:
        log.info("%s; checkpoint: %s", stop, run_dir / "last.ckpt")
        if job is not None:
            requeue(job)
            log.info("Slurm job %s is queued again and will go on from there", job)
        else:
            log.info("to go on: the same command with resume=true run_dir=%s", run_dir)
    if job is None:
        raise SystemExit(UNFINISHED if asked_early else 128 + stop.number)
    raise SystemExit(0)


def _lost_another(error: RuntimeError) -> bool:
    """Whether an error of PyTorch says that the connection to another process broke off; gloo's have no class."""
    return isinstance(error, torch.distributed.DistError) or "gloo/transport" in str(error)


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
    if not 0 <= configuration.data.seed < 2**32:
        raise InputError(f"data.seed={configuration.data.seed}: expected 0 to {2**32 - 1}.")
    batches = configuration.trainer.accumulate_grad_batches
    if batches < 1:
        raise InputError(f"trainer.accumulate_grad_batches={batches}: expected 1 or more.")
    if configuration.trainer.max_epochs == 0 or configuration.trainer.max_steps == 0:
        raise InputError("trainer.max_epochs and trainer.max_steps must not be 0: that trains nothing.")
    if configuration.trainer.max_steps < -1:
        raise InputError(
            f"trainer.max_steps={configuration.trainer.max_steps}: expected 1 or more, or -1 for no limit."
        )
    every = configuration.checkpoint_every
    for name, value in (("minutes", every.minutes), ("steps", every.steps)):
        if value is not None and value <= 0:
            raise InputError(f"checkpoint_every.{name}={value}: expected more than 0, or null for no such limit.")
    megabytes = configuration.bucket_megabytes
    if megabytes is not None and not 0 < megabytes <= _MOST_BUCKET_MEGABYTES:
        raise InputError(
            f"bucket_megabytes={megabytes}: expected more than 0 and at most {_MOST_BUCKET_MEGABYTES}, or null for 25."
        )
    if configuration.ema_decay is not None and not 0 < configuration.ema_decay < 1:
        raise InputError(f"ema_decay={configuration.ema_decay}: expected a share between 0 and 1, such as 0.999.")


def _check_run_dir(run_dir: Path, resume: bool, contract: Contract) -> None:
    """Refuse to overwrite a run, and to go on with one of another network or other data."""
    last = run_dir / "last.ckpt"
    if run_dir.exists() and not run_dir.is_dir():
        raise InputError(f"run_dir={run_dir} is a file; name a folder.")
    if (run_dir / INFO_FILE).exists():
        raise InputError(f"run_dir={run_dir} is a store; name another folder.")
    if not last.exists():
        if resume:
            log.info("%s holds no run yet; a new one begins", run_dir)
        return
    if not resume:
        raise InputError(
            f"{run_dir} holds a run already (last.ckpt); choose another run_dir, or go on with it: resume=true."
        )
    try:
        before = load_checkpoint(last).contract
    except InputError as error:
        raise InputError(f"{error} To begin anew, move it away or choose another run_dir.") from error
    if _weights(before.network) != _weights(contract.network):
        raise InputError(f"{run_dir} was trained with another network; give the same model, or another run_dir.")
    if (before.channels, before.lat, before.lon) != (contract.channels, contract.lat, contract.lon):
        raise InputError(
            f"{run_dir} was trained on another grid or other channels; give its store, or another run_dir."
        )


def _weights(network: dict[str, object]) -> dict[str, object]:
    """The arguments of a network on which its weights depend."""
    return {name: value for name, value in network.items() if name != "checkpoint_activations"}


def _run_dir(configuration: DictConfig, found: Started) -> Path:
    """The folder of the run, the same for all of its processes."""
    if configuration.run_dir is not None:
        return Path(str(configuration.run_dir)).absolute()
    return Path(shared_folder(f"runs/{datetime.now():%Y-%m-%d_%H-%M-%S}", found)).absolute()
