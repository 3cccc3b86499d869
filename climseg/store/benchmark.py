"""How fast a store is written, beside plain copying of the same bytes on the same machine at the same time."""

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

import netCDF4
import xarray as xr

from climseg.blocks import Reading
from climseg.canonical import DIMS
from climseg.channels import CHANNELS, LABELS
from climseg.cluster import Cluster, in_process
from climseg.store.info import image_chunk, mask_chunk
from climseg.store.writer import write_store

# Time steps that are read at once when copying.
_RUN: Final = 8


@dataclass(frozen=True)
class Comparison:
    """Repeated measurements of copying and of preparing the same bytes.

    Attributes:
        channels: Number of channels.
        bytes: What each of the two writes.
        copy: Seconds of copying, one per repeat.
        prepare: Seconds of preparing, one per repeat.
    """

    channels: int
    bytes: int
    copy: list[float]
    prepare: list[float]

    @property
    def share(self) -> float:
        """Speed of preparing as a share of the speed of copying, from the medians."""
        return median(self.copy) / median(self.prepare)


def compare_with_copying(
    paths: Sequence[Path],
    open_files: Callable[[], xr.Dataset],
    folder: Path,
    *,
    repeats: int = 3,
    cluster: Callable[[], AbstractContextManager[Cluster]] = in_process,
    reading: Reading = nullcontext,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Comparison:
    """Copy files and prepare a store from them, in turn, and time both.

    Both read every channel and LABELS of every time step once and write the same chunk files. Opening the files counts,
    starting the processes does not. Copying does nothing else: no units, no axes, no checks, no statistics. What either
    wrote is removed before the next is timed.

    Args:
        paths: netCDF files with CAM5 names, the 16 channels in any order, and LABELS, all on (time, lat, lon).
        open_files: Opens the same files as one canonical Dataset with LABELS.
        folder: An empty one, where both write.
        repeats: How often each is done.
        cluster: Where the tasks of both run.
        reading: As for ``write_store``.
        progress: Called with (measurements done, all).
    """
    channels = _channels(paths[0])
    copied, prepared = folder / "copy", folder / "store"
    copy_seconds, prepare_seconds = [], []
    written = 0
    with cluster() as workers:
        progress(0, 2 * repeats)
        for repeat in range(repeats):
            start = time.perf_counter()
            written = copy_files(paths, copied, workers)
            copy_seconds.append(time.perf_counter() - start)
            shutil.rmtree(copied)
            progress(2 * repeat + 1, 2 * repeats)

            start = time.perf_counter()
            _prepare(open_files(), channels, prepared, workers, reading)
            prepare_seconds.append(time.perf_counter() - start)
            shutil.rmtree(prepared)
            progress(2 * repeat + 2, 2 * repeats)
    return Comparison(len(channels), written, copy_seconds, prepare_seconds)


def copy_files(paths: Sequence[Path], folder: Path, workers: Cluster) -> int:
    """Write the channels of each time step, one after the other, and LABELS into files as a store has them.

    Returns:
        Bytes written.
    """
    folder.mkdir()
    work = [(folder, list(_runs(paths)))]
    return sum(workers.run(_copy_run, work))


@dataclass(frozen=True)
class _Run:
    """Time steps ``start`` to ``stop - 1`` of a file; the first of them is step ``index`` of all."""

    path: Path
    start: int
    stop: int
    index: int


def _runs(paths: Sequence[Path]) -> Iterator[_Run]:
    index = 0
    for path in paths:
        with netCDF4.Dataset(path) as file:
            steps = file.dimensions["time"].size
        for start in range(0, steps, _RUN):
            yield _Run(path, start, min(start + _RUN, steps), index + start)
        index += steps


def _copy_run(folder: Path, run: _Run) -> int:
    with netCDF4.Dataset(run.path) as file:
        file.set_auto_maskandscale(False)
        fields = {n: v[run.start : run.stop] for n, v in file.variables.items() if v.dimensions == DIMS}
    written = 0
    for offset in range(run.stop - run.start):
        image, mask = (chunk(folder, run.index + offset) for chunk in (image_chunk, mask_chunk))
        for path, names in ((image, [n for n in fields if n in CHANNELS]), (mask, [LABELS])):
            path.parent.mkdir(parents=True)
            with path.open("wb") as out:
                for name in names:
                    fields[name][offset].tofile(out)
            written += path.stat().st_size
    return written


def _prepare(
    ds: xr.Dataset,
    channels: Sequence[str],
    output: Path,
    workers: Cluster,
    reading: Reading,
) -> None:
    write_store(
        ds,
        ds[LABELS],
        output,
        channels=channels,
        splits=["train"] * ds.sizes["time"],
        request={},
        cluster=lambda: nullcontext(workers),
        reading=reading,
    )


def _channels(path: Path) -> list[str]:
    with netCDF4.Dataset(path) as file:
        return [name for name in file.variables if name in CHANNELS]
