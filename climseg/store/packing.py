"""Images in half the bytes: each channel of each time step with an offset and a scale of its own.

    value = offset + scale * stored

Between the smallest and the largest value of that channel at that time, ``float16`` stores -1 to 1 and ``uint16`` 0 to
65535. Both take two bytes. What is read again differs from what was written by at most

    float16   1/8192 of the range of the channel at that time, and less towards the middle of the range
    uint16    1/131070 of that range; the smallest value itself (no rain) comes back as it was

(see :func:`largest_error`). A surface pressure from 500 to 1050 hPa is then right to 7 Pa in float16 and to 0.5 Pa in
uint16, a sea-level pressure from 930 to 1050 hPa to 1.5 Pa and to 0.1 Pa. Without offset and scale, float16 could not
hold 100,000 Pa at all. Networks read either as float32 and see no difference; uint16 is the better keeper.

Offset and scale follow from the smallest and the largest value alone, which the statistics of each time step keep, so
they need no pass of their own. A store holds them as arrays (time, channel) beside the images. In xarray:

    ds = xr.open_zarr(store, consolidated=False)
    values = ds["image"] * ds["image_scale"] + ds["image_offset"]
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from climseg.errors import InputError, near_matches

StoredType: TypeAlias = Literal["float32", "float16", "uint16"]
STORED_TYPES: Final[tuple[StoredType, ...]] = ("float32", "float16", "uint16")

_LEVELS: Final = 65535.0
# A smaller scale is itself no longer exact in float32.
_SMALLEST: Final = float(np.finfo(np.float32).tiny)


@dataclass(frozen=True)
class Packing:
    """How the channels of one time step, or of all, are stored.

    Attributes:
        scale: (channel) or (time, channel), float32.
        offset: Likewise, canonical units.
    """

    scale: NDArray[np.float32]
    offset: NDArray[np.float32]

    def at(self, index: int) -> "Packing":
        """That of one time step."""
        return Packing(self.scale[index], self.offset[index])


def stored_type(name: object) -> StoredType:
    """The type of that name.

    Raises:
        InputError: There is none.
    """
    for known in STORED_TYPES:
        if name == known:
            return known
    near = near_matches(str(name), STORED_TYPES) or "."
    raise InputError(f"store.dtype={name}: images are not stored so{near} Known: {', '.join(STORED_TYPES)}.")


def packing(minimum: Sequence[float], maximum: Sequence[float], dtype: StoredType) -> Packing:
    """Offset and scale from the smallest and the largest value of each channel at one time step."""
    low, high = np.asarray(minimum, np.float64), np.asarray(maximum, np.float64)
    if dtype == "uint16":
        offset = low.astype(np.float32)
        scale = (high - low) / _LEVELS
    else:
        offset = ((low + high) / 2).astype(np.float32)
        scale = np.maximum(high - offset, offset - low)
    return Packing(np.maximum(scale, _SMALLEST).astype(np.float32), offset)


def encode(image: NDArray[np.float32], how: Packing, dtype: StoredType) -> NDArray[np.float16] | NDArray[np.uint16]:
    """What is stored for an image (channel, lat, lon)."""
    stored = np.empty(image.shape, dtype)
    for channel, values in enumerate(image):  # one by one, because one stays in the processor's cache
        scaled = (values.astype(np.float64) - how.offset[channel]) / how.scale[channel]
        stored[channel] = np.clip(np.rint(scaled), 0, _LEVELS) if dtype == "uint16" else np.clip(scaled, -1, 1)
    return stored


def decode(stored: NDArray[np.float16] | NDArray[np.uint16], how: Packing) -> NDArray[np.float32]:
    """The image (channel, lat, lon) that is stored, float32, canonical units."""
    image = stored.astype(np.float32)
    image *= how.scale[:, None, None]
    image += how.offset[:, None, None]
    return image


def largest_error(minimum: ArrayLike, maximum: ArrayLike, dtype: StoredType) -> NDArray[np.float64]:
    """The most by which a value that is read again differs from what was written.

    Args:
        minimum: Smallest values of a channel at a time step, canonical units.
        maximum: Largest values.
        dtype: How it is stored.

    Returns:
        In canonical units: the spacing of the stored numbers (half of 2**-11 of half the range, or half of 1/65535 of
        the range) and the rounding of float32 arithmetic (2**-21 of the largest magnitude).
    """
    low, high = np.asarray(minimum, np.float64), np.asarray(maximum, np.float64)
    if dtype == "float32":
        return np.zeros(np.broadcast_shapes(low.shape, high.shape))
    spacing = (high - low) / (8192.0 if dtype == "float16" else 2 * _LEVELS)
    return spacing + 2.0**-21 * np.maximum(np.abs(low), np.abs(high)) + _SMALLEST
