"""Masks for new data: time step by time step from a canonical Dataset to a mask file."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import xarray as xr
from numpy.typing import NDArray

from climseg.canonical import check_values, iso_times
from climseg.inference.fit import Fit, fit_to_network
from climseg.masks import MaskWriter, describe_input
from climseg.models.segmenter import Segmenter
from climseg.regrid import Grid, interpolate
from climseg.sources.steps import read_steps
from climseg.training.contract import Checkpoint

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Prediction:
    """One time step on the input's grid, canonical orientation.

    Attributes:
        mask: (lat, lon) int8 class numbers.
        probabilities: (K, lat, lon) float32, summing to 1.
    """

    mask: NDArray[np.int8]
    probabilities: NDArray[np.float32]


def class_probabilities(segmenter: Segmenter, images: NDArray[np.float32], device: str = "cpu") -> NDArray[np.float32]:
    """Class probabilities (B, K, H, W) of images (B, C, H, W) in canonical units."""
    with torch.inference_mode():
        batch = torch.from_numpy(images).to(device).contiguous(memory_format=torch.channels_last)
        probabilities: NDArray[np.float32] = segmenter(batch).softmax(dim=1).cpu().numpy()
    return probabilities


def predict(
    checkpoint: Checkpoint, ds: xr.Dataset, *, regrid: bool = False, device: str = "cpu", origin: str = "input"
) -> Iterator[Prediction]:
    """Predict every time step of a canonical Dataset, in order; only one is in memory at a time.

    Args:
        checkpoint: From ``load_checkpoint``.
        ds: Canonical Dataset with the network's channels.
        regrid: Interpolate to the network's grid when the input's differs, and the probabilities back.
        device: A torch device.
        origin: The input to name in an error.

    Raises:
        InputError: The Dataset does not fit the network, or a channel holds missing values at a named time.
    """
    fit = fit_to_network(ds, checkpoint.contract, regrid=regrid, origin=origin)
    return predict_fitted(checkpoint, fit, device=device, origin=origin)


def predict_fitted(
    checkpoint: Checkpoint, fit: Fit, *, device: str = "cpu", origin: str = "input"
) -> Iterator[Prediction]:
    """Predict every time step of a Dataset that was found to fit; see :func:`predict`."""
    ds = fit.images
    segmenter = checkpoint.segmenter.to(device)
    segmenter.periodic = fit.grid.periodic
    for time, step in zip(iso_times(ds), read_steps(ds), strict=True):
        for name, variable in step.data_vars.items():
            check_values(str(name), variable.values, time, origin)
        if fit.regrid:
            step = interpolate(step, fit.grid)
        image = step.to_dataarray("channel").transpose("channel", "lat", "lon").values
        probabilities = class_probabilities(segmenter, image[None], device)[0]  # (K, H, W)
        if fit.regrid:
            coordinates = {"lat": fit.grid.lat, "lon": fit.grid.lon}
            field = xr.DataArray(probabilities, dims=("class", "lat", "lon"), coords=coordinates)
            probabilities = interpolate(field.to_dataset(name="p"), Grid.of(ds))["p"].values
        yield Prediction(probabilities.argmax(axis=0).astype(np.int8), probabilities)


def write_predictions(
    checkpoint: Checkpoint,
    ds: xr.Dataset,
    output: Path,
    *,
    command: str,
    input_files: Sequence[str | Path],
    regrid: bool = False,
    probabilities: bool = False,
    device: str = "cpu",
    progress: Progress = lambda done, total: None,
) -> None:
    """Predict a canonical Dataset into a mask file, which gets its name when it is complete.

    Args:
        checkpoint: From ``load_checkpoint``.
        ds: Canonical Dataset.
        output: netCDF file to write.
        command: For the history attribute.
        input_files: For the attributes.
        regrid: See :func:`predict`.
        probabilities: Also write class probabilities.
        device: A torch device.
        progress: Called with (time steps done, all time steps).
    """
    contract = checkpoint.contract
    about = describe_input(ds[[c for c in contract.channels if c in ds]], input_files)
    fit = fit_to_network(ds, contract, regrid=regrid, origin=about["input_files"])
    attributes = {
        "title": "Extreme weather masks by climseg",
        "source": f"{contract.network['_target_'].rsplit('.', 1)[-1]} network, checkpoint {checkpoint.path.name}",
        "checkpoint_sha256": checkpoint.sha256,
        "training_data": f"{contract.training_data['time_steps']} time steps from "
        f"{contract.training_data['first_time']} to {contract.training_data['last_time']}",
        "regridded": f"to {fit.grid.lat.size} x {fit.grid.lon.size} cells and back, bilinear" if fit.regrid else "no",
        "software": ", ".join(f"{k} {v}" for k, v in contract.software.items()),
    } | about
    steps = predict_fitted(checkpoint, fit, device=device, origin=about["input_files"])
    with MaskWriter(output, ds, attributes, contract.labels, command, probabilities) as writer:
        total = ds.sizes["time"]
        progress(0, total)
        for index, step in enumerate(steps):
            writer.write(index, step.mask, step.probabilities if probabilities else None)
            progress(index + 1, total)
