"""``what=train``: the training step of networks, as the Trainer runs it, beside matrix products."""

import logging
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing import get_context
from statistics import median
from typing import Any

import hydra
from lightning_fabric.utilities.exceptions import MisconfigurationException
from omegaconf import DictConfig, OmegaConf
from rich import box
from rich.console import Console
from rich.table import Table

from climseg.cli.benchmarks.grid import global_grid
from climseg.cli.configuration import conf_folder, group_choices
from climseg.cli.fields import plain
from climseg.cli.progress import progress_bar
from climseg.errors import InputError, near_matches
from climseg.training.benchmark import PRECISIONS, TrainingSpeed, measure_training
from climseg.training.machine import keep_freed_memory


def run(configuration: DictConfig) -> dict[str, Any]:
    """Train each network in each precision for a few steps, show."""
    asked = configuration.train
    for key, value in (
        ("repeats", configuration.repeats),
        *((f"train.{k}", asked[k]) for k in ("batch_size", "product")),
    ):
        if not isinstance(value, int) or value < 1:
            raise InputError(f"{key}={value}: expected a whole number, at least 1.")
    for key, known in (("models", group_choices()["model"]), ("precisions", PRECISIONS)):
        for name in asked[key]:
            if name not in known:
                near = near_matches(str(name), known) or f"; known are {', '.join(known)}"
                raise InputError(f"train.{key}: no {name!r}{near}")
    grid = global_grid(configuration.grid)
    measure = partial(
        measure_training,
        grid=grid,
        trainer=hydra.utils.instantiate(configuration.trainer, _partial_=True),
        loss=hydra.utils.instantiate(configuration.loss, _partial_=True),
        optimizer=hydra.utils.instantiate(configuration.optimizer),
        scheduler=hydra.utils.instantiate(configuration.scheduler),
        channels_last=asked.channels_last,
        batch_size=asked.batch_size,
        repeats=configuration.repeats,
        product_size=asked.product,
    )
    runs = [(str(model), str(precision)) for model in asked.models for precision in asked.precisions]
    found: dict[tuple[str, str], TrainingSpeed] = {}
    with progress_bar("training") as progress:
        for done, (model, precision) in enumerate(runs):
            progress(done, len(runs))
            network = plain(DictConfig(OmegaConf.load(conf_folder() / "model" / f"{model}.yaml")))
            found[model, precision] = _in_a_new_process(
                partial(measure, network, precision=precision), model, precision
            )
        progress(len(runs), len(runs))
    figures = {
        "grid": [len(axis) for axis in grid],
        "batch_size": asked.batch_size,
        "runs": [_figures(model, precision, speed) for (model, precision), speed in found.items()],
    }
    Console().print(_table(figures))
    return figures


def _in_a_new_process(measure: Callable[[], TrainingSpeed], model: str, precision: str) -> TrainingSpeed:
    """Measure where no other network has left its memory behind."""
    with ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn")) as process:
        try:
            return process.submit(_measure, measure).result()
        except BrokenProcessPool as error:
            raise InputError(
                f"train.models={model} in {precision}: the process was ended by the system, most often for want of "
                "memory; take a smaller grid."
            ) from error


def _measure(measure: Callable[[], TrainingSpeed]) -> TrainingSpeed:
    keep_freed_memory()
    for name in ("pytorch_lightning", "lightning_fabric"):  # their hints help nobody here
        logging.getLogger(name).setLevel(logging.ERROR)
        warnings.filterwarnings("ignore", module=name)
    try:
        return measure()
    except MisconfigurationException as error:  # a device that is absent
        raise InputError(f"trainer: {error}") from error


def _figures(model: str, precision: str, speed: TrainingSpeed) -> dict[str, Any]:
    return {
        "model": model,
        "precision": precision,
        "device": speed.device,
        "threads": speed.threads,
        "parameters": speed.parameters,
        "teraflop_per_step": speed.flops / 1e12,
        "seconds": speed.seconds,
        "median_seconds": median(speed.seconds),
        "samples_per_second": speed.samples_per_second,
        "teraflops": speed.flops_per_second / 1e12,
        "matrix_product_teraflops": [peak / 1e12 for peak in speed.peaks],
        "share_of_matrix_products": speed.share,
        "peak_megabytes": speed.peak_bytes / 1e6,
    }


def _table(figures: dict[str, Any]) -> Table:
    rows, columns = figures["grid"]
    first = figures["runs"][0]
    where = f"{first['threads']} threads of the CPU" if first["device"] == "cpu" else first["device"]
    table = Table(
        title=f"one training step of {figures['batch_size']} x 16 x {rows} x {columns} on {where}",
        caption="share: of the speed of matrix products in the same precision between the steps",
        box=box.SIMPLE,
        pad_edge=False,
    )
    table.add_column("model", no_wrap=True)
    table.add_column("precision", no_wrap=True)
    for heading in ("seconds", "samples/s", "TFLOP/s", "share", "memory, MB"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in figures["runs"]:
        table.add_row(
            row["model"],
            row["precision"],
            f"{row['median_seconds']:.3f}",
            f"{row['samples_per_second']:.3g}",
            f"{row['teraflops']:.3g}",
            f"{row['share_of_matrix_products']:.0%}",
            f"{row['peak_megabytes']:.0f}",
        )
    return table
