"""CAM5 netCDF, and the expert-labelled ClimateNet files, which hold the same variables and LABELS besides."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from climseg.canonical import to_canonical
from climseg.channels import CHANNELS, CLASSES, LABELS, MISSING_LABEL
from climseg.errors import InputError, near_matches
from climseg.sources.axes import name_axes, on_grid
from climseg.sources.combine import combine_files, fuse
from climseg.sources.era5 import ERA5_NAMES
from climseg.sources.files import Input, expand_paths, open_netcdf
from climseg.sources.request import check_request
from climseg.units import convert_units

# data-YYYY-MM-DD-HH-R-N.nc: date, run of the model, number of the expert.
_CLIMATENET_NAME: Final = re.compile(r"(data-\d{4}-\d{2}-\d{2}-\d{2}-\d+)-(\d+)\.nc")


def open_cam5(
    input: Input, *, channels: Sequence[str] | None = None, labels: bool = False, time: str | None = None
) -> xr.Dataset:
    """Open CAM5 or ClimateNet netCDF files as one canonical Dataset.

    Other variables of the files are ignored. Where a file gives no units at all, as ClimateNet's may, they are those of
    CAM5, which are the canonical ones, and the ``comment`` attribute of the variable says so.

    Args:
        input: Paths or patterns of netCDF files with CAM5 names.
        channels: Names of channels, in the wanted order; None takes all of the 16 that the files have.
        labels: Read the mask LABELS too: int8, missing values become ``MISSING_LABEL``.
        time: The time of a single file that has none, for example ``"2011-10-11T00"``.

    Returns:
        A canonical Dataset of dask arrays. Nothing but coordinates has been read; the values of LABELS are checked
        step by step as they are read, which raises InputError for a value that is no class.

    Raises:
        InputError: A file, its grid, its times, its units or its variables do not fit, by name.
    """
    paths = expand_paths(input)
    check_request(paths, channels, time)
    _refuse_several_experts(paths)

    files = [(path, name_axes(open_netcdf(path), str(path), time)) for path in paths]
    found = {name for _, ds in files for name in ds.data_vars}
    wanted = _choose(channels, labels, found, paths)
    combined = combine_files([(path, _read(ds, wanted, path)) for path, ds in files])
    out = to_canonical(combined[wanted], str(paths[0]))
    out.attrs = {"source": "CAM5 netCDF"}
    return fuse(out)


def _choose(channels: Sequence[str] | None, labels: bool, found: set[Any], paths: Sequence[Path]) -> list[str]:
    """Names of the variables to read; refused when the files lack one of them."""
    where = str(paths[0]) if len(paths) == 1 else f"The input of {len(paths)} files from {paths[0]} on"
    has = ", ".join(sorted(map(str, found))) or "no variable"
    hint = (
        " These are names of ERA5: try source=era5." if len(found & ERA5_NAMES) > len(found & CHANNELS.keys()) else ""
    )
    if channels is None:
        wanted = [name for name in CHANNELS if name in found]
        if not wanted:
            near = "".join(f" {name!r}{near}" for name in found if (near := near_matches(str(name), CHANNELS)))
            raise InputError(f"{where} has none of the 16 CAM5 variables. It has: {has}.{hint or near}")
    else:
        wanted = list(channels)
    if labels:
        wanted.append(LABELS)
    missing = [name for name in wanted if name not in found]
    if missing:
        near = "".join(near_matches(name, map(str, found)) for name in missing)
        raise InputError(f"{where} has no variable {', '.join(missing)}{near or '.'} It has: {has}.{hint}")
    return wanted


def _read(ds: xr.Dataset, wanted: Sequence[str], path: Path) -> dict[str, xr.DataArray]:
    """The wanted variables of one file on (time, lat, lon), in canonical units."""
    here = {name: on_grid(ds[name], str(path)) for name in wanted if name in ds.data_vars}
    without_units = not any(str(v.attrs.get("units", "")).strip() for v in ds.data_vars.values())
    return {
        name: _class_numbers(variable, path)
        if name == LABELS
        else _in_canonical_units(variable, without_units, str(path))
        for name, variable in here.items()
    }


def _in_canonical_units(variable: xr.DataArray, file_without_units: bool, origin: str) -> xr.DataArray:
    units = CHANNELS[str(variable.name)].units
    if file_without_units:
        comment = f"units: the file gives none for any variable; {units} taken as documented for CAM5"
        return variable.assign_attrs(units=units, comment=comment)
    return convert_units(variable, units, origin)


def _class_numbers(variable: xr.DataArray, path: Path) -> xr.DataArray:
    """LABELS as int8, checked chunk by chunk when they are read."""
    if variable.dtype.kind not in "biuf":
        raise InputError(f"{path}: LABELS is of type {variable.dtype}; expected class numbers 0 to {len(CLASSES) - 1}.")
    checked: xr.DataArray = xr.apply_ufunc(
        _checked_class_numbers, variable, kwargs={"path": path}, dask="parallelized", output_dtypes=[np.int8]
    )
    return checked


def _checked_class_numbers(values: NDArray[Any], path: Path) -> NDArray[np.int8]:
    numbers = np.where(np.isnan(values), MISSING_LABEL, values)
    known = np.isin(numbers, [MISSING_LABEL, *range(len(CLASSES))])
    if not known.all():
        raise InputError(
            f"{path}: LABELS holds the value {numbers[~known][0]:g}; expected 0 to {len(CLASSES) - 1} "
            f"({', '.join(CLASSES)}) or {MISSING_LABEL} (missing)."
        )
    return numbers.astype(np.int8)


def _refuse_several_experts(paths: Sequence[Path]) -> None:
    """Refuse files that hold the same fields with the labels of different experts."""
    seen: dict[str, Path] = {}
    for path in paths:
        match = _CLIMATENET_NAME.fullmatch(path.name)
        if match is None:
            continue
        other = seen.setdefault(match[1], path)
        if other != path:
            raise InputError(
                f"{other.name} and {path.name} hold the same time, labelled by two experts; choose one file per time, "
                "for example with the pattern '*-0.nc', or list the files."
            )
