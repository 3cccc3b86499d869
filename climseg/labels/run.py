"""Labelling a long input in three passes, of which only the first reads the fields.

1. ``find``: rivers and candidates of each time step, in parallel, into a folder (``labels/spool.py``); resumable.
2. ``write``: candidates are linked into tracks in the order of time;
3. and masks and tables are written step by step as soon as the tracks of a step are decided.

Memory holds a block of fields in each process and what lives at one time, however long the input is.
"""

import shutil
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import xarray as xr

from climseg.blocks import Block, Progress, Reading, Segment, read_block, segments, time_blocks
from climseg.canonical import iso_times, source_longitudes
from climseg.cluster import Cluster, ClusterError, for_tasks, in_process
from climseg.errors import InputError
from climseg.labels.heuristic import Heuristic, axes, checked_steps, hours
from climseg.labels.spool import open_spool, read_candidates, read_findings, write_findings
from climseg.labels.tables import Tables, remove_others, table_path
from climseg.masks import MaskWriter


@dataclass(frozen=True)
class LabelTask:
    """What a task needs to look at any block of a segment.

    Attributes:
        segment: The channels that the heuristic takes, lazy.
        heuristic: It.
        folder: Where the findings are kept.
        explain: Also keep what does not count; see :meth:`Heuristic.analyse`.
        origin: The input to name in an error.
        reading: Around the reading of a small block.
    """

    segment: Segment
    heuristic: Heuristic
    folder: Path
    explain: bool
    origin: str
    reading: Reading


def find(
    heuristic: Heuristic,
    ds: xr.Dataset,
    folder: Path,
    *,
    request: Mapping[str, Any],
    explain: bool = False,
    cluster: Callable[[], AbstractContextManager[Cluster]] = in_process,
    reading: Reading = nullcontext,
    progress: Progress = lambda done, total: None,
    origin: str = "input",
) -> None:
    """Look at every time step of a canonical Dataset and keep what is found.

    Args:
        heuristic: What to look for.
        ds: Canonical Dataset with the channels that the heuristic takes, and no others; lazy.
        folder: From :func:`climseg.labels.spool.spool_path`; steps that an interrupted run of the same request left
            there are not done again. The caller holds :func:`climseg.atomic.sole_writer` of it, for both functions.
        request: What makes the masks: input files and options (JSON types).
        explain: Also keep the regions that are no rivers and the candidates that cannot count, and why.
        cluster: Where the tasks run: a function of ``climseg.cluster``, called only if something is to do.
        reading: The context in which a task reads a small block, such as one that keeps the files of the source open.
        progress: Called with (time steps done, all time steps).
        origin: The input to name in an error.

    Raises:
        InputError: A channel holds impossible values at a named time (missing ones pass), or the cluster failed
            (``ClusterError``; what is done is kept, as with any other interruption).
    """
    names, total = [str(name) for name in ds.data_vars], ds.sizes["time"]
    done = open_spool(folder, dict(request) | {"explain": explain})
    blocks = time_blocks(ds, names, done)
    if not blocks:
        return
    work = (
        (LabelTask(segment, heuristic, folder, explain, origin, reading), within)
        for segment, within in segments(ds, blocks)
    )
    try:
        with for_tasks(cluster, len(blocks)) as workers, closing(workers.run(look_at_block, work)) as results:
            finished = len(done)
            progress(finished, total)
            for count in results:
                finished += count
                progress(finished, total)
    except InputError as error:
        if not isinstance(error, ClusterError):
            shutil.rmtree(folder)  # going on with it would meet the same mistake
        raise


def look_at_block(task: LabelTask, block: Block) -> int:
    """Read a block, look at each of its time steps and keep what is found.

    Returns:
        How many steps it has.

    Raises:
        InputError: A channel holds values that its unit cannot give, at a named time.
    """
    fields = read_block(task.segment, block, task.reading)
    for offset, step in enumerate(checked_steps(fields, task.origin)):
        write_findings(task.folder, block.start + offset, task.heuristic.analyse(step, task.explain))
    return block.stop - block.start


def write(
    heuristic: Heuristic,
    ds: xr.Dataset,
    folder: Path,
    output: Path,
    *,
    definition: str,
    attributes: Mapping[str, str],
    command: str,
    tables: Mapping[str, Path],
    progress: Progress = lambda done, total: None,
) -> None:
    """Decide the candidates by their tracks, and write masks and tables; each gets its name when all is written.

    Args:
        heuristic: As for :func:`find`.
        ds: As for :func:`find`; its axes alone count.
        folder: Where all findings are; removed at the end.
        output: The mask file.
        definition: What the classes mean, in words.
        attributes: Global attributes of the mask file.
        command: For its history.
        tables: CSV files by what they hold, from :func:`table_paths`; those of an earlier run go.
        progress: Called with (time steps done, all time steps).

    Raises:
        InputError: A file cannot be written, or the findings of a step cannot be read again.
    """
    lat, lon = axes(ds)
    times, total = iso_times(ds), ds.sizes["time"]
    candidates = (read_candidates(folder, index) for index in range(total))
    with ExitStack() as stack:
        rows = stack.enter_context(Tables(tables, source_longitudes(ds)))
        # Within the tables, so that no new table lies beside old masks where these cannot be written.
        writer = stack.enter_context(MaskWriter(output, ds, attributes, definition, command))
        progress(0, total)
        for index, points in enumerate(heuristic.link(hours(ds), candidates)):
            findings = read_findings(folder, index)
            writer.write(index, heuristic.mask(findings, points, lat, lon))
            rows.write(times[index], list(zip(findings.storms, points, strict=True)), findings.regions)
            progress(index + 1, total)
    remove_others(output, tables)
    shutil.rmtree(folder)


def table_paths(output: Path, heuristic: Heuristic, explain: bool) -> dict[str, Path]:
    """The tables beside a mask file: ``masks_tracks.csv`` and, on demand, why candidates and regions do not count."""
    wanted = []
    if heuristic.cyclones is not None:
        wanted += ["tracks" if heuristic.cyclones.tracks else "cyclones"]
        wanted += ["candidates"] if explain else []
    if heuristic.rivers is not None and explain:
        wanted += ["rivers"]
    return {name: table_path(output, name) for name in wanted}
