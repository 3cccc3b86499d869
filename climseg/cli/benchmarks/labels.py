"""``what=labels``: every definition of rivers and of cyclones on one made time step, on one core."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import hydra
import numpy as np
import xarray as xr
from omegaconf import DictConfig, OmegaConf
from rich import box
from rich.console import Console
from rich.table import Table

from climseg.channels import LABELS
from climseg.cli.benchmarks.grid import global_grid
from climseg.cli.configuration import conf_folder, group_choices
from climseg.cli.progress import progress_bar
from climseg.errors import InputError
from climseg.labels.benchmark import Timing, time_definition
from climseg.labels.heuristic import steps
from climseg.labels.make_climatology import lacks_climatology
from climseg.labels.rivers_guan_waliser import PERCENTILE
from climseg.labels.step import Step
from climseg.synthetic import make_atmosphere


def run(configuration: DictConfig) -> dict[str, Any]:
    """Make a time step, measure, show."""
    if configuration.repeats < 1:
        raise InputError(f"repeats={configuration.repeats}: expected at least 1.")
    lat, lon = global_grid(configuration.grid)
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
    Console().print(_table(figures))
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


def _table(figures: dict[str, Any]) -> Table:
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
