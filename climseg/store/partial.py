"""The unfinished store: made, gone on with, and its progress.

It lies beside the store as ``.NAME.partial`` and holds besides

    request.json       what it is made from
    progress.jsonl     a line for each time step that is safely there, with its statistics
"""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
import xarray as xr
import zarr

from climseg.canonical import LABEL_ATTRIBUTES
from climseg.channels import CHANNELS
from climseg.masks import encode_times
from climseg.store.packing import StoredType
from climseg.store.statistics import SampleStatistics
from climseg.unfinished import begin, is_left_by, sign

log = logging.getLogger(__name__)

PROGRESS_FILE: Final = "progress.jsonl"
_FORMULA: Final = "values = image * image_scale + image_offset"


def open_partial(
    folder: Path,
    ds: xr.Dataset,
    channels: Sequence[str],
    request: Mapping[str, Any],
    dtype: StoredType = "float32",
) -> dict[int, SampleStatistics]:
    """Make the unfinished store, or find what an interrupted run of the same request has done already.

    Returns:
        The statistics of the time steps that are there, by their positions.
    """
    done = find_done(folder, request)
    if done is not None:
        log.info("going on with %s: %d time steps are there", folder, len(done))
        return done
    begin(folder)
    _create_arrays(folder, ds, channels, dtype)
    sign(folder, request)
    return {}


def find_done(folder: Path, request: Mapping[str, Any]) -> dict[int, SampleStatistics] | None:
    """The time steps that an interrupted run of the same request left in a folder, or None without such a folder."""
    return _read_progress(folder / PROGRESS_FILE) if is_left_by(folder, request) else None


def note_done(lines: IO[str], done: Mapping[int, SampleStatistics]) -> None:
    """Add time steps to the progress file."""
    lines.writelines(json.dumps({"index": i} | asdict(statistics)) + "\n" for i, statistics in done.items())
    lines.flush()


def _create_arrays(folder: Path, ds: xr.Dataset, channels: Sequence[str], dtype: StoredType) -> None:
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
        dtype=dtype,
        compressors=None,
        dimension_names=("time", "channel", "lat", "lon"),
        attributes={
            "long_name": "channels in canonical units" if dtype == "float32" else f"packed channels: {_FORMULA}",
            "units_of_channels": [CHANNELS[c].units for c in channels],
        },
    )
    for name in () if dtype == "float32" else ("image_scale", "image_offset"):
        group.create_array(
            name,
            shape=(steps, len(channels)),
            chunks=(steps, len(channels)),
            dtype="float32",
            compressors=None,
            dimension_names=("time", "channel"),
            attributes={"long_name": f"packed channels: {_FORMULA}"},
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
