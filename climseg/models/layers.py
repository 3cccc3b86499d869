"""Periodic longitude: the east edge of a global field touches its west edge, and no layer may see a wall there.

Feature maps are (B, C, H, W) with H = latitude and W = longitude. At the poles every layer keeps its own padding.
"""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def set_periodic_longitude(network: nn.Module, periodic: bool) -> None:
    """Make every convolution and pooling layer of a network wrap around in longitude, or behave as usual again.

    In place, and reversible at any time: a network trained on the globe may predict on a regional crop. Parameters,
    state-dict names and output sizes stay the same, and the change survives deepcopy, pickling and torch.export.
    Covered are Conv2d, ConvTranspose2d, MaxPool2d and AvgPool2d with any kernel, stride, dilation and padding, and
    their subclasses (the "same" padding of timm and segmentation-models-pytorch).

    A network of these layers, point-wise ones, normalisation and global pooling is then exactly periodic: rolling its
    input by a multiple of its stride rolls its output. Bilinear upsampling, adaptive pooling to more than one cell and
    window attention, as some segmentation-models-pytorch networks have, are not periodic and are left alone.

    Args:
        network: Any module; its feature maps are (B, C, latitude, longitude).
        periodic: True for a grid that closes in longitude, False for a region or a tile.
    """
    for module in network.modules():
        if type(module) in (nn.Conv2d, _PeriodicConv2d) and _pads_with_zeros(module):
            module.__class__ = _PeriodicConv2d if periodic else nn.Conv2d
        elif isinstance(module, nn.Conv2d | nn.ConvTranspose2d | nn.MaxPool2d | nn.AvgPool2d):
            _set_halo(module, _halo(module) if periodic else 0)


def pad_longitude(x: Tensor, cells: int) -> Tensor:
    """Continue a field around the globe: (..., W) -> (..., cells + W + cells), any number of cells.

    Written with cat and split, each of which is the gradient of the other: F.pad(mode="circular") and slices lose the
    channels-last memory format, forward or backward, and F.pad refuses more cells than W, as a wide atrous rate on a
    coarse grid asks for.
    """
    width = x.shape[-1]
    laps, rest = divmod(cells, width)
    near, far = sorted((rest, width - rest))
    parts = torch.split(x, [near, far - near, near], dim=-1)  # near + (far - near) + near = W
    west = parts[:1] if rest == near else parts[:2]  # the first `rest` columns
    east = parts[2:] if rest == near else parts[1:]  # the last `rest` columns
    return torch.cat([*east, *parts * (2 * laps + 1), *west], dim=-1)


class _PeriodicConv2d(nn.Conv2d):
    """A convolution that wraps in longitude (W) and pads with zeros in latitude (H)."""

    def forward(self, input: Tensor) -> Tensor:
        north_south, west_east = int(self.padding[0]), int(self.padding[1])
        if west_east:
            input = pad_longitude(input, west_east)  # (B, C, H, W + 2 padding)
        return F.conv2d(input, self.weight, self.bias, self.stride, (north_south, 0), self.dilation, self.groups)


def _pads_with_zeros(convolution: Any) -> bool:
    """Whether a Conv2d pads with a given number of zeros, neither by the word "same" nor with copies."""
    return convolution.padding_mode == "zeros" and not isinstance(convolution.padding, str)


# All other layers pad in ways of their own. They get a halo: at both edges as many whole strides of the far side as
# their window reaches. What they make of their own padding then lies in the halo, which is cropped from their output.
# That is right for every layer that commutes with a shift by its stride, and computes a few columns more than
# _PeriodicConv2d.


def _halo(layer: Any) -> int:
    """Number of strides that a layer's window reaches beyond an edge; 0 if it never does."""
    kernel, stride, dilation = (_east_west(getattr(layer, name, 1)) for name in ("kernel_size", "stride", "dilation"))
    reach = dilation * (kernel - 1)
    return -(-reach // stride) if reach >= stride or layer.padding not in (0, (0, 0)) else 0


def _set_halo(layer: Any, strides: int) -> None:
    # Hooks stay once they are there, and do nothing at 0 strides: handles to remove them would not survive deepcopy.
    if strides and not hasattr(layer, "longitude_halo"):
        layer.register_forward_pre_hook(_add_halo)
        layer.register_forward_hook(_crop_halo)
    if strides or hasattr(layer, "longitude_halo"):
        layer.longitude_halo = strides


def _add_halo(layer: Any, args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    halo, _ = _halo_cells(layer)
    return (pad_longitude(args[0], halo), *args[1:]) if halo else args


def _crop_halo(layer: Any, args: tuple[Tensor, ...], output: Tensor) -> Tensor:
    _, halo = _halo_cells(layer)
    if halo == 0:
        return output
    # cat of one gives a dense tensor in the same memory format: on a view, batch normalisation is several times slower.
    return torch.cat([output[..., halo : output.shape[-1] - halo]], dim=-1)


def _halo_cells(layer: Any) -> tuple[int, int]:
    """Width of the halo in cells of the layer's input and of its output."""
    strides = int(layer.longitude_halo)
    fine = strides * _east_west(layer.stride)
    return (strides, fine) if isinstance(layer, nn.ConvTranspose2d) else (fine, strides)


def _east_west(size: int | Sequence[int]) -> int:
    """The longitude part of a layer's size, which may be one number for both directions."""
    return size if isinstance(size, int) else size[1]
