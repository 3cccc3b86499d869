"""Ways to read samples that others take, to measure ours beside them.

Each gives for every time step a new image (channel, lat, lon) float32 and its mask (lat, lon).
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import xarray as xr
import zarr
from numpy.typing import NDArray

from climseg.channels import LABELS
from climseg.store.info import StoreInfo, image_chunk, mask_chunk

Samples: TypeAlias = Iterator[tuple[NDArray[np.float32], NDArray[Any]]]


def by_fromfile(store: Path, info: StoreInfo) -> Samples:
    """``np.fromfile`` of the chunk files of a float32 store: the least that reading into new arrays can take."""
    for index in range(len(info.times)):
        image = np.fromfile(image_chunk(store, index), "<f4").reshape(info.shape)
        yield image, np.fromfile(mask_chunk(store, index), "i1").reshape(info.shape[1:])


def by_zarr(store: Path) -> Samples:
    """zarr-python, time step by time step."""
    group = zarr.open_group(store, mode="r")
    images, masks = group["image"], group["mask"]
    assert isinstance(images, zarr.Array)
    assert isinstance(masks, zarr.Array)
    for index in range(images.shape[0]):
        yield np.asarray(images[index]), np.asarray(masks[index])


def write_uncompressed(paths: Sequence[Path], folder: Path) -> list[Path]:
    """Copies of netCDF files that are quickest to read: neither compressed nor cut into chunks.

    Returns:
        Their paths, in the same order.
    """
    folder.mkdir()
    for path in paths:
        ds = xr.load_dataset(path)
        for variable in ds.variables.values():
            kept = ("units", "calendar", "dtype", "_FillValue")
            variable.encoding = {key: value for key, value in variable.encoding.items() if key in kept}
        ds.to_netcdf(folder / path.name)
    return [folder / path.name for path in paths]


def by_netcdf(paths: Sequence[Path], info: StoreInfo) -> Samples:
    """What the ClimateNet library does: load each file with xarray, normalise each variable, stack them.

    Args:
        paths: netCDF files of one time step each.
        info: Of a store of the same files, for the channels and their statistics.
    """
    for path in paths:
        ds = xr.load_dataset(path)
        features = ds[info.channels]
        for name, mean, std in zip(info.channels, info.statistics.mean, info.statistics.std, strict=True):
            values = features[name].values
            values -= np.float32(mean)
            values /= np.float32(std)
        image = features.to_array().transpose("time", "variable", "lat", "lon").values
        yield image[0], ds[LABELS].values[0]
