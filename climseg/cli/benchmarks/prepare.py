"""``what=prepare``: preparing a store beside copying the same bytes."""

from functools import partial
from statistics import median
from typing import Any

import hydra
import xarray as xr
from omegaconf import DictConfig
from rich import box
from rich.console import Console
from rich.table import Table

from climseg.cli.benchmarks.files import made_files
from climseg.cli.benchmarks.grid import global_grid
from climseg.cli.progress import progress_bar
from climseg.cluster import local
from climseg.errors import InputError
from climseg.sources.netcdf import files_kept_open
from climseg.store.benchmark import compare_with_copying


def run(configuration: DictConfig) -> dict[str, Any]:
    """Make files, measure, show."""
    for key in ("steps", "repeats"):
        if configuration[key] < 1:
            raise InputError(f"{key}={configuration[key]}: expected at least 1.")
    if configuration.per not in ("step", "month"):
        raise InputError(f"per={configuration.per}: expected step or month.")
    lat, lon = global_grid(configuration.grid)
    times = list(xr.date_range("2001-01-01", periods=configuration.steps, freq="6h"))
    with (
        made_files(configuration.folder, times, lat, lon, per=configuration.per) as (paths, scratch),
        progress_bar("measuring") as progress,
    ):
        found = compare_with_copying(
            paths,
            partial(hydra.utils.instantiate(configuration.source), [str(path) for path in paths]),
            scratch,
            repeats=configuration.repeats,
            cluster=partial(local, configuration.workers),
            reading=files_kept_open,
            progress=progress,
        )
    figures = {
        "steps": configuration.steps,
        "grid": [lat.size, lon.size],
        "channels": found.channels,
        "per": configuration.per,
        "workers": max(1, configuration.workers),
        "megabytes": found.bytes / 1e6,
        "copy": _figures(found.copy, found.bytes),
        "prepare": _figures(found.prepare, found.bytes),
        "share": found.share,
    }
    Console().print(_table(figures))
    return figures


def _figures(seconds: list[float], written: int) -> dict[str, Any]:
    middle = median(seconds)
    return {"seconds": seconds, "median_seconds": middle, "megabytes_per_second": written / 1e6 / middle}


def _table(figures: dict[str, Any]) -> Table:
    rows, columns = figures["grid"]
    table = Table(
        title=f"{figures['steps']} steps of {figures['channels']} x {rows} x {columns}, {figures['megabytes']:.0f} MB",
        caption=f"preparing has {figures['share']:.0%} of the speed of copying",
        box=box.SIMPLE,
        pad_edge=False,
    )
    table.add_column("", no_wrap=True)
    for heading in ("processes", "seconds", "fastest", "slowest", "MB/s"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name in ("copy", "prepare"):
        row = figures[name]
        seconds = (row["median_seconds"], min(row["seconds"]), max(row["seconds"]))
        speed = f"{row['megabytes_per_second']:.0f}"
        table.add_row(name, str(figures["workers"]), *(f"{s:.2f}" for s in seconds), speed)
    return table
