"""A lazy Dataset read one time step after another: every stored chunk once, with little beside the reading itself."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import xarray as xr

from climseg.blocks import Block, read_block, segments
from climseg.canonical import time_chunks
from climseg.sources.netcdf import files_kept_open


def read_steps(ds: xr.Dataset) -> Iterator[xr.Dataset]:
    """The time steps of a Dataset in order, loaded, without the dim time; one chunk is in memory at a time.

    Args:
        ds: With the dim time; dask arrays (chunked in time) or numpy ones.

    Raises:
        InputError: What reading or the Dataset's own lazy functions raise.
    """
    for segment, blocks in segments(ds, chunk_blocks(ds)):
        for block in blocks:
            loaded = read_block(segment, block, files_kept_open)
            for index in range(block.stop - block.start):
                yield loaded.isel(time=index)


def chunk_blocks(ds: xr.Dataset) -> list[Block]:
    """The runs of time steps that share a chunk, by the longest chunks."""
    return [Block(start, stop) for start, stop in pairwise([0, *np.cumsum(time_chunks(ds)).tolist()])]
