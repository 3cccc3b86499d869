"""A network with everything around it: physical fields in, logits out."""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from climseg.errors import InputError
from climseg.models.layers import pad_longitude, set_periodic_longitude


class Segmenter(nn.Module):
    """Normalise, pad, run the network, crop: what is trained, evaluated, predicted with and exported.

    The statistics are buffers, so that they travel in the state dict with the weights (``mean``, ``std`` and
    ``network.*``) and cannot be mixed up with those of another data set.

    Padding to a multiple of the network's stride, half on each side and cropped from the logits:

    - Latitude, and longitude of a region, repeat their outermost values: zeros would draw a front along the edge, and
      mirrored values would need a grid larger than the padding.
    - Longitude of a periodic grid continues around the globe. If the stride divides the number of longitudes, nothing
      is padded and the network closes the circle exactly. If not, at least half a stride of true neighbours is put on
      each side, so that the seam, where the padded circle does not close, lies outside the field.

    Args:
        network: (B, C, H, W) -> (B, K, H, W), with an integer attribute ``stride`` that divides H and W.
        mean: (C,) means of the channels in their canonical units.
        std: (C,) standard deviations, positive.
        periodic: Whether the grid closes in longitude; can be set later.

    Shape:
        (B, C, H, W) float32 in canonical units, any H and W -> logits (B, K, H, W) float32, under autocast too;
        a network in float64 takes and gives float64.

    Raises:
        InputError: If the statistics do not fit or are not positive, the network has no stride, or the fields come in
            half precision.
    """

    mean: Tensor
    std: Tensor

    def __init__(
        self, network: nn.Module, mean: Tensor | Sequence[float], std: Tensor | Sequence[float], periodic: bool
    ) -> None:
        super().__init__()
        self.network = network
        self.register_buffer("mean", torch.as_tensor(mean, dtype=torch.float32).clone())
        self.register_buffer("std", torch.as_tensor(std, dtype=torch.float32).clone())
        _check_statistics(self.mean, self.std)
        stride = getattr(network, "stride", None)
        if not isinstance(stride, int):
            raise InputError(
                f"{type(network).__name__} has no attribute `stride`: set it to the number that must divide the height "
                "and width of its input (1 if any will do)"
            )
        self.stride = stride
        self.periodic = periodic

    @property
    def periodic(self) -> bool:
        """Whether every layer wraps in longitude."""
        return self._periodic

    @periodic.setter
    def periodic(self, periodic: bool) -> None:
        self._periodic = periodic
        set_periodic_longitude(self.network, periodic)

    def forward(self, fields: Tensor) -> Tensor:
        """Return logits (B, K, H, W) float32 of fields (B, C, H, W) in canonical units."""
        if fields.dtype in (torch.float16, torch.bfloat16):
            # 101325 Pa is 101376 in bfloat16 and infinite in float16.
            raise InputError(
                f"fields arrive as {fields.dtype}, too coarse for pressure in Pa: use a mixed precision (bf16-mixed, "
                "16-mixed), which keeps them float32, instead of a true one"
            )
        assert fields.shape[1] == len(self.mean), f"{fields.shape[1]} channels, statistics of {len(self.mean)}"
        height, width = fields.shape[-2:]
        dtype = torch.promote_types(fields.dtype, torch.float32)
        x = (fields.to(dtype) - self.mean[:, None, None]) / self.std[:, None, None]  # (B, C, H, W)
        x, north, west = self._pad(x)  # (B, C, H', W'), multiples of the stride
        logits: Tensor = self.network(x)  # (B, K, H', W')
        return logits[..., north : north + height, west : west + width].to(dtype)  # (B, K, H, W)

    def _pad(self, x: Tensor) -> tuple[Tensor, int, int]:
        """Return the padded fields and the numbers of rows and columns put before the first ones."""
        rows, columns = (-size % self.stride for size in x.shape[-2:])
        if columns and self.periodic:
            columns += self.stride
            x = pad_longitude(x, (columns + 1) // 2)[..., : x.shape[-1] + columns]
        elif columns:
            x = F.pad(x, ((columns + 1) // 2, columns // 2, 0, 0), mode="replicate")
        if rows:
            x = F.pad(x, (0, 0, (rows + 1) // 2, rows // 2), mode="replicate")
        return x, (rows + 1) // 2, (columns + 1) // 2


def _check_statistics(mean: Tensor, std: Tensor) -> None:
    if mean.ndim != 1 or mean.shape != std.shape:
        raise InputError(
            f"one mean and one standard deviation per channel are needed, not shapes {list(mean.shape)} and "
            f"{list(std.shape)}"
        )
    for channel, (m, s) in enumerate(zip(mean.tolist(), std.tolist(), strict=True)):
        if not (math.isfinite(m) and math.isfinite(s) and s > 0):
            raise InputError(
                f"channel {channel} has mean {m} and standard deviation {s}, but needs a finite mean and a positive "
                "standard deviation: leave a constant channel out"
            )
