"""Periodic longitude: the east edge of a global field touches its west edge, and no layer may see a wall there.

Feature maps are (B, C, H, W) with H = latitude and W = longitude. At the poles every layer keeps its own padding.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def set_periodic_longitude(network: nn.Module, periodic: bool) -> None:
    """Make every convolution and pooling layer of a network wrap around in longitude, or behave as usual again.

    In place, and reversible at any time: a network trained on the globe may predict on a regional crop. Parameters,
    state-dict names and output sizes stay the same, and the change survives deepcopy, pickling and torch.export.
    Covered are Conv2d, ConvTranspose2d, MaxPool2d and AvgPool2d with any kernel, stride, dilation and padding, and
    their subclasses (timm's and segmentation-models-pytorch's "same" padding).

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
    """Continue a field around the globe: (..., W) -> (..., W + 2 cells), any number of cells.

    Written with split and cat, whose gradients are cat and split: F.pad(mode="circular") and slices lose the
    channels-last memory format, forward or backward, and F.pad refuses more cells than W, as a wide atrous rate asks for
    on a coarse grid.
    """
    width = x.shape[-1]
    laps, rest = divmod(cells, width)
    near, far = sorted((rest, width - rest))
    parts = x.split([near, far - near, near], dim=-1)  # near + (far - near) + near = W
    west = parts[:1] if rest == near else parts[:2]  # the first `rest` columns
    east = parts[2:] if rest == near else parts[1:]  # the last `rest` columns
    return torch.cat([*east, *parts * (2 * laps + 1), *west], dim=-1)


class _PeriodicConv2d(nn.Conv2d):
    """A convolution that wraps in longitude (W) and pads with zeros in latitude (H)."""

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        north_south, west_east = self.padding
        wrapped = pad_longitude(input, int(west_east))  # (B, C, H, W + 2 padding)
        return F.conv2d(wrapped, weight, bias, self.stride, (int(north_south), 0), self.dilation, self.groups)


def _pads_with_zeros(convolution: nn.Module) -> bool:
    """Whether a convolution has plain numbers of zeros as its padding (neither "same" nor reflection)."""
    return convolution.padding_mode == "zeros" and not isinstance(convolution.padding, str)


# All other layers pad in ways of their own. They see a halo: as many whole strides of the far side on both edges as their
# window reaches, so that what they make of their own padding lies in the halo, which is cropped from their output. That is
# right for every layer that commutes with a shift by its stride, and costs a few columns more than _PeriodicConv2d.


def _halo(layer: nn.Module) -> int:
    """Number of strides that a layer's window reaches beyond an edge; 0 if it never does."""
    kernel, stride, padding, dilation = (
        value if isinstance(value, str | int) else value[1]
        for value in (layer.kernel_size, layer.stride, layer.padding, getattr(layer, "dilation", 1))
    )
    reach = dilation * (kernel - 1)
    if padding == 0 and reach < stride:
        return 0
    return -(-reach // stride)


def _set_halo(layer: nn.Module, strides: int) -> None:
    # The hooks stay once they are there, and do nothing at 0 strides: a removable handle would not survive deepcopy.
    if strides and not hasattr(layer, "longitude_halo"):
        layer.register_forward_pre_hook(_add_halo)
        layer.register_forward_hook(_crop_halo)
    if strides or hasattr(layer, "longitude_halo"):
        layer.longitude_halo = strides


def _add_halo(layer: nn.Module, args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    step = 1 if isinstance(layer, nn.ConvTranspose2d) else _east_west(layer.stride)
    return (pad_longitude(args[0], layer.longitude_halo * step), *args[1:])


def _crop_halo(layer: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> Tensor:
    step = _east_west(layer.stride) if isinstance(layer, nn.ConvTranspose2d) else 1
    halo = layer.longitude_halo * step
    return output[..., halo : output.shape[-1] - halo]


def _east_west(size: Any) -> int:
    """The longitude part of a layer's size, which may be one number for both directions."""
    return int(size) if isinstance(size, int) else int(size[1])
