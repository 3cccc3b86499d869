"""Samples of MLPerf HPC DeepCAM: HDF5 without coordinates; channels, grid and time are known from its documentation.

``climate/data`` is float32 (768, 1152, 16), channel last, in the order of Kurth et al.; ``climate/labels_0`` holds 0
background, 1 tropical cyclone, 2 atmospheric river. Rows go from south to north and columns eastward from 0, as in
CAM5.
"""

import re
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from climseg.channels import CAM5_CHANNELS, CHANNELS, LABELS
from climseg.errors import InputError
from climseg.sources.stored import LARGEST_GRID, Layout, RawTime, StoredFile, StoredVariable

DATA: Final = "climate/data"
_LABELS: Final = "climate/labels_0"
_STATISTICS: Final = "climate/sqmean"
# data-YYYY-MM-DD-TT-R.h5: TT counts the 3-hourly steps of a day (20 years of 8 steps a day in three runs give the
# published number of samples), R is the run of the model.
_NAME: Final = re.compile(r"data-(\d{4})-(\d{2})-(\d{2})-(\d{2})-(\d+)\.h5")
_HOURS: Final = 3
_STEPS: Final = 24 // _HOURS


def is_sample(file: StoredFile) -> bool:
    """Whether a file has the layout of a DeepCAM sample."""
    return DATA in file.layout.variables


def is_statistics(file: StoredFile) -> bool:
    """Whether a file is the ``stats.h5`` that lies beside the samples; it holds no fields.

    Its ``sqmean`` is float32: for PSL and PS, sqmean - mean^2 comes out as 0 or below, so no standard deviation is
    taken from it. A store has statistics of its own.
    """
    return _STATISTICS in file.layout.variables


def as_fields(files: list[StoredFile]) -> list[StoredFile]:
    """Give DeepCAM samples the variables, coordinates and times that they do not name themselves.

    Raises:
        InputError: A file's shape or name is not that of a sample, or several runs hold the same time.
    """
    layouts: dict[Layout, Layout] = {}
    runs: dict[str, StoredFile] = {}
    out = []
    for file in files:
        match = _NAME.fullmatch(Path(file.path).name)
        if match is None or int(match[4]) >= _STEPS:
            raise InputError(
                f"{file.origin}: a DeepCAM sample has its time in its name, data-YYYY-MM-DD-TT-R.h5 with the 3-hourly "
                f"step TT from 00 to {_STEPS - 1:02d}; rename the file."
            )
        moment = "-".join(match.groups()[:4])
        other = runs.setdefault(moment, file)
        if other is not file:
            raise InputError(
                f"{other.origin} and {file.origin} hold the same time of two runs of the model; give the files of one "
                f"run, for example with the pattern 'data-*-{match[5]}.h5'."
            )
        if file.layout not in layouts:
            layouts[file.layout] = _layout(file)
        out.append(replace(file, layout=layouts[file.layout], time=_time(match)))
    return out


def _layout(file: StoredFile) -> Layout:
    data, labels = file.layout.variables[DATA], file.layout.variables.get(_LABELS)
    if len(data.shape) != 3 or data.shape[2] != len(CAM5_CHANNELS) or data.shape[0] * data.shape[1] > LARGEST_GRID:
        raise InputError(f"{file.origin}: {DATA} has the shape {data.shape}; expected (768, 1152, 16), channels last.")
    rows, columns = data.shape[:2]
    lat, lon = np.linspace(-90.0, 90.0, rows), np.arange(columns) * (360.0 / columns)
    variables = {
        "lat": StoredVariable("lat", ("lat",), (rows,), lat.dtype, {"units": "degrees_north"}, None, lat),
        "lon": StoredVariable("lon", ("lon",), (columns,), lon.dtype, {"units": "degrees_east"}, None, lon),
    }
    for position, name in enumerate(CAM5_CHANNELS):
        attributes = {"units": CHANNELS[name].units}
        variables[name] = StoredVariable(
            name, ("lat", "lon"), (rows, columns), data.dtype, attributes, None, None, (DATA, position)
        )
    if labels is not None and labels.shape == (rows, columns):
        variables[LABELS] = replace(labels, dims=("lat", "lon"))
    return Layout(variables, file.layout.attributes)


def _time(match: re.Match[str]) -> RawTime:
    year, month, day, step = match.groups()[:4]
    return RawTime("time", np.asarray(int(step) * _HOURS), f"hours since {year}-{month}-{day}", "noleap")
