"""``what=input``: ways to read samples, ours beside those of others."""

from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import hydra
import xarray as xr
from omegaconf import DictConfig
from rich import box
from rich.console import Console
from rich.table import Table

from climseg.channels import CHANNELS, LABELS
from climseg.cli.benchmarks.files import made_files
from climseg.cli.benchmarks.grid import global_grid
from climseg.cli.fields import plain
from climseg.cli.progress import progress_bar
from climseg.errors import InputError
from climseg.samples.benchmark import Comparison, compare_readings
from climseg.store.other_readings import write_uncompressed
from climseg.store.packing import STORED_TYPES
from climseg.store.writer import write_store


def run(configuration: DictConfig) -> dict[str, Any]:
    """Make files and stores, measure, show."""
    options = _options(configuration)
    lat, lon = global_grid(configuration.grid)
    times = list(xr.date_range("2001-01-01", periods=configuration.steps, freq="6h"))
    with made_files(configuration.folder, times, lat, lon, per="step") as (paths, scratch):
        opened = partial(hydra.utils.instantiate(configuration.source), [str(path) for path in paths])
        stores: dict[str, Path] = {dtype: scratch / dtype for dtype in STORED_TYPES}
        with progress_bar("making stores") as progress:
            for number, dtype in enumerate(STORED_TYPES):
                progress(number, len(STORED_TYPES))
                ds = opened()
                channels = [str(name) for name in ds.data_vars if name in CHANNELS]
                splits = ["train"] * len(times)
                write_store(ds, ds[LABELS], stores[dtype], channels=channels, splits=splits, request={}, dtype=dtype)
            progress(len(STORED_TYPES), len(STORED_TYPES))
        netcdf = write_uncompressed(paths, scratch / "netcdf")
        with progress_bar("measuring") as progress:
            found = compare_readings(netcdf, stores, repeats=configuration.repeats, progress=progress, **options)
    figures = {
        "steps": configuration.steps,
        "grid": [lat.size, lon.size],
        "channels": len(channels),
        **options,
        "page_cache": "warm",
        "delivered_megabytes": found.delivered_bytes / 1e6,
        "readings": _figures(found),
    }
    Console().print(_table(figures))
    return figures


def _options(configuration: DictConfig) -> dict[str, Any]:
    """The keys of ``input``, checked."""
    options: dict[str, Any] = plain(configuration.input)
    for name, value in {"steps": configuration.steps, "repeats": configuration.repeats, **options}.items():
        least = 0 if name == "workers" else 1
        values = value if isinstance(value, list) else [value]
        if not values or not all(isinstance(n, int) and n >= least for n in values):
            key = name if name in ("steps", "repeats") else f"input.{name}"
            raise InputError(f"{key}={value}: expected at least {least}.")
    if not isinstance(options["workers"], list):
        options["workers"] = [options["workers"]]
    return options


def _figures(found: Comparison) -> list[dict[str, Any]]:
    return [
        {
            "way": reading.name,
            "workers": reading.workers,
            "seconds": reading.seconds,
            "median_seconds": median(reading.seconds),
            "samples_per_second": found.speed(reading),
            "delivered_gigabytes_per_second": found.speed(reading) * found.delivered_bytes / 1e9,
            "read_gigabytes_per_second": found.speed(reading) * reading.read_bytes / 1e9,
            "ratio_to_fromfile": found.ratio(reading),
        }
        for reading in found.readings
    ]


def _table(figures: dict[str, Any]) -> Table:
    rows, columns = figures["grid"]
    table = Table(
        title=f"samples of {figures['channels']} x {rows} x {columns}, files in the page cache",
        caption="GB/s of float32 images delivered and of files read; netCDF uncompressed, as ClimateNet's library",
        box=box.SIMPLE,
        pad_edge=False,
    )
    table.add_column("", no_wrap=True)
    for heading in ("workers", "samples/s", "GB/s", "read", "ratio"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in figures["readings"]:
        table.add_row(
            row["way"],
            str(row["workers"]),
            f"{row['samples_per_second']:.1f}",
            f"{row['delivered_gigabytes_per_second']:.2f}",
            f"{row['read_gigabytes_per_second']:.2f}",
            f"{row['ratio_to_fromfile']:.2f}",
        )
    return table
