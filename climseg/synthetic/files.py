"""The made atmosphere as CAM5-like netCDF files."""

import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, Literal

import netCDF4
import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from climseg.atomic import atomic_file
from climseg.canonical import DIMS
from climseg.errors import InputError
from climseg.synthetic.atmosphere import Grid, make_on_grid, prepare_grid
from climseg.synthetic.clock import model_days, time_axis
from climseg.synthetic.further import FURTHER_CHANNELS

logger = logging.getLogger(__name__)

# Raise it when the same seed gives another atmosphere than before, so that old and new files do not mix.
RECIPE: Final = 1
_TIME_UNITS: Final = "hours since 2000-01-01 00:00:00"
# Global attributes that say what a file holds.
_SEED: Final = "climseg_synthetic_seed"
_RECIPE: Final = "climseg_synthetic_recipe"


def write_files(
    output: Path,
    times: Iterable[Any],
    lat: ArrayLike,
    lon: ArrayLike,
    seed: int = 0,
    per: Literal["step", "month"] = "month",
    progress: Callable[[int, int], None] | None = None,
    *,
    more_channels: bool = False,
) -> list[Path]:
    """Write netCDF-4 files of 16 channels (or more) and LABELS, one per time step or per month, one after the other.

    A file gets its name, for example ``climseg-synthetic-2001-01.nc`` or ``climseg-synthetic-2001-01-01-06.nc``, when
    it is complete. A complete file that is there already is left alone; that it belongs to the same request is told by
    its global attributes (seed, recipe), its axes and its channels. Only one time step is held in memory. Several
    processes may write different months, or different steps, into one folder.

    Args:
        output: The folder; it is made.
        times: As for ``make_atmosphere``.
        lat: As for ``make_atmosphere``.
        lon: As for ``make_atmosphere``.
        seed: As for ``make_atmosphere``.
        per: What one file holds.
        progress: Called with the number of time steps done and of all after every step.
        more_channels: As for ``make_atmosphere``.

    Returns:
        All files of the request, in order of time.

    Raises:
        InputError: A file of that name holds something else, two steps would share a name, or the axes are not as said.
    """
    axis, grid = time_axis(times), prepare_grid(lat, lon)
    groups: dict[str, list[int]] = {}
    for index, stamp in enumerate(axis.dt.strftime("%Y-%m-%d-%H" if per == "step" else "%Y-%m").values):
        groups.setdefault(str(stamp), []).append(index)
    if per == "step" and len(groups) < axis.size:
        raise InputError("two time steps lie in one hour, and files per step are named by the hour; write per month.")

    paths, done = [], 0

    def tick(count: int = 1) -> None:
        nonlocal done
        done += count
        if progress is not None:
            progress(done, axis.size)

    for stamp, indices in groups.items():
        path = Path(output) / f"climseg-synthetic-{stamp}.nc"
        part = axis[indices]
        if path.exists():
            _check_same(path, part, grid, seed, more_channels)
            logger.info("%s is complete already", path)
            tick(part.size)
        else:
            with atomic_file(path) as partial:
                _write(partial, part, grid, seed, more_channels, tick)
        paths.append(path)
    return paths


def _write(
    path: Path, axis: xr.DataArray, grid: Grid, seed: int, more_channels: bool, tick: Callable[[], None]
) -> None:
    with netCDF4.Dataset(path, "w", format="NETCDF4") as file:
        file.setncatts(
            {
                "Conventions": "CF-1.11",
                "title": "climseg synthetic atmosphere",
                "source": "made by climseg.synthetic to test software; neither an observation nor a model run",
                _SEED: seed,
                _RECIPE: RECIPE,
            }
        )
        for index in range(axis.size):
            step = make_on_grid(axis[index : index + 1], grid, seed, more_channels)
            if index == 0:
                _define(file, step, axis, grid)
            for name in step.data_vars:
                file[str(name)][index] = step[name].values[0]
            tick()


def _define(file: netCDF4.Dataset, step: xr.Dataset, axis: xr.DataArray, grid: Grid) -> None:
    """Dimensions, coordinates and empty variables, with the attributes of a canonical step."""
    time_attributes = {"units": _TIME_UNITS, "calendar": str(axis.dt.calendar)}
    for name, values in (("time", _hours(axis)), ("lat", grid.lat), ("lon", grid.lon)):
        file.createDimension(name, None if name == "time" else values.size)
        variable = file.createVariable(name, "f8", (name,))
        variable.setncatts(step[name].attrs | (time_attributes if name == "time" else {}))
        variable[:] = values
    chunks = (1, grid.lat.size, grid.lon.size)
    for key, data in step.data_vars.items():
        variable = file.createVariable(
            str(key), data.dtype, DIMS, compression="zlib", complevel=1, chunksizes=chunks, fill_value=False
        )
        variable.setncatts(data.attrs)


def _check_same(path: Path, axis: xr.DataArray, grid: Grid, seed: int, more_channels: bool) -> None:
    """Refuse a file that holds another seed, recipe, grid, calendar or other times or channels than asked for."""
    try:
        with netCDF4.Dataset(path) as file:
            found = {_SEED: getattr(file, _SEED, None), _RECIPE: getattr(file, _RECIPE, None)}
            axes: dict[str, NDArray[np.float64]] = {name: np.asarray(file[name][:]) for name in DIMS}
            calendar, names = file["time"].calendar, set(file.variables)
    except (OSError, IndexError, AttributeError) as error:
        raise InputError(
            f"{path}: is not a file of the synthetic atmosphere ({error}); choose another folder."
        ) from error
    for name, wanted in ((_SEED, seed), (_RECIPE, RECIPE)):
        if found[name] != wanted:
            raise InputError(
                f"{path}: was written with {name} = {found[name]}, asked for is {wanted}; choose another folder or "
                "remove the file."
            )
    same = calendar == str(axis.dt.calendar) and np.array_equal(axes["time"], _hours(axis))
    for name, agrees in (
        ("time steps", same),
        ("latitudes", np.array_equal(axes["lat"], grid.lat)),
        ("longitudes", np.array_equal(axes["lon"], grid.lon)),
        ("channels", more_channels == set(FURTHER_CHANNELS).issubset(names)),
    ):
        if not agrees:
            raise InputError(f"{path}: holds other {name} than asked for; choose another folder or remove the file.")


def _hours(axis: xr.DataArray) -> NDArray[np.float64]:
    """Time in the files' units; whole seconds keep their value."""
    return np.asarray(np.round(model_days(axis)[0] * 24.0, 6))
