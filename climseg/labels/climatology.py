"""What is usual at a place in a season: percentiles of all steps of many years, without ever holding them all.

The steps are written as they come into a spool, one file in which the whole series of a row of cells lies together;
then rows are read, a few at a time. Neither part knows of a scheduler: steps, and rows, may be done in any order and by
any process.
"""

import os
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from climseg.labels.step import Field

# Months before and after the one in question that its percentile takes in.
HALF_WINDOW: Final = 2
_DTYPE: Final = np.dtype(np.float32)


def create_spool(path: Path, lat_size: int, steps: int, lon_size: int) -> None:
    """Create the file that steps are written into: float32 (lat, time, lon) in numpy's format.

    It takes ``4 * lat_size * steps * lon_size`` bytes of disk at once, so that a disk too small shows here.

    Args:
        path: A scratch file of the caller's, who removes it; one that is there is written anew.
        lat_size: Latitudes.
        steps: Time steps; each must be written before rows are read.
        lon_size: Longitudes.

    Raises:
        OSError: The file cannot be written, or the disk is too small.
    """
    shape = (lat_size, steps, lon_size)
    with path.open("wb") as file:
        header = {"descr": np.lib.format.dtype_to_descr(_DTYPE), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        start, size = file.tell(), _DTYPE.itemsize * lat_size * steps * lon_size
        file.truncate(start + size)
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), start, size)


def spool_step(path: Path, index: int, ivt: ArrayLike) -> None:
    """Write one time step (lat, lon) into the spool; several processes may do so at a time, each its own steps.

    Args:
        path: Of the spool.
        index: The step's number, from 0.
        ivt: (lat, lon); missing values are NaN.

    Raises:
        ValueError: ``ivt`` has another shape than the spool's steps, or the step is not one of them.
    """
    spool = np.lib.format.open_memmap(path, mode="r")
    lat_size, steps, lon_size = spool.shape
    values = np.ascontiguousarray(ivt, dtype=_DTYPE)
    if values.shape != (lat_size, lon_size) or not 0 <= index < steps:
        raise ValueError(f"step {index} of shape {values.shape} is none of {steps} of shape {(lat_size, lon_size)}")
    # Not through the memory map: neighbouring steps share its pages, which on a network disk one writer may lose.
    with path.open("r+b", buffering=0) as file:
        for row in range(lat_size):
            file.seek(spool.offset + _DTYPE.itemsize * lon_size * (row * steps + index))
            file.write(values[row].data)


def row_percentiles(
    path: Path, rows: slice, months: ArrayLike, percentile: float, min_steps: int
) -> NDArray[np.float32]:
    """The percentile of each calendar month, at each cell of some rows, over the five months round it in all years.

    December and January are neighbours. Percentiles are numpy's, linear between the nearest two values. Memory is some
    two and a half times that of the rows' series, ``4 * rows * steps * lon`` bytes.

    Args:
        path: Of the spool, all steps written.
        rows: Latitude indices.
        months: (time,) 1 to 12, the month of each step.
        percentile: 0 to 100; Guan and Waliser 2015 take the 85th.
        min_steps: How many values a cell must have in the five months, at least 1; missing ones do not count.

    Returns:
        (12, rows, lon); NaN where a cell has fewer values.

    Raises:
        ValueError: ``months`` has another length than the spool's time.
    """
    spool = np.lib.format.open_memmap(path, mode="r")
    month_of_step = np.asarray(months, dtype=np.int64)
    if month_of_step.shape != (spool.shape[1],):
        raise ValueError(f"months has the shape {month_of_step.shape}; expected ({spool.shape[1]},)")
    # Steps in the order of months, November and December before January and again after it, so that every window is a
    # slice; each cell's series lies together.
    steps_of = [
        np.flatnonzero(month_of_step == (month - 1) % 12 + 1) for month in range(1 - HALF_WINDOW, 13 + HALF_WINDOW)
    ]
    first = np.cumsum([0, *(steps.size for steps in steps_of)])
    series = np.ascontiguousarray(np.moveaxis(spool[rows][:, np.concatenate(steps_of)], 1, 2))  # (rows, lon, steps)
    result = np.full((12, *series.shape[:2]), np.nan, dtype=_DTYPE)
    for month in range(12):
        window = series[..., first[month] : first[month + 2 * HALF_WINDOW + 1]].copy()
        if window.shape[-1] >= max(min_steps, 1):
            result[month] = _percentile(window, percentile, max(min_steps, 1))
    return result


def _percentile(window: Field, percentile: float, min_steps: int) -> Field:
    """Percentile (rows, lon) of the present values of (rows, lon, time); NaN below ``min_steps`` values."""
    # Missing values sort to the end, so that the place of a cell's percentile follows from its number of values.
    count = window.shape[-1] - np.count_nonzero(np.isnan(window), axis=-1)
    place = percentile / 100.0 * np.maximum(count - 1, 0)
    below = np.floor(place).astype(np.int64)
    if below.min() == below.max():  # the quick way: the next value is the least of those beyond
        at = int(below.flat[0])
        window.partition(at, axis=-1)
        low, high = window[..., at], np.fmin.reduce(window[..., min(at + 1, window.shape[-1] - 1) :], axis=-1)
    else:
        window.sort(axis=-1)
        above = np.minimum(below + 1, np.maximum(count - 1, 0))
        low, high = (np.take_along_axis(window, k[..., None], axis=-1)[..., 0] for k in (below, above))
    between = low + (place - below) * (high.astype(np.float64) - low)
    return np.where(count < min_steps, np.nan, np.where(place > below, between, low))
