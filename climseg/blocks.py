"""A long lazy Dataset cut along time into blocks that are read well, and into segments with small dask graphs.

A block is what one task reads; a segment is a longer run of time steps that is sent to workers once.
"""

from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any, Final

import dask
import numpy as np
import xarray as xr
from dask.base import optimize

from climseg.canonical import time_chunks

# Bytes of all channels. What dask does for one task is little beside reading this much, but not beside reading one step
# of a coarse grid.
_WORTH_A_TASK: Final = 16 * 2**20
# What a task may hold, with 16 channels in dask chunks of 16 MiB just one chunk of each.
_LARGEST_BLOCK: Final = 256 * 2**20
# Beyond this, opening files takes little beside reading, but netCDF may hold 64 MiB of each variable of an open file.
_FILES_KEPT_OPEN: Final = 64 * 2**20
# Joining the tasks of each small chunk takes longer than it saves.
_CULL_ALONE: Final[dict[str, Any]] = {"optimization.fuse.active": False}
# Time steps. Each block costs time in proportion to the graph that it is cut from, and each segment to the whole input.
_SEGMENT: Final = 256

# The context in which a small block is read, such as one that keeps the files of the source open.
Reading = Callable[[], AbstractContextManager[None]]
# What a long job calls with (time steps done, all time steps).
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Block:
    """The time steps ``start`` to ``stop - 1`` of the input."""

    start: int
    stop: int


@dataclass(frozen=True)
class Segment:
    """A run of time steps of the input.

    Attributes:
        start: Position of its first time step in the input.
        fields: (time, lat, lon) variables of these steps, lazy.
    """

    start: int
    fields: xr.Dataset


def time_blocks(ds: xr.Dataset, channels: Sequence[str], done: Container[int] = ()) -> list[Block]:
    """Cut the time axis into blocks that are read well.

    The steps that share a dask chunk (of the channel with the longest ones) stay together, so that a stored chunk is
    read once; short chunks are joined up to 16 MiB of all channels, and chunks of more than 256 MiB are cut.

    Args:
        ds: Canonical Dataset.
        channels: Names of those that are read.
        done: Positions of the time steps to leave out.

    Returns:
        Blocks in the order of time.
    """
    step = bytes_per_step(ds, channels)
    joined, largest = max(1, _WORTH_A_TASK // step), max(1, _LARGEST_BLOCK // step)
    ends = [0]  # of the blocks
    for start, stop in pairwise([0, *np.cumsum(time_chunks(ds[list(channels)])).tolist()]):
        if len(ends) > 1 and stop - ends[-2] <= joined:
            ends[-1] = stop
        else:
            parts = -(-(stop - start) // largest)
            ends += [start + (stop - start) * part // parts for part in range(1, parts + 1)]
    return [run for start, stop in pairwise(ends) for run in _runs(start, stop, done)]


def bytes_per_step(ds: xr.Dataset, channels: Sequence[str]) -> int:
    """Bytes of one image: float32 (channel, lat, lon)."""
    return 4 * len(channels) * ds.sizes["lat"] * ds.sizes["lon"]


def segments(fields: xr.Dataset, blocks: Sequence[Block]) -> Iterator[tuple[Segment, list[Block]]]:
    """Cut a Dataset into pieces whose dask graphs are small, each with the blocks in it.

    Whatever dask computes or cuts takes time in proportion to the graph that it comes from: of 87,600 chunks, a block
    takes 50 ms per channel before anything is read, and of a piece 2 ms. Hence also the pieces of pieces.
    """
    if not blocks:
        return
    whole, large = Segment(0, fields), 16 * _SEGMENT
    parts = [(whole, blocks)] if blocks[-1].stop - blocks[0].start <= large else _pieces(whole, blocks, large)
    for part, within in parts:
        yield from _pieces(part, within, _SEGMENT)


def read_block(segment: Segment, block: Block, reading: Reading = nullcontext) -> xr.Dataset:
    """The time steps of a block, loaded.

    Raises:
        InputError: What reading or the Dataset's own lazy functions raise.
    """
    lazy = segment.fields.isel(time=slice(block.start - segment.start, block.stop - segment.start))
    context = reading() if lazy.nbytes <= _FILES_KEPT_OPEN else nullcontext()
    with context, dask.config.set(_CULL_ALONE):
        return lazy.compute(scheduler="synchronous")


def _pieces(whole: Segment, blocks: Sequence[Block], steps: int) -> Iterator[tuple[Segment, list[Block]]]:
    here: list[Block] = []
    for block in blocks:
        if here and block.stop - here[0].start > steps:
            yield _cut(whole, here), here
            here = []
        here.append(block)
    if here:
        yield _cut(whole, here), here


def _cut(whole: Segment, blocks: Sequence[Block]) -> Segment:
    start = blocks[0].start
    steps = slice(start - whole.start, blocks[-1].stop - whole.start)
    with dask.config.set(_CULL_ALONE):
        (piece,) = optimize(whole.fields.isel(time=steps))  # type: ignore[no-untyped-call]
    return Segment(start, piece)


def _runs(start: int, stop: int, done: Container[int]) -> Iterator[Block]:
    """The runs of steps that are not done."""
    for is_done, run in groupby(range(start, stop), key=lambda index: index in done):
        if not is_done:
            steps = list(run)
            yield Block(steps[0], steps[-1] + 1)
