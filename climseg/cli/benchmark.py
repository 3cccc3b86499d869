"""``climseg benchmark``: how fast this machine does a part of the work."""

import logging
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final

import hydra
import numpy as np
import xarray as xr
from omegaconf import DictConfig, ListConfig, OmegaConf
from rich import box
from rich.console import Console
from rich.table import Table

from climseg.channels import LABELS
from climseg.cli.configuration import conf_folder, group_choices
from climseg.cli.json_file import json_path, write_json
from climseg.cli.progress import progress_bar
from climseg.cluster import local
from climseg.errors import InputError, near_matches
from climseg.labels.benchmark import Timing, time_definition
from climseg.labels.heuristic import steps
from climseg.labels.make_climatology import lacks_climatology
from climseg.labels.rivers_guan_waliser import PERCENTILE
from climseg.labels.step import Step
from climseg.sources.netcdf import files_kept_open
from climseg.store.benchmark import compare_with_copying
from climseg.synthetic import make_atmosphere, write_files

log = logging.getLogger(__name__)


def run(configuration: DictConfig) -> None:
    """Measure, show, write."""
    what = str(configuration.what)
    if what not in _BENCHMARKS:
        near = near_matches(what, _BENCHMARKS) or "."
        raise InputError(f"what={what}: no such benchmark{near} Known: {', '.join(_BENCHMARKS)}.")
    output = None if configuration.output is None else json_path(configuration.output, "the figures are")
    figures = {"what": what} | _BENCHMARKS[what](configuration)
    if output is not None:
        write_json(output, figures)
        log.info("figures: %s", output)


def _prepare(configuration: DictConfig) -> dict[str, Any]:
    """Preparing a store beside copying the same bytes."""
    for key in ("steps", "repeats"):
        if configuration[key] < 1:
            raise InputError(f"{key}={configuration[key]}: expected at least 1.")
    if configuration.per not in ("step", "month"):
        raise InputError(f"per={configuration.per}: expected step or month.")
    lat, lon = _grid(configuration.grid)
    times = list(xr.date_range("2001-01-01", periods=configuration.steps, freq="6h"))
    if configuration.folder is not None:
        Path(str(configuration.folder)).mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="climseg-", dir=configuration.folder) as scratch:
        files = Path(str(configuration.folder or scratch))
        with progress_bar("making time steps") as progress:
            paths = write_files(files, times, lat, lon, per=configuration.per, progress=progress)
        with progress_bar("measuring") as progress:
            found = compare_with_copying(
                paths,
                partial(hydra.utils.instantiate(configuration.source), [str(path) for path in paths]),
                Path(scratch),
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


def _labels(configuration: DictConfig) -> dict[str, Any]:
    """Every definition of rivers and of cyclones on one made time step, on one core."""
    if configuration.repeats < 1:
        raise InputError(f"repeats={configuration.repeats}: expected at least 1.")
    lat, lon = _grid(configuration.grid)
    made = make_atmosphere([np.datetime64("2001-08-15T00")], lat, lon, more_channels=True).drop_vars(LABELS)
    (step,) = steps(made)
    found: dict[str, Timing] = {}
    with TemporaryDirectory(prefix="climseg-") as scratch, progress_bar("measuring") as progress:
        runs = dict(_definitions(step, Path(scratch)))
        for done, (name, run_once) in enumerate(runs.items()):
            progress(done, len(runs))
            found[name] = time_definition(run_once, step.fields["TMQ"], configuration.repeats)
        progress(len(runs), len(runs))
    figures = {
        "grid": [lat.size, lon.size],
        "definitions": {
            name: {
                "seconds": timing.seconds,
                "median_seconds": median(timing.seconds),
                "sorts_of_a_field": timing.sorts,
                "peak_megabytes": timing.peak_bytes / 1e6,
            }
            for name, timing in found.items()
        },
    }
    Console().print(_labels_table(figures))
    return figures


def _definitions(step: Step, scratch: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    """What is measured: each definition of rivers, and each of candidates for cyclones, alone."""
    for group in ("rivers", "cyclones"):
        for choice in group_choices()[f"labels/{group}"]:
            if choice.endswith("_coarse"):
                continue
            part = hydra.utils.instantiate(OmegaConf.load(conf_folder() / "labels" / group / f"{choice}.yaml"))
            if group == "rivers":
                yield f"rivers={choice}", partial(_with_made_climatology(part, step, scratch), step)
            else:
                yield f"cyclones={choice}", partial(part.candidates, step)


def _with_made_climatology(rivers: partial[Any], step: Step, scratch: Path) -> partial[Any]:
    """A definition of rivers; one that asks for a climatology has each latitude's own percentile for one."""
    if not lacks_climatology(rivers):
        return rivers
    ivt = np.hypot(step.fields["UIVT"], step.fields["VIVT"])
    usual = np.broadcast_to(np.percentile(ivt, 85.0, axis=1)[None, :, None], (12, *ivt.shape))
    coordinates = {"month": np.arange(1, 13), "lat": step.lat, "lon": step.lon}
    file = scratch / "climatology.nc"
    xr.Dataset({PERCENTILE: (("month", "lat", "lon"), usual.astype(np.float32))}, coordinates).to_netcdf(file)
    return partial(rivers.func, **(rivers.keywords | {"climatology": str(file)}))


def _labels_table(figures: dict[str, Any]) -> Table:
    rows, columns = figures["grid"]
    table = Table(
        title=f"one time step of {rows} x {columns} on one core",
        caption="sorts: as many times as long as sorting the values of one field",
        box=box.SIMPLE,
        pad_edge=False,
    )
    table.add_column("definition", no_wrap=True)
    for heading in ("seconds", "sorts", "peak memory, MB"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, row in figures["definitions"].items():
        table.add_row(
            name, f"{row['median_seconds']:.3f}", f"{row['sorts_of_a_field']:.1f}", f"{row['peak_megabytes']:.0f}"
        )
    return table


def _grid(value: object) -> tuple[Any, Any]:
    """A global grid, poles included."""
    if not isinstance(value, ListConfig) or len(value) != 2 or not all(isinstance(n, int) and n > 1 for n in value):
        raise InputError(f"grid={value}: expected the numbers of rows and columns, such as [192,288].")
    rows, columns = value
    return np.linspace(-90, 90, rows), np.arange(columns) * (360 / columns)


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


# Each prints what it measured and returns it for the JSON file.
_BENCHMARKS: Final[dict[str, Callable[[DictConfig], dict[str, Any]]]] = {"prepare": _prepare, "labels": _labels}
