"""Writing a store block by block in time, in parallel, resumable, under its final name only when complete.

The samples are written to an unfinished store (``partial``), by tasks (``task``) that run in this or other processes
(``climseg.cluster``). At the end the statistics are merged and the folder is renamed.
"""

import json
import logging
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import xarray as xr

from climseg.atomic import partial_path, sole_writer
from climseg.blocks import Block, Progress, Reading, bytes_per_step, segments, time_blocks
from climseg.canonical import check_canonical, iso_times
from climseg.channels import CHANNELS, LABELS
from climseg.cluster import Cluster, ClusterError, in_process
from climseg.errors import InputError
from climseg.grid import is_periodic
from climseg.store.info import INFO_FILE, StoreInfo, write_packing
from climseg.store.packing import StoredType
from climseg.store.partial import PROGRESS_FILE, find_done, note_done, open_partial
from climseg.store.statistics import SampleStatistics, merge_statistics, sample_packing
from climseg.store.task import StoreTask, write_block
from climseg.unfinished import REQUEST_FILE

log = logging.getLogger(__name__)

# Measured: bytes of a worker process with xarray, dask and netCDF4 loaded, and what it holds beside a block while it
# reads and decodes it, as a share of the block.
_PROCESS: Final = 170 * 2**20
_READING: Final = 0.25


@dataclass(frozen=True)
class StorePlan:
    """What writing a store would do.

    Attributes:
        steps: Number of time steps.
        done: How many of them are there already.
        store_bytes: Size of all images and masks.
        blocks: Number of tasks for what is not there.
        worker_bytes: Roughly the memory that one worker process takes.
    """

    steps: int
    done: int
    store_bytes: int
    blocks: int
    worker_bytes: int


def plan_store(
    ds: xr.Dataset,
    output: Path,
    *,
    channels: Sequence[str],
    splits: Sequence[str],
    request: Mapping[str, Any],
    dtype: StoredType = "float32",
    origin: str = "input",
) -> StorePlan:
    """Say what :func:`write_store` with the same arguments would do, and write nothing.

    Raises:
        InputError: A channel is missing, or the output exists and was made from another request.
    """
    check_canonical(ds, channels, origin)
    steps, step = ds.sizes["time"], bytes_per_step(ds, channels)
    complete = read_complete(output, channels=channels, splits=splits, request=request, dtype=dtype) is not None
    request = _whole(request, channels, splits, dtype)
    done = range(steps) if complete else find_done(partial_path(output), request) or {}
    blocks = time_blocks(ds, channels, done)
    longest = max((block.stop - block.start for block in time_blocks(ds, channels)), default=0)
    return StorePlan(
        steps=steps,
        done=len(done),
        store_bytes=steps * (_stored_bytes(step, len(channels), dtype) + ds.sizes["lat"] * ds.sizes["lon"]),
        blocks=len(blocks),
        worker_bytes=_PROCESS + round(longest * step * (1 + _READING)),
    )


def write_store(
    ds: xr.Dataset,
    masks: xr.DataArray,
    output: Path,
    *,
    channels: Sequence[str],
    splits: Sequence[str],
    request: dict[str, Any],
    dtype: StoredType = "float32",
    cluster: Callable[[], AbstractContextManager[Cluster]] = in_process,
    reading: Reading = nullcontext,
    progress: Progress = lambda done, total: None,
    origin: str = "input",
) -> StoreInfo:
    """Write images, masks, statistics and splits of a canonical Dataset.

    Args:
        ds: Canonical Dataset; lazy.
        masks: LABELS (time, lat, lon) int8 class numbers on the same axes; lazy. Its ``definition`` attribute, if any,
            says what the classes mean.
        output: The store's folder.
        channels: Channel names in the order of the tensor axis.
        splits: For each time step ``train``, ``validation``, ``test`` or ``gap``.
        request: What makes this store: input files and options (JSON types). A run with another request starts afresh.
        dtype: How images are stored; the error of the half-sized types is told by ``packing.largest_error``. Statistics
            are those of the values before.
        cluster: Where the tasks run: a function of ``climseg.cluster``, called only if something is to do.
        reading: The context in which a task reads a small block, such as one that keeps the files of the source open.
        progress: Called with (time steps done, all time steps).
        origin: The input to name in an error.

    Returns:
        The description of the complete store.

    Raises:
        InputError: A channel is missing, constant, or holds missing or impossible values at a named time; no cell of
            the training split is labelled; the output exists and was made from another request, or is being written;
            the cluster failed (``ClusterError``; what is done is kept, as with any other interruption).
    """
    check_canonical(ds, channels, origin)
    complete = read_complete(output, channels=channels, splits=splits, request=request, dtype=dtype)
    request = _whole(request, channels, splits, dtype)
    if complete is not None:
        log.info("%s is complete already", output)
        return complete

    partial = partial_path(output.absolute())
    with sole_writer(output):
        done = open_partial(partial, ds, channels, request, dtype)
        try:
            blocks = time_blocks(ds, channels, done)
            if blocks:
                labels = masks.transpose("time", "lat", "lon").variable
                fields = ds[list(channels)].assign({LABELS: labels})
                work = (
                    (StoreTask(segment, partial, origin, reading, dtype), within)
                    for segment, within in segments(fields, blocks)
                )
                _write_blocks(partial, work, cluster, done, lambda: progress(len(done), ds.sizes["time"]))
            info = _describe(ds, masks, channels, splits, done, request, dtype)
        except InputError as error:
            if not done or not isinstance(error, ClusterError):
                shutil.rmtree(partial)  # going on with it would meet the same mistake
            raise
        rows = [row for i in range(len(splits)) if (row := sample_packing(done[i], dtype)) is not None]
        if rows:
            write_packing(partial, rows)
        info.write(partial)
        partial.replace(output)
        for name in (PROGRESS_FILE, REQUEST_FILE):
            (output / name).unlink()
    return info


def read_complete(
    output: Path,
    *,
    channels: Sequence[str],
    splits: Sequence[str],
    request: Mapping[str, Any],
    dtype: StoredType = "float32",
) -> StoreInfo | None:
    """The store that :func:`write_store` with the same arguments would make, if it is there already.

    Raises:
        InputError: Something else is there.
    """
    if not output.exists():
        return None
    if not (output / INFO_FILE).is_file():
        raise InputError(f"{output} exists and is no climseg store (no {INFO_FILE} in it); choose another output.")
    info = StoreInfo.read(output)
    if info.request != _whole(request, channels, splits, dtype):
        raise InputError(
            f"{output} exists and was made from other input or options; choose another output or remove it."
        )
    return info


def _write_blocks(
    partial: Path,
    work: Iterable[tuple[StoreTask, list[Block]]],
    cluster: Callable[[], AbstractContextManager[Cluster]],
    done: dict[int, SampleStatistics],
    progress: Callable[[], None],
) -> None:
    """Run the tasks, and note the statistics of their time steps in ``done`` and in the progress file."""
    with (
        cluster() as workers,
        (partial / PROGRESS_FILE).open("a", encoding="utf-8") as lines,
        closing(workers.run(write_block, work)) as results,
    ):
        progress()
        for written in results:
            note_done(lines, written)
            done |= written
            progress()


def _whole(
    request: Mapping[str, Any], channels: Sequence[str], splits: Sequence[str], dtype: StoredType
) -> dict[str, Any]:
    """The request with all that makes the store, as JSON gives it back."""
    # float32 goes without saying, as in the stores of format 1.
    packed = {} if dtype == "float32" else {"dtype": dtype}
    request = {**request, "channels": list(channels), "splits": list(splits), **packed}
    whole: dict[str, Any] = json.loads(json.dumps(request))
    return whole


def _stored_bytes(float32_bytes: int, channels: int, dtype: StoredType) -> int:
    """Bytes of one image, with its scales and offsets."""
    return float32_bytes if dtype == "float32" else float32_bytes // 2 + 2 * 4 * channels


def _describe(
    ds: xr.Dataset,
    masks: xr.DataArray,
    channels: Sequence[str],
    splits: Sequence[str],
    done: dict[int, SampleStatistics],
    request: dict[str, Any],
    dtype: StoredType,
) -> StoreInfo:
    """Merge the statistics of the training split and gather what the store says about itself."""
    statistics, class_pixels = merge_statistics(done[i] for i, s in enumerate(splits) if s == "train")
    if sum(class_pixels) == 0:
        raise InputError("no cell of the training split carries a label; give files whose LABELS are not all missing.")
    for channel, std, value in zip(channels, statistics.std, statistics.mean, strict=True):
        if std == 0.0:
            raise InputError(
                f"channel {channel} is {value:g} everywhere in the training split; leave it out: name the others in "
                "channels=[...]."
            )
    return StoreInfo(
        channels=list(channels),
        units=[CHANNELS[c].units for c in channels],
        comments={c: ds[c].attrs["comment"] for c in channels if "comment" in ds[c].attrs},
        lat=ds["lat"].values.tolist(),
        lon=ds["lon"].values.tolist(),
        periodic=is_periodic(ds["lon"].values),
        calendar=ds["time"].dt.calendar,
        times=iso_times(ds),
        splits=list(splits),
        statistics=statistics,
        class_pixels=class_pixels,
        labels=str(masks.attrs.get("definition", "labels that came with the files")),
        request=request,
        dtype=dtype,
    )
