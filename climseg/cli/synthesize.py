"""``climseg synthesize``: files of a made atmosphere."""

import logging
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from omegaconf import DictConfig

from climseg.cli.progress import progress_bar
from climseg.errors import InputError
from climseg.synthetic import write_files

log = logging.getLogger(__name__)


def run(configuration: DictConfig) -> None:
    """Make time axis and grid, write."""
    output = Path(str(configuration.output))
    times = _times(configuration)
    lat, lon = _grid(configuration)
    with progress_bar("time steps") as progress:
        files = write_files(output, times, lat, lon, configuration.seed, configuration.per, progress)
    log.info("%d files in %s", len(files), output)


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
    if configuration.grid is not None:
        rows, columns = configuration.grid
    else:
        rows, columns = round(180 / configuration.spacing) + 1, round(360 / configuration.spacing)
    return np.linspace(-90, 90, rows), np.arange(columns) * (360 / columns)
