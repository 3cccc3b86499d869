"""A lazy Dataset read one time step after another: every stored chunk once, with little beside the reading itself."""

from collections.abc import Iterator
from typing import Final

import numpy as np
import xarray as xr
from dask.base import optimize

from climseg.canonical import time_chunks
from climseg.sources.netcdf import files_kept_open

# Time steps whose part of the graph is cut out at once: dask goes through all of a graph whenever anything is computed.
_SEGMENT: Final = 256


def read_steps(ds: xr.Dataset) -> Iterator[xr.Dataset]:
    """The time steps of a Dataset in order, loaded, without the dim time; one chunk is in memory at a time.

    Args:
        ds: With the dim time; dask arrays (chunked in time) or numpy ones.

    Raises:
        InputError: What reading or the Dataset's own lazy functions raise.
    """
    blocks = time_blocks(ds)
    while blocks:
        count = max(1, sum(1 for _, stop in blocks if stop - blocks[0][0] <= _SEGMENT))
        start = blocks[0][0]
        (segment,) = optimize(ds.isel(time=slice(start, blocks[count - 1][1])))  # type: ignore[no-untyped-call]
        for first, last in blocks[:count]:
            with files_kept_open():
                block = segment.isel(time=slice(first - start, last - start)).compute(scheduler="synchronous")
            for index in range(last - first):
                yield block.isel(time=index)
        blocks = blocks[count:]


def time_blocks(ds: xr.Dataset) -> list[tuple[int, int]]:
    """First step and the one after the last of each run of time steps that share a chunk, by the longest chunks."""
    stops = np.cumsum(time_chunks(ds)).tolist()
    return list(zip([0, *stops[:-1]], stops, strict=True))
