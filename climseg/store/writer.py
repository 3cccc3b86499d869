"""Writing a store with dask: one task per time step, resumable, under its final name only when complete.

The samples are written to ``.NAME.partial``. A line of ``progress.jsonl`` is appended when a time step is safely there;
a second run with the same request skips those. At the end the statistics are merged and the folder is renamed.
"""

import json
import logging
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import numpy as np
import xarray as xr
import zarr
from dask.base import compute
from dask.delayed import delayed

from climseg.atomic import partial_path, sole_writer
from climseg.canonical import LABEL_ATTRIBUTES, check_canonical, check_values, iso_times
from climseg.channels import CHANNELS, CLASSES, LABELS, MISSING_LABEL
from climseg.errors import InputError
from climseg.grid import is_periodic
from climseg.masks import encode_times
from climseg.store.info import StoreInfo
from climseg.store.statistics import SampleStatistics, merge_statistics, sample_statistics

log = logging.getLogger(__name__)

Progress = Callable[[int, int], None]
_REQUEST_FILE: Final = "request.json"
_PROGRESS_FILE: Final = "progress.jsonl"


def input_manifest(paths: Sequence[Path]) -> list[dict[str, Any]]:
    """Name, size (bytes) and modification time (ns) of every input file, so that a changed file is noticed."""
    return [{"path": str(p.resolve()), "size": p.stat().st_size, "modified_ns": p.stat().st_mtime_ns} for p in paths]


def write_store(
    ds: xr.Dataset,
    masks: xr.DataArray,
    output: Path,
    *,
    channels: Sequence[str],
    splits: Sequence[str],
    request: dict[str, Any],
    workers: int = 2,
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
        workers: Threads that read, label and write.
        progress: Called with (time steps done, all time steps).
        origin: The input to name in an error.

    Returns:
        The description of the complete store.

    Raises:
        InputError: A channel is missing, constant, or holds missing or impossible values at a named time; no cell of
            the training split is labelled; the output exists and was made from another request, or is being written.
    """
    check_canonical(ds, channels, origin)
    if workers < 1:
        raise InputError(f"workers={workers}: expected at least 1.")
    request = json.loads(json.dumps(request | {"channels": list(channels), "splits": list(splits)}))
    if output.exists():
        info = StoreInfo.read(output)
        if info.request != request:
            raise InputError(
                f"{output} exists and was made from other input or options; choose another output or remove it."
            )
        log.info("%s is complete already", output)
        return info

    partial = partial_path(output)
    with sole_writer(output):
        done = _open_partial(partial, ds, channels, request)
        try:
            _write_samples(partial, ds, masks, channels, done, workers, progress, origin)
            info = _describe(ds, masks, channels, splits, done, request)
        except InputError:
            shutil.rmtree(partial)  # going on with it would meet the same mistake
            raise
        info.write(partial)
        partial.replace(output)
        for name in (_PROGRESS_FILE, _REQUEST_FILE):
            (output / name).unlink()
    return info


def _write_samples(
    partial: Path,
    ds: xr.Dataset,
    masks: xr.DataArray,
    channels: Sequence[str],
    done: dict[int, SampleStatistics],
    workers: int,
    progress: Progress,
    origin: str,
) -> None:
    """Write the time steps that are not done yet, and note their statistics in ``done`` and in the progress file."""
    images = ds[list(channels)].to_dataarray("channel").transpose("time", "channel", "lat", "lon")
    times = iso_times(ds)
    group = zarr.open_group(partial, mode="r+")
    todo = [i for i in range(len(times)) if i not in done]
    progress(len(done), len(times))
    batch = 2 * workers
    with (partial / _PROGRESS_FILE).open("a", encoding="utf-8") as lines:
        for start in range(0, len(todo), batch):
            indices = todo[start : start + batch]
            tasks = [
                delayed(_write_sample)(images[i].data, masks[i].data, group, i, times[i], list(channels), origin)
                for i in indices
            ]
            results = compute(*tasks, scheduler="threads", num_workers=workers)  # type: ignore[no-untyped-call]
            for i, statistics in zip(indices, results, strict=True):
                done[i] = statistics
                lines.write(json.dumps({"index": i} | asdict(statistics)) + "\n")
            lines.flush()
            progress(len(done), len(times))


def _open_partial(
    partial: Path, ds: xr.Dataset, channels: Sequence[str], request: dict[str, Any]
) -> dict[int, SampleStatistics]:
    """Make the unfinished store, or find what an interrupted run of the same request has done already."""
    if partial.exists() and _read_json(partial / _REQUEST_FILE) == request:
        done = _read_progress(partial / _PROGRESS_FILE)
        log.info("going on with %s: %d time steps are there", partial, len(done))
        return done
    if partial.exists():
        log.info("%s is from another request and is begun anew", partial)
        shutil.rmtree(partial)
    partial.mkdir()
    _create_arrays(partial, ds, channels)
    # Last, so that a folder with a request in it is always whole.
    (partial / _REQUEST_FILE).write_text(json.dumps(request), encoding="utf-8")
    return {}


def _create_arrays(folder: Path, ds: xr.Dataset, channels: Sequence[str]) -> None:
    """The Zarr group: coordinates by xarray, empty image and mask arrays with one chunk per time step."""
    coordinates = (
        ds[["time", "lat", "lon"]].drop_attrs(deep=False).assign_coords(channel=np.array(channels, dtype=object))
    )
    for name in ("lat", "lon"):
        coordinates[name].attrs = {k: v for k, v in ds[name].attrs.items() if isinstance(v, str)}
    units, calendar, _ = encode_times(ds["time"])
    coordinates["time"].encoding = {"units": units, "calendar": calendar, "dtype": "int64"}
    coordinates.to_zarr(folder, mode="w", zarr_format=3, consolidated=False)
    group = zarr.open_group(folder, mode="r+")
    steps, rows, columns = (ds.sizes[d] for d in ("time", "lat", "lon"))
    group.create_array(
        "image",
        shape=(steps, len(channels), rows, columns),
        chunks=(1, len(channels), rows, columns),
        dtype="float32",
        compressors=None,
        dimension_names=("time", "channel", "lat", "lon"),
        attributes={
            "long_name": "channels in canonical units",
            "units_of_channels": [CHANNELS[c].units for c in channels],
        },
    )
    group.create_array(
        "mask",
        shape=(steps, rows, columns),
        chunks=(1, rows, columns),
        dtype="int8",
        compressors=None,
        dimension_names=("time", "lat", "lon"),
        attributes=LABEL_ATTRIBUTES | {"flag_values": np.asarray(LABEL_ATTRIBUTES["flag_values"]).tolist()},
    )


def _write_sample(
    image: np.ndarray[Any, np.dtype[np.float32]],
    mask: np.ndarray[Any, np.dtype[np.int8]],
    group: zarr.Group,
    index: int,
    time: str,
    channels: list[str],
    origin: str,
) -> SampleStatistics:
    """Check and write one time step; returns its statistics."""
    for channel, values in zip(channels, image, strict=True):
        check_values(channel, values, time, origin)
    strange = np.setdiff1d(mask, [*range(len(CLASSES)), MISSING_LABEL])
    if strange.size:
        raise InputError(
            f"{LABELS} holds {strange[0]} at {time}; expected 0 (background), 1 (tropical cyclone), 2 (atmospheric "
            f"river) or {MISSING_LABEL} (not labelled)."
        )
    for name, values in (("image", image), ("mask", mask)):
        array = group[name]
        assert isinstance(array, zarr.Array)
        array[index] = values
    return sample_statistics(image, mask)


def _describe(
    ds: xr.Dataset,
    masks: xr.DataArray,
    channels: Sequence[str],
    splits: Sequence[str],
    done: dict[int, SampleStatistics],
    request: dict[str, Any],
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
    )


def _read_json(path: Path) -> Any:
    """Content of a JSON file, or None when it is absent or broken."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError):
        return None


def _read_progress(path: Path) -> dict[int, SampleStatistics]:
    """Time steps that are safely written; a last line cut off by a kill does not count."""
    done: dict[int, SampleStatistics] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            entry = json.loads(line)
        except json.JSONDecodeError:
            continue
        index = entry.pop("index")
        done[index] = SampleStatistics(**entry)
    return done
