"""``climseg prepare``: files to a store."""

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import hydra
import xarray as xr
from omegaconf import DictConfig
from rich import box
from rich.console import Console
from rich.filesize import decimal
from rich.table import Table

import climseg
from climseg.atomic import sole_writer
from climseg.canonical import iso_times, orient
from climseg.channels import CHANNELS, CLASSES, LABELS
from climseg.cli.fields import input_paths, open_input, plain
from climseg.cli.labelling import (
    Labelling,
    check_same_axes,
    climatology_path,
    label_request,
    open_for,
    run_heuristic,
)
from climseg.cli.progress import progress_bar
from climseg.labels.heuristic import Heuristic
from climseg.labels.spool import spool_path
from climseg.masks import open_masks
from climseg.sources.netcdf import files_kept_open
from climseg.store.packing import StoredType, stored_type
from climseg.store.splits import split_by_time
from climseg.store.writer import StorePlan, plan_store, read_complete, write_store
from climseg.unfinished import MARK, request_mark

log = logging.getLogger(__name__)


def run(configuration: DictConfig) -> None:
    """Open, label, split, write; or only say what would be written."""
    paths = input_paths(configuration.input)
    labels = hydra.utils.instantiate(configuration.labels)
    fields, channels = _open(configuration, paths)
    labelling = open_for(labels, configuration, paths, say_source=False) if isinstance(labels, Heuristic) else None
    if labelling is not None:
        check_same_axes(labelling, fields)

    shares = plain(configuration.splits)
    block_days, gap_hours = shares.pop("block_days"), shares.pop("gap_hours")
    splits = split_by_time(list(fields["time"].to_index()), shares, block_days, gap_hours)
    request = label_request(configuration, paths)
    output = Path(configuration.output)
    store: dict[str, Any] = {
        "channels": channels,
        "splits": splits,
        "request": request,
        "dtype": stored_type(configuration.store.dtype),
        "origin": str(configuration.input),
    }
    if configuration.dry_run:
        Console().print(_table(plan_store(fields, output, **store), fields, output, **store))
        return
    cluster = hydra.utils.instantiate(configuration.cluster)
    with ExitStack() as stack:
        if labelling is None:
            masks = labels(fields)
        elif read_complete(output, **{key: store[key] for key in ("channels", "splits", "request", "dtype")}) is None:
            masks = stack.enter_context(_made_masks(labelling, configuration, paths, request))
        else:
            masks = xr.DataArray()  # write_store finds the store complete
            _remove_masks(_masks_path(output))  # a kill may have left them
        progress = stack.enter_context(progress_bar("time steps"))
        info = write_store(fields, masks, output, cluster=cluster, progress=progress, reading=files_kept_open, **store)
    shares_of_classes = ", ".join(f"{name} {f:.3%}" for name, f in zip(CLASSES, info.frequencies, strict=True))
    log.info(
        "%s: %d channels, time steps: %s; training cells: %s",
        output,
        len(channels),
        _count(splits),
        shares_of_classes,
    )


def _open(configuration: DictConfig, paths: list[str]) -> tuple[xr.Dataset, list[str]]:
    """The input with the channels to store, and their names."""
    chosen = configuration.channels
    if chosen is None:
        fields = open_input(configuration, paths)
        return fields, [str(name) for name in fields.data_vars if name in CHANNELS]
    channels = [str(chosen)] if isinstance(chosen, str) else [str(name) for name in chosen]
    return open_input(configuration, paths, channels), channels


@contextmanager
def _made_masks(
    labelling: Labelling, configuration: DictConfig, paths: list[str], request: dict[str, Any]
) -> Iterator[xr.DataArray]:
    """LABELS (time, lat, lon) by a heuristic, made first into a file beside the store; it goes when the store is there.

    A file that an interrupted run of the same request left is taken as it is.
    """
    file = _masks_path(Path(configuration.output))
    mark = request_mark({"climseg": climseg.__version__, **request})
    # Over both stages, so that no other process makes other masks while the store takes these in.
    with sole_writer(spool_path(file)):
        if not file.is_file() or _mark_of(file) != mark:
            run_heuristic(labelling, configuration, paths, request, file, tables={}, attributes={MARK: mark})
        with open_masks(file) as masks:
            yield orient(masks.chunk(time=1), str(file))[LABELS]
        _remove_masks(file)


def _masks_path(output: Path) -> Path:
    output = output.absolute()
    return output.with_name(f".{output.name}.labels.nc")


def _remove_masks(file: Path) -> None:
    for made in (file, climatology_path(file)):
        made.unlink(missing_ok=True)


def _mark_of(file: Path) -> str:
    with open_masks(file) as masks:
        return str(masks.attrs.get(MARK, ""))


def _count(splits: list[str]) -> str:
    return ", ".join(f"{splits.count(s)} {s}" for s in dict.fromkeys(splits))


def _table(
    plan: StorePlan,
    fields: xr.Dataset,
    output: Path,
    *,
    channels: list[str],
    splits: list[str],
    request: dict[str, Any],
    dtype: StoredType,
    origin: str,
) -> Table:
    """What a dry run says."""
    files = request["input_files"]
    size = sum(file.get("size", 0) for file in files)
    times = iso_times(fields)
    lat, lon = fields["lat"].values, fields["lon"].values
    rows = {
        "input": f"{origin}: {len(files)} {'file' if len(files) == 1 else 'files'}, {decimal(size)}",
        "time": f"{plan.steps} steps, {times[0]} to {times[-1]}, calendar {fields['time'].dt.calendar}",
        "splits": _count(splits),
        "channels": f"{len(channels)}: {', '.join(channels)}",
        "grid": f"{lat.size} x {lon.size}, lat {lat[0]:g} to {lat[-1]:g}, lon {lon[0]:g} to {lon[-1]:g}",
        "store": f"{output}, {decimal(plan.store_bytes)}, images in {dtype}",
        "there already": f"{plan.done} of {plan.steps} steps",
        "to do": f"{plan.blocks} tasks",
        "memory": f"about {decimal(plan.worker_bytes)} for each worker process",
    }
    table = Table(title="Nothing was written. This would be done:", box=box.SIMPLE, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for row in rows.items():
        table.add_row(*row)
    return table
