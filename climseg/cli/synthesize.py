"""``climseg synthesize``: files of a made atmosphere."""

import logging
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from omegaconf import DictConfig, ListConfig

from climseg.cli.progress import progress_bar
from climseg.errors import InputError
from climseg.synthetic import write_files

log = logging.getLogger(__name__)


def run(configuration: DictConfig) -> None:
    """Make time axis and grid, write."""
    output = Path(str(configuration.output))
    if configuration.per not in ("step", "month"):
        raise InputError(f"per={configuration.per}: expected step or month.")
    times = _times(configuration)
    lat, lon = _grid(configuration)
    with progress_bar("time steps") as progress:
        files = write_files(
            output,
            times,
            lat,
            lon,
            configuration.seed,
            configuration.per,
            progress,
            more_channels=configuration.more_channels,
        )
    log.info("%d %s in %s", len(files), "file" if len(files) == 1 else "files", output)


def _times(configuration: DictConfig) -> list[Any]:
    if configuration.steps < 1 or configuration.hours <= 0:
        raise InputError(
            f"steps={configuration.steps} hours={configuration.hours}: expected at least 1 and more than 0."
        )
    start, calendar = str(configuration.start), configuration.calendar
    try:
        axis = xr.date_range(
            start,
            periods=configuration.steps,
            freq=timedelta(hours=configuration.hours),
            calendar=calendar,
            use_cftime=calendar != "standard",
        )
    except (ValueError, KeyError) as error:
        raise InputError(
            f"start={start} calendar={calendar}: not a date of it ({error}); expected for example 2001-01-31."
        ) from error
    return list(axis)


def _grid(configuration: DictConfig) -> tuple[Any, Any]:
    """A global grid, poles included, as CAM5's and ERA5's."""
    spacing, grid = configuration.spacing, configuration.grid
    if grid is not None:
        if not isinstance(grid, ListConfig) or len(grid) != 2 or not all(isinstance(n, int) and n > 1 for n in grid):
            raise InputError(f"grid={grid}: expected the numbers of rows and columns, such as [768,1152].")
        rows, columns = grid
    else:
        rows, columns = (180 / spacing + 1, 360 / spacing) if spacing > 0 else (0.0, 0.0)
        if rows < 2 or abs(rows - round(rows)) > 1e-6 * rows:
            raise InputError(
                f"spacing={spacing}: expected a number of degrees that divides 180, or grid=[rows,columns]."
            )
        rows, columns = round(rows), round(columns)
    return np.linspace(-90, 90, rows), np.arange(columns) * (360 / columns)
