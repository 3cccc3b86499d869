"""What a store holds and says about itself.

A store is a folder: a Zarr v3 group that xarray opens, and ``climseg.json`` with everything training needs to know.

    STORE/
      climseg.json                     this module's StoreInfo
      image/c/<step>/0/0/0             float32 (channel, lat, lon), little-endian, uncompressed: one file per time step
      mask/c/<step>/0/0                int8 (lat, lon)
      time/ lat/ lon/ zarr.json ...    coordinates and metadata
"""

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from climseg.errors import InputError

INFO_FILE: Final = "climseg.json"
FORMAT: Final = 1
SPLITS: Final = ("train", "validation", "test")


@dataclass(frozen=True)
class ChannelStatistics:
    """Moments of every channel over all cells of the training split, unweighted, in canonical units.

    Attributes:
        mean: Means, one per channel.
        std: Population standard deviations.
        minimum: Smallest values.
        maximum: Largest values.
    """

    mean: list[float]
    std: list[float]
    minimum: list[float]
    maximum: list[float]


@dataclass(frozen=True)
class StoreInfo:
    """Everything a store says about itself.

    Attributes:
        channels: Channel names in the order of the tensor axis.
        units: Their units.
        comments: For channels that stand in for or derive from others: how.
        lat: Latitudes in degrees, ascending.
        lon: Longitudes in degrees, ascending.
        periodic: Whether the longitudes close.
        calendar: CF calendar of the times.
        times: Time steps in ISO 8601, in the order of the samples.
        splits: For each time step ``train``, ``validation``, ``test``, or ``gap`` (left out between two splits).
        statistics: Of the training split.
        class_pixels: Number of cells of each class in the training split.
        labels: Definition of the masks, in words.
        request: What the store was made from: input files with size and time stamp, options, software versions.
        format: Version of this layout.
    """

    channels: list[str]
    units: list[str]
    comments: dict[str, str]
    lat: list[float]
    lon: list[float]
    periodic: bool
    calendar: str
    times: list[str]
    splits: list[str]
    statistics: ChannelStatistics
    class_pixels: list[int]
    labels: str
    request: dict[str, Any]
    format: int = FORMAT

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape (C, H, W) of one image."""
        return len(self.channels), len(self.lat), len(self.lon)

    @property
    def frequencies(self) -> list[float]:
        """Share of each class among the labelled cells of the training split."""
        total = sum(self.class_pixels)
        return [n / total for n in self.class_pixels]

    def indices(self, split: str) -> list[int]:
        """Positions of the time steps of one split."""
        if split not in SPLITS:
            raise InputError(f"there is no split {split!r}; choose one of {', '.join(SPLITS)}.")
        return [i for i, s in enumerate(self.splits) if s == split]

    def write(self, folder: Path) -> None:
        """Write ``climseg.json`` into a store folder."""
        (folder / INFO_FILE).write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, folder: str | Path) -> "StoreInfo":
        """Read a store's ``climseg.json``.

        Raises:
            InputError: The folder is no complete store of this format.
        """
        path = Path(folder) / INFO_FILE
        if not path.is_file():
            raise InputError(
                f"{folder} is not a complete climseg store (no {INFO_FILE} in it); make one with 'climseg prepare'."
            )
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if content.get("format") != FORMAT:
                raise InputError(
                    f"{path}: store format {content.get('format')!r}; this version reads format {FORMAT}. "
                    "Make the store anew with 'climseg prepare'."
                )
            content["statistics"] = ChannelStatistics(**content["statistics"])
            return cls(**{f.name: content[f.name] for f in fields(cls)})
        except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
            raise InputError(f"{path}: not a store description that this version understands ({error!r}).") from error


def read_image(folder: Path, info: StoreInfo, index: int) -> NDArray[np.float32]:
    """One image (channel, lat, lon), float32, canonical units, read straight from its chunk file."""
    return _read_chunk(image_chunk(folder, index), np.dtype("<f4"), info.shape).astype(np.float32, copy=False)


def read_mask(folder: Path, info: StoreInfo, index: int) -> NDArray[np.int8]:
    """One mask (lat, lon), int8 class numbers, read straight from its chunk file."""
    return _read_chunk(mask_chunk(folder, index), np.dtype("i1"), info.shape[1:])


def write_image(folder: Path, index: int, image: NDArray[np.float32]) -> None:
    """Write one image (channel, lat, lon) as :func:`read_image` reads it."""
    _write_chunk(image_chunk(folder, index), image.astype("<f4", copy=False))


def write_mask(folder: Path, index: int, mask: NDArray[np.int8]) -> None:
    """Write one mask (lat, lon) as :func:`read_mask` reads it."""
    _write_chunk(mask_chunk(folder, index), mask.astype("i1", copy=False))


def image_chunk(folder: Path, index: int) -> Path:
    """The file of one image."""
    return folder / f"image/c/{index}/0/0/0"


def mask_chunk(folder: Path, index: int) -> Path:
    """The file of one mask."""
    return folder / f"mask/c/{index}/0/0"


def _write_chunk(path: Path, values: NDArray[Any]) -> None:
    # Not through Zarr, which takes several times as long and writes no chunk at all where all values are 0.
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(np.ascontiguousarray(values).data)


def _read_chunk(path: Path, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    # No handle stays open, so nothing can cross a fork into a loader's worker (pytorch issue 11929).
    try:
        values = np.fromfile(path, dtype=dtype)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); make the store anew.") from error
    if values.size != np.prod(shape):
        raise InputError(f"{path}: holds {values.size} values instead of {np.prod(shape)}; make the store anew.")
    return values.reshape(shape)
