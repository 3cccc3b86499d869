"""The contract that travels in a checkpoint: all that prediction needs beside the weights.

It consists of plain dicts, lists, strings and numbers, so that a checkpoint loads with ``weights_only=True``.
Means and standard deviations are buffers of the network and travel with its weights.
"""

import hashlib
import platform
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import torch

from climseg.channels import CLASSES
from climseg.errors import InputError
from climseg.models.build import build_network
from climseg.models.segmenter import Segmenter
from climseg.store.info import StoreInfo

FORMAT: Final = 1
# Where the contract and the weights lie in a Lightning checkpoint.
CONTRACT_KEY: Final = "climseg"
STATE_PREFIX: Final = "segmenter."
_SOFTWARE: Final = ("climseg", "torch", "pytorch-lightning", "segmentation-models-pytorch", "xarray", "numpy")


@dataclass(frozen=True)
class Contract:
    """What a trained network expects and means.

    Attributes:
        network: Configuration of the network: ``_target_`` and its arguments.
        channels: Channel names in the order of the tensor axis.
        units: Their units.
        classes: Class names; their positions are the class numbers.
        lat: Latitudes of the training grid, degrees, ascending.
        lon: Longitudes of the training grid, degrees, ascending.
        periodic: Whether the training grid closes.
        labels: Definition of the training masks, in words.
        training_data: First and last time, number of time steps, class frequencies.
        software: Versions at training time.
        format: Version of this contract.
    """

    network: dict[str, Any]
    channels: list[str]
    units: list[str]
    lat: list[float]
    lon: list[float]
    periodic: bool
    labels: str
    training_data: dict[str, Any]
    classes: list[str] = field(default_factory=lambda: list(CLASSES))
    software: dict[str, str] = field(
        default_factory=lambda: {name: version(name) for name in _SOFTWARE} | {"python": platform.python_version()}
    )
    format: int = FORMAT

    def to_dict(self) -> dict[str, Any]:
        """Plain types for a checkpoint."""
        return asdict(self)

    def build(self) -> Segmenter:
        """The network with the right shapes; weights and statistics are still to be loaded."""
        channels = len(self.channels)
        network = build_network(self.network, in_channels=channels, classes=len(self.classes), pretrained=False)
        return Segmenter(network, mean=[0.0] * channels, std=[1.0] * channels, periodic=self.periodic)


def contract_for_store(info: StoreInfo, network: Mapping[str, Any]) -> Contract:
    """The contract of a network trained on a store."""
    train = [t for t, s in zip(info.times, info.splits, strict=True) if s == "train"]
    return Contract(
        network=dict(network),
        channels=info.channels,
        units=info.units,
        lat=info.lat,
        lon=info.lon,
        periodic=info.periodic,
        labels=info.labels,
        training_data={
            "first_time": train[0],
            "last_time": train[-1],
            "calendar": info.calendar,
            "time_steps": len(train),
            "class_frequencies": info.frequencies,
        },
    )


def segmenter_for_store(info: StoreInfo, network: Mapping[str, Any]) -> Segmenter:
    """An untrained network with the statistics of a store's training split."""
    built = build_network(network, in_channels=len(info.channels), classes=len(CLASSES))
    return Segmenter(built, mean=info.statistics.mean, std=info.statistics.std, periodic=info.periodic)


def _read_contract(stored: dict[str, Any]) -> Contract:
    """The contract of a checkpoint, refused when it is of another format or contradicts itself."""
    if stored["format"] != FORMAT:
        raise InputError(f"contract format {stored['format']!r}; this version reads format {FORMAT}.")
    contract = Contract(**{f.name: stored[f.name] for f in fields(Contract)})
    grid = [*contract.lat, *contract.lon]
    consistent = (
        len(contract.channels) == len(contract.units) > 0
        and contract.classes == list(CLASSES)
        and min(len(contract.lat), len(contract.lon)) > 1
        and all(isinstance(degrees, float) for degrees in grid)
        and {"first_time", "last_time", "time_steps"} <= set(contract.training_data)
        and isinstance(contract.software, dict)
        and isinstance(contract.network["_target_"], str)
    )
    if not consistent:
        raise InputError("its contract contradicts itself; train anew.")
    return contract


def _check_sums(path: Path) -> None:
    """Compare the file's parts with the sums that it holds of them (CRC-32); torch does not, and would take any bits.

    Raises:
        zipfile.BadZipFile: A part is another than was written, or the file is no checkpoint at all.
    """
    with zipfile.ZipFile(path) as archive:
        damaged = archive.testzip()
    if damaged is not None:
        raise zipfile.BadZipFile(damaged)


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint ready to predict: network in evaluation mode on the CPU, contract, and the file's SHA-256."""

    segmenter: Segmenter
    contract: Contract
    path: Path
    sha256: str


def load_checkpoint(path: str | Path) -> Checkpoint:
    """Read a checkpoint written by ``climseg train``.

    Nothing but tensors and plain types is unpickled, and only networks are built from its configuration, so that a
    checkpoint from elsewhere cannot run code.

    Raises:
        InputError: The file is absent, broken, not from climseg, or of another format.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: no such checkpoint; 'climseg train' leaves best.ckpt and last.ckpt in its run_dir.")
    try:
        _check_sums(path)
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises many kinds for a file that is no checkpoint
        raise InputError(
            f"{path}: not a readable checkpoint ({type(error).__name__}); expected one written by 'climseg train'."
        ) from error
    if not isinstance(content, dict) or CONTRACT_KEY not in content or "state_dict" not in content:
        raise InputError(f"{path}: holds no climseg contract; expected a checkpoint written by 'climseg train'.")
    try:
        contract = _read_contract(content[CONTRACT_KEY])
        segmenter = contract.build()
        state = content["state_dict"]
        segmenter.load_state_dict(
            {k.removeprefix(STATE_PREFIX): v for k, v in state.items() if k.startswith(STATE_PREFIX)}
        )
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"{path}: its contract and weights do not fit together ({reason}); train anew.") from error
    if not all(torch.isfinite(v).all() for v in segmenter.state_dict().values()):
        raise InputError(f"{path}: holds weights or statistics that are not finite; train anew.")
    segmenter.eval().requires_grad_(False)
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return Checkpoint(segmenter=segmenter, contract=contract, path=path, sha256=digest)
