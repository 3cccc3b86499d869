"""``climseg prepare``: files to a store."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hydra
import xarray as xr
from omegaconf import DictConfig
from rich import box
from rich.console import Console
from rich.filesize import decimal
from rich.table import Table

from climseg.canonical import iso_times
from climseg.channels import CHANNELS, CLASSES
from climseg.cli.fields import input_paths, open_input, plain
from climseg.cli.progress import progress_bar
from climseg.labels.needs import needs_of
from climseg.sources.netcdf import files_kept_open
from climseg.sources.paths import input_manifest
from climseg.store.splits import split_by_time
from climseg.store.writer import StorePlan, plan_store, write_store

log = logging.getLogger(__name__)


def run(configuration: DictConfig) -> None:
    """Open, label, split, write; or only say what would be written."""
    paths = input_paths(configuration.input)
    labels = hydra.utils.instantiate(configuration.labels)
    fields, channels = _open(configuration, paths, labels)
    masks = labels(fields)

    shares = plain(configuration.splits)
    block_days, gap_hours = shares.pop("block_days"), shares.pop("gap_hours")
    splits = split_by_time(list(fields["time"].to_index()), shares, block_days, gap_hours)
    request = {
        "input_files": input_manifest(paths),
        "source": plain(configuration.source),
        "labels": plain(configuration.labels),
        "grid": configuration.grid,
    }
    output = Path(configuration.output)
    store: dict[str, Any] = {
        "channels": channels,
        "splits": splits,
        "request": request,
        "origin": str(configuration.input),
    }
    if configuration.dry_run:
        Console().print(_table(plan_store(fields, output, **store), fields, output, **store))
        return
    cluster = hydra.utils.instantiate(configuration.cluster)
    with progress_bar("time steps") as progress:
        info = write_store(fields, masks, output, cluster=cluster, progress=progress, reading=files_kept_open, **store)
    shares_of_classes = ", ".join(f"{name} {f:.3%}" for name, f in zip(CLASSES, info.frequencies, strict=True))
    log.info(
        "%s: %d channels, time steps: %s; training cells: %s",
        output,
        len(channels),
        _count(splits),
        shares_of_classes,
    )


def _open(configuration: DictConfig, paths: list[str], labels: Callable[..., Any]) -> tuple[xr.Dataset, list[str]]:
    """The input with the channels to store and those that the labels need besides, and the names of the former."""
    chosen = configuration.channels
    if chosen is None:
        fields = open_input(configuration, paths)
        return fields, [str(name) for name in fields.data_vars if name in CHANNELS]
    channels = [str(chosen)] if isinstance(chosen, str) else [str(name) for name in chosen]
    needed = needs_of(labels)
    others = () if needed is None else tuple(name for name in needed.channels if name not in channels)
    return open_input(configuration, paths, [*channels, *others]), channels


def _count(splits: list[str]) -> str:
    return ", ".join(f"{splits.count(s)} {s}" for s in dict.fromkeys(splits))


def _table(
    plan: StorePlan,
    fields: xr.Dataset,
    output: Path,
    *,
    channels: list[str],
    splits: list[str],
    request: dict[str, Any],
    origin: str,
) -> Table:
    """What a dry run says."""
    files = request["input_files"]
    size = sum(file.get("size", 0) for file in files)
    times = iso_times(fields)
    lat, lon = fields["lat"].values, fields["lon"].values
    rows = {
        "input": f"{origin}: {len(files)} {'file' if len(files) == 1 else 'files'}, {decimal(size)}",
        "time": f"{plan.steps} steps, {times[0]} to {times[-1]}, calendar {fields['time'].dt.calendar}",
        "splits": _count(splits),
        "channels": f"{len(channels)}: {', '.join(channels)}",
        "grid": f"{lat.size} x {lon.size}, lat {lat[0]:g} to {lat[-1]:g}, lon {lon[0]:g} to {lon[-1]:g}",
        "store": f"{output}, {decimal(plan.store_bytes)}",
        "there already": f"{plan.done} of {plan.steps} steps",
        "to do": f"{plan.blocks} tasks",
        "memory": f"about {decimal(plan.worker_bytes)} for each worker process",
    }
    table = Table(title="Nothing was written. This would be done:", box=box.SIMPLE, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for row in rows.items():
        table.add_row(*row)
    return table
