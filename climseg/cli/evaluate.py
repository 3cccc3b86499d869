"""``climseg evaluate``: a network against the labels of a store."""

import logging
from typing import Any

from omegaconf import DictConfig
from rich import box
from rich.console import Console
from rich.table import Table

from climseg.cli.device import choose_device
from climseg.cli.json_file import json_path, write_json
from climseg.cli.progress import progress_bar
from climseg.evaluation.evaluate import confusion_on_store
from climseg.evaluation.scores import score_table
from climseg.training.contract import load_checkpoint

log = logging.getLogger(__name__)


def run(configuration: DictConfig) -> None:
    """Count, score, show, write."""
    checkpoint = load_checkpoint(str(configuration.checkpoint))
    output = json_path(
        configuration.output or checkpoint.path.with_name(f"scores_{configuration.split}.json"), "scores are"
    )
    with progress_bar("time steps") as progress:
        matrix = confusion_on_store(
            checkpoint,
            str(configuration.data.store),
            configuration.split,
            batch_size=configuration.data.batch_size,
            device=choose_device(configuration.device),
            progress=progress,
        )
    scores = {
        "checkpoint": str(checkpoint.path),
        "checkpoint_sha256": checkpoint.sha256,
        "store": str(configuration.data.store),
        "split": configuration.split,
    } | score_table(matrix)
    write_json(output, scores)
    Console().print(_table(scores))
    log.info("scores: %s", output)


def _table(scores: dict[str, Any]) -> Table:
    table = Table(
        title=f"all cells of the split {scores['split']!r} counted together",
        box=box.SIMPLE,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    table.add_column("class", no_wrap=True)
    columns = {
        "iou": "IoU",
        "precision": "precision",
        "recall": "recall",
        "f1": "F1",
        "labelled_cells": "labelled",
        "predicted_cells": "predicted",
    }
    for heading in columns.values():
        table.add_column(heading, justify="right", no_wrap=True)
    for name, row in scores["classes"].items():
        table.add_row(name.replace("_", " "), *(_cell(row[c]) for c in columns))
    table.add_section()
    table.add_row("mean", _cell(scores["mean_iou"]), *[""] * (len(columns) - 1))
    return table


def _cell(value: float | int | None) -> str:
    if value is None:
        return "absent"
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}"
