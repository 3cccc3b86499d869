"""How the runs of a sweep ended, and the table of them."""

import csv
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from rich import box
from rich.table import Table

from climseg.atomic import atomic_file
from climseg.channels import CLASS_ABBREVIATIONS

OUTCOME: Final = "outcome.json"  # in the folder of each run: how it ended
DONE, FAILED, STOPPED, PREEMPTED, NOT_BEGUN = "done", "failed", "stopped", "preempted", "not begun"


def read_outcome(folder: Path) -> dict[str, Any]:
    """How a run ended; empty if it did not."""
    file = folder / OUTCOME
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return found


def summary_row(folder: Path, words: str) -> dict[str, Any]:
    """A line of the summary: the epoch of the best mean IoU speaks for a run."""
    outcome = read_outcome(folder)
    row: dict[str, Any] = {"overrides": words, "state": outcome.get("state", NOT_BEGUN), "epochs": 0}
    table = folder / "metrics.csv"
    epochs: list[dict[str, str]] = []
    if table.exists():
        with table.open(newline="", encoding="utf-8") as file:
            epochs = list(csv.DictReader(file))
    row["epochs"] = int(epochs[-1]["epoch"]) if epochs else 0
    # The last line may be cut short where a run was killed.
    validated = [epoch for epoch in epochs if math.isfinite(float(epoch.get("val/iou_mean") or "nan"))]
    best = max(validated, key=lambda epoch: float(epoch["val/iou_mean"]), default={})
    for name in ("mean", *(c.lower() for c in CLASS_ABBREVIATIONS)):
        row[f"iou_{name}"] = best.get(f"val/iou_{name}", "")
    row["last_loss"] = epochs[-1]["train/loss_epoch"] if epochs else ""
    row["minutes"] = round(outcome["seconds"] / 60, 2) if outcome else ""
    row["run_dir"] = str(folder)
    return row


def write_summary(rows: Sequence[dict[str, Any]], output: Path) -> None:
    """Write the rows as CSV."""
    with atomic_file(output) as partial, partial.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def summary_table(rows: Sequence[dict[str, Any]]) -> Table:
    """The rows for the console."""
    table = Table(
        title=f"{len(rows)} runs",
        caption="IoU: of the epoch with the best mean",
        box=box.SIMPLE,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    table.add_column("run", overflow="fold")
    table.add_column("state", no_wrap=True)
    for heading in ("epochs", "IoU", *CLASS_ABBREVIATIONS, "loss", "min"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        scores = [_number(row[f"iou_{name}"], "{:.3f}") for name in ("mean", *(c.lower() for c in CLASS_ABBREVIATIONS))]
        loss, minutes = _number(row["last_loss"], "{:.4f}"), _number(row["minutes"], "{:.1f}")
        table.add_row(row["overrides"], row["state"], str(row["epochs"]), *scores, loss, minutes)
    return table


def _number(value: object, form: str) -> str:
    return "" if value == "" else form.format(float(str(value)))
