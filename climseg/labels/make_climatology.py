"""A climatology of the vapour transport from the input itself: read once, then percentiles row by row.

Beside a file ``usual.nc`` the folder ``.usual.nc.spool`` holds the transport of all steps until the file is there, four
bytes for each cell and step; an interrupted run goes on with the steps that are not in it.
"""

import functools
import shutil
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from climseg.atomic import atomic_file, sole_writer
from climseg.blocks import Block, Progress, Reading, Segment, read_block, segments, time_blocks
from climseg.canonical import COORDINATE_ATTRIBUTES, check_range, iso_times
from climseg.cluster import Cluster, ClusterError, for_tasks, in_process
from climseg.errors import InputError
from climseg.labels.climatology import HALF_WINDOW, create_spool, row_percentiles, spool_step
from climseg.labels.rivers_guan_waliser import PERCENTILE, atmospheric_rivers
from climseg.unfinished import MARK, begin, is_left_by, request_mark, sign

# What a task holds of the series of its rows, bytes.
_ROWS_AT_ONCE: Final = 64 * 2**20


@dataclass(frozen=True)
class SpoolTask:
    """What a task needs to write any block of a segment into the spool.

    Attributes:
        segment: UIVT and VIVT, lazy.
        spool: The file.
        origin: The input to name in an error.
        reading: Around the reading of a small block.
    """

    segment: Segment
    spool: Path
    origin: str
    reading: Reading


@dataclass(frozen=True)
class RowsTask:
    """What a task needs to take the percentiles of some rows.

    Attributes:
        spool: The file.
        months: (time,) 1 to 12.
        percentile: 0 to 100.
        min_steps: How many values a cell must have.
    """

    spool: Path
    months: NDArray[np.int64]
    percentile: float
    min_steps: int


def make_climatology(
    ds: xr.Dataset,
    output: Path,
    *,
    percentile: float,
    min_steps: int,
    request: Mapping[str, Any],
    cluster: Callable[[], AbstractContextManager[Cluster]] = in_process,
    reading: Reading = nullcontext,
    progress: Progress = lambda done, total: None,
    origin: str = "input",
) -> None:
    """Write the percentile of the transport in the five months round each month, at each cell of the input.

    A file that was made of the same request is left as it is.

    Args:
        ds: Canonical Dataset with UIVT and VIVT; lazy.
        output: netCDF file: ``ivt_percentile`` (month, lat, lon) float32 in kg/m/s.
        percentile: 0 to 100.
        min_steps: The fewest time steps in the five months round a month of the input.
        request: What it is made from: input files and options (JSON types).
        cluster: Where the tasks run: a function of ``climseg.cluster``.
        reading: The context in which a task reads a small block.
        progress: Called with (time steps read, all time steps).
        origin: The input to name in an error.

    Raises:
        InputError: The input has too few time steps, or impossible values at a named time, the cluster failed, or a
            file of that name is there which climseg did not make.
    """
    wanted = request_mark(dict(request) | {"percentile": percentile, "min_steps": min_steps})
    if _mark_of(output) == wanted:
        return
    months = ds["time"].dt.month.values
    check_steps(months, min_steps, origin)
    folder = output.with_name(f".{output.name}.spool")
    with sole_writer(folder):
        spool, done = _open_spool(folder, wanted, ds)
        try:
            _spool(ds, spool, done, cluster, reading, progress, origin)
            values = _percentiles(ds, RowsTask(spool, months, percentile, min_steps), cluster)
        except InputError as error:
            if not isinstance(error, ClusterError):
                shutil.rmtree(folder)  # going on with it would meet the same mistake
            raise
        _write(ds, values, output, percentile, wanted)
        shutil.rmtree(folder)


def lacks_climatology(rivers: Callable[..., Any] | None) -> bool:
    """Whether a definition of rivers asks for a climatology and has none."""
    if not isinstance(rivers, functools.partial):
        return False
    return rivers.func is atmospheric_rivers and rivers.keywords.get("climatology") is None


def spool_block(task: SpoolTask, block: Block) -> Block:
    """Write the transport of a block of time steps into the spool.

    Raises:
        InputError: UIVT or VIVT holds values that its unit cannot give, at a named time.
    """
    fields = read_block(task.segment, block, task.reading)
    east, north = fields["UIVT"].values, fields["VIVT"].values
    for offset, time in enumerate(iso_times(fields)):
        check_range("UIVT", east[offset], time, task.origin)
        check_range("VIVT", north[offset], time, task.origin)
        spool_step(task.spool, block.start + offset, np.hypot(east[offset], north[offset]))
    return block


def percentiles_of_rows(task: RowsTask, rows: tuple[int, int]) -> tuple[tuple[int, int], NDArray[np.float32]]:
    """The percentiles (12, rows, lon) of the rows from the first of a pair to the one before the second."""
    return rows, row_percentiles(task.spool, slice(*rows), task.months, task.percentile, task.min_steps)


def check_steps(months: NDArray[np.int64], min_steps: int, origin: str) -> None:
    """Refuse an input in which a percentile means nothing.

    Args:
        months: (time,) 1 to 12.
        min_steps: The fewest time steps in the five months round a month of the input.
        origin: The input to name.

    Raises:
        InputError: There are fewer; the count and the mend are said.
    """
    there = np.bincount(months, minlength=13)[1:]
    for month in np.flatnonzero(there) + 1:
        around = int(sum(there[(month - 1 + shift) % 12] for shift in range(-HALF_WINDOW, HALF_WINDOW + 1)))
        if around < min_steps:
            raise InputError(
                f"{origin}: {around} time steps lie in the five months round month {month}, too few for a percentile "
                f"(at least {min_steps}); give more time steps, or a climatology made from more as "
                "labels.rivers.climatology=FILE."
            )


def _open_spool(folder: Path, wanted: str, ds: xr.Dataset) -> tuple[Path, set[int]]:
    """The spool, new or of an interrupted run of the same request, and the steps that are in it."""
    spool, progress = folder / "transport.npy", folder / "done.txt"
    if is_left_by(folder, wanted):
        done: set[int] = set()
        for line in progress.read_text(encoding="utf-8").splitlines() if progress.is_file() else []:
            match line.split():
                case [start, stop, "."]:  # whole; a kill may have cut off another
                    done.update(range(int(start), int(stop)))
        return spool, done
    begin(folder)
    try:
        create_spool(spool, ds.sizes["lat"], ds.sizes["time"], ds.sizes["lon"])
    except OSError as error:
        shutil.rmtree(folder)  # a full disk needs its bytes
        size = f"{4e-9 * ds['lat'].size * ds['time'].size * ds['lon'].size:.3g} GB"
        raise InputError(
            f"{spool}: the transport of all time steps ({size}) cannot be kept here ({error.strerror}); choose an "
            "output on a larger disk, or give a climatology as labels.rivers.climatology=FILE."
        ) from error
    sign(folder, wanted)
    return spool, set()


def _spool(
    ds: xr.Dataset,
    spool: Path,
    done: set[int],
    cluster: Callable[[], AbstractContextManager[Cluster]],
    reading: Reading,
    progress: Progress,
    origin: str,
) -> None:
    blocks = time_blocks(ds, ["UIVT", "VIVT"], done)
    if not blocks:
        return
    work = (
        (SpoolTask(segment, spool, origin, reading), within)
        for segment, within in segments(ds[["UIVT", "VIVT"]], blocks)
    )
    finished = len(done)
    with (
        for_tasks(cluster, len(blocks)) as workers,
        (spool.parent / "done.txt").open("a", encoding="utf-8") as lines,
        closing(workers.run(spool_block, work)) as results,
    ):
        progress(finished, ds.sizes["time"])
        for block in results:
            lines.write(f"{block.start} {block.stop} .\n")  # the dot: the line is whole
            lines.flush()
            finished += block.stop - block.start
            progress(finished, ds.sizes["time"])


def _percentiles(
    ds: xr.Dataset, task: RowsTask, cluster: Callable[[], AbstractContextManager[Cluster]]
) -> NDArray[np.float32]:
    rows, columns = ds.sizes["lat"], ds.sizes["lon"]
    at_once = max(1, _ROWS_AT_ONCE // (4 * task.months.size * columns))
    pieces = [(first, min(first + at_once, rows)) for first in range(0, rows, at_once)]
    values = np.full((12, rows, columns), np.nan, dtype=np.float32)
    with (
        for_tasks(cluster, len(pieces)) as workers,
        closing(workers.run(percentiles_of_rows, [(task, pieces)])) as results,
    ):
        for (first, last), found in results:
            values[:, first:last] = found
    return values


def _write(ds: xr.Dataset, values: NDArray[np.float32], output: Path, percentile: float, wanted: str) -> None:
    attributes = {
        "long_name": f"percentile {percentile:g} of the vapour transport in the five months round each month",
        "units": "kg m-1 s-1",
    }
    times = iso_times(ds)
    result = xr.Dataset(
        {PERCENTILE: (("month", "lat", "lon"), values, attributes)},
        coords={"month": np.arange(1, 13, dtype=np.int32), "lat": ds["lat"].values, "lon": ds["lon"].values},
        attrs={
            "Conventions": "CF-1.8",
            "title": "climatology of vapour transport by climseg",
            "time_coverage": f"{times[0]} to {times[-1]}, {len(times)} time steps",
            MARK: wanted,
        },
    )
    result["month"].attrs = {"long_name": "month of the year, 1 for January", "units": "1"}
    for name in ("lat", "lon"):
        result[name].attrs = dict(COORDINATE_ATTRIBUTES[name])
    encoding: dict[str, dict[str, Any]] = {name: {"_FillValue": None} for name in ("lat", "lon")}  # as CF has it
    encoding[PERCENTILE] = {"zlib": True, "complevel": 4}
    with atomic_file(output) as partial:
        try:
            result.to_netcdf(partial, engine="netcdf4", encoding=encoding)
        except (OSError, RuntimeError) as error:  # "permission denied" or "HDF error", also for a full disk
            raise InputError(f"{output}: could not be written ({error}); is the disk full?") from error


def _mark_of(output: Path) -> str | None:
    """The mark of the request that a climatology was made of; None where there is no such file.

    Raises:
        InputError: Another file has its name.
    """
    if not output.exists():
        return None
    try:
        with xr.open_dataset(output, engine="netcdf4") as ds:
            return str(ds.attrs[MARK])
    except (OSError, ValueError, KeyError) as error:
        raise InputError(
            f"{output} is there, where the climatology of the input is to be made, and climseg did not make it; take "
            "it by labels.rivers.climatology=FILE, or move it away, or choose another output."
        ) from error
