"""What a store holds and says about itself.

A store is a folder: a Zarr v3 group that xarray opens, and ``climseg.json`` with everything training needs to know.

    STORE/
      climseg.json                     this module's StoreInfo
      image/c/<step>/0/0/0             (channel, lat, lon), little-endian, uncompressed: one file per time step
      image_scale/c/0/0                float32 (time, channel), if images are not float32 (``packing``)
      image_offset/c/0/0               likewise
      mask/c/<step>/0/0                int8 (lat, lon)
      time/ lat/ lon/ zarr.json ...    coordinates and metadata

Format 1, which is read as well, has float32 images alone.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from climseg.errors import InputError
from climseg.store.packing import STORED_TYPES, Packing, StoredType, decode, encode

INFO_FILE: Final = "climseg.json"
FORMAT: Final = 2
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
        dtype: How images are stored: ``float32``, ``float16`` or ``uint16``.
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
    dtype: StoredType = "float32"
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
            if content.get("format") not in (1, FORMAT):
                raise InputError(
                    f"{path}: store format {content.get('format')!r}; this version reads formats 1 and {FORMAT}. "
                    "Make the store anew with 'climseg prepare'."
                )
            if content.setdefault("dtype", "float32") not in STORED_TYPES:
                raise InputError(f"{path}: images are stored as {content['dtype']}, which this version cannot read.")
            content["statistics"] = ChannelStatistics(**content["statistics"])
            return cls(**{f.name: content[f.name] for f in fields(cls)})
        except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
            raise InputError(f"{path}: not a store description that this version understands ({error!r}).") from error


def read_image(folder: Path, info: StoreInfo, index: int) -> NDArray[np.float32]:
    """One image (channel, lat, lon), float32, canonical units, read straight from its chunk file."""
    stored = _read_chunk(image_chunk(folder, index), file_dtype(info.dtype), info.shape)
    if info.dtype == "float32":
        return stored.astype(np.float32, copy=False)
    return decode(stored, read_packing(folder, info).at(index))


def read_mask(folder: Path, info: StoreInfo, index: int) -> NDArray[np.int8]:
    """One mask (lat, lon), int8 class numbers, read straight from its chunk file."""
    return _read_chunk(mask_chunk(folder, index), np.dtype("i1"), info.shape[1:])


def read_packing(folder: Path, info: StoreInfo) -> Packing:
    """Scales and offsets (time, channel) of all images of a store that is not float32."""
    table = (len(info.times), len(info.channels))
    scale, offset = (_read_chunk(path, np.dtype("<f4"), table) for path in packing_files(folder))
    return Packing(scale.astype(np.float32, copy=False), offset.astype(np.float32, copy=False))


def write_image(
    folder: Path, index: int, image: NDArray[np.float32], dtype: StoredType = "float32", how: Packing | None = None
) -> None:
    """Write one image (channel, lat, lon) as :func:`read_image` reads it; ``how`` is needed where it is not float32."""
    stored = image if how is None else encode(image, how, dtype)
    _write_chunk(image_chunk(folder, index), stored.astype(file_dtype(dtype), copy=False))


def write_mask(folder: Path, index: int, mask: NDArray[np.int8]) -> None:
    """Write one mask (lat, lon) as :func:`read_mask` reads it."""
    _write_chunk(mask_chunk(folder, index), mask.astype("i1", copy=False))


def write_packing(folder: Path, rows: Sequence[Packing]) -> None:
    """Write the scales and offsets of all images in their order."""
    for path, values in zip(packing_files(folder), ([r.scale for r in rows], [r.offset for r in rows]), strict=True):
        _write_chunk(path, np.array(values, "<f4"))


def image_chunk(folder: Path, index: int) -> Path:
    """The file of one image."""
    return folder / f"image/c/{index}/0/0/0"


def mask_chunk(folder: Path, index: int) -> Path:
    """The file of one mask."""
    return folder / f"mask/c/{index}/0/0"


def packing_files(folder: Path) -> tuple[Path, Path]:
    """The files of all scales and of all offsets."""
    return folder / "image_scale/c/0/0", folder / "image_offset/c/0/0"


def file_dtype(dtype: StoredType) -> np.dtype[Any]:
    """The type of the numbers in the file of an image."""
    return np.dtype(dtype).newbyteorder("<")


def _write_chunk(path: Path, values: NDArray[Any]) -> None:
    # Not through Zarr, which takes several times as long and writes no chunk at all where all values are 0.
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(np.ascontiguousarray(values).data)


def _read_chunk(path: Path, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    # No handle stays open, so nothing can cross a fork into a loader's worker (pytorch issue 11929).
    try:
        values = np.fromfile(path, dtype=dtype)
    except OSError as error:
        raise unreadable(path, error) from error
    if values.size != np.prod(shape):
        raise wrong_size(path, values.size, int(np.prod(shape)))
    return values.reshape(shape)


def unreadable(path: Path, error: OSError) -> InputError:
    """What to say of a file of a store that cannot be read."""
    return InputError(f"{path}: cannot be read ({error.strerror}); make the store anew.")


def wrong_size(path: Path, found: int, expected: int) -> InputError:
    """What to say of a file of a store that is too short or too long."""
    return InputError(f"{path}: holds {found} values instead of {expected}; make the store anew.")
