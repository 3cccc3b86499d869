"""DeepLabv3+ with the full-resolution decoder of Kurth et al. 2018."""

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from climseg.errors import InputError
from climseg.models.smp import build_encoder


class DeepLabV3Plus(nn.Module):
    """A dilated encoder, atrous spatial pyramid pooling (ASPP), and a decoder that goes back to every pixel.

    As in Kurth et al. 2018 (arXiv:1810.01993), whose change to DeepLabv3+ (Chen et al. 2018) is the decoder: transposed
    convolutions up to the input's resolution and a skip from the input itself, where the first one stops at 1/4 and
    interpolates. With the defaults and 16 channels about 43.7 M parameters.

    Args:
        in_channels: Number of input channels C.
        classes: Number of classes K.
        encoder: Name of an encoder of segmentation-models-pytorch with five stages.
        encoder_weights: Name of pretrained weights (a download), or None for random ones.
        output_stride: Resolution of the ASPP: 8 or 16 (stages are dilated instead of strided), or 32.
        aspp_channels: Channels of each ASPP branch and of its output.
        atrous_rates: Dilations of the 3x3 ASPP branches, in cells of the encoder's output.
        low_level_channels: Channels of the skip from the encoder at 1/4 of the resolution.
        decoder_channels: Channels of the decoder.
        input_skip_channels: Channels of the convolutions on the skip of the input.

    Shape:
        (B, C, H, W) -> logits (B, K, H, W); ``stride`` (the output stride) divides H and W.

    Raises:
        InputError: For an unknown encoder, weights or output stride, or an encoder that cannot be dilated.
    """

    def __init__(
        self,
        in_channels: int,
        classes: int = 3,
        encoder: str = "resnet50",
        encoder_weights: str | None = None,
        output_stride: int = 8,
        aspp_channels: int = 256,
        atrous_rates: Sequence[int] = (12, 24, 36),
        low_level_channels: int = 48,
        decoder_channels: int = 256,
        input_skip_channels: Sequence[int] = (64, 128),
    ) -> None:
        super().__init__()
        if output_stride not in (8, 16, 32):
            raise InputError(f"DeepLabV3Plus: output_stride {output_stride} is not one of 8, 16 and 32")
        self.stride = output_stride
        self.encoder, channels = build_encoder(encoder, encoder_weights, in_channels, output_stride)

        self.aspp = _ASPP(channels[-1], aspp_channels, atrous_rates)

        halvings = int(math.log2(output_stride)) - 2  # from the output stride to 1/4
        widths = [aspp_channels, *[decoder_channels] * halvings]
        self.up_to_quarter = nn.Sequential(*(_upsampling(a, b) for a, b in pairwise(widths)))
        self.low_level_skip = _convolution(channels[2], low_level_channels, 1)
        self.decode_quarter = _two_convolutions(decoder_channels + low_level_channels, decoder_channels)

        self.up_to_full = nn.Sequential(
            _upsampling(decoder_channels, decoder_channels), _upsampling(decoder_channels, decoder_channels)
        )
        widths = [in_channels, *input_skip_channels]
        self.input_skip = nn.Sequential(*(_convolution(a, b, 3) for a, b in pairwise(widths)))
        self.decode_full = _two_convolutions(decoder_channels + widths[-1], decoder_channels)
        self.classifier = nn.Conv2d(decoder_channels, classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Return logits (B, K, H, W) of normalised fields (B, C, H, W)."""
        features = self.encoder(x)  # (B, ..., H / 2^i, W / 2^i), the last ones at H / stride
        y = self.aspp(features[-1])  # (B, A, H / stride, W / stride)

        y = self.up_to_quarter(y)  # (B, D, H / 4, W / 4)
        y = torch.cat([y, self.low_level_skip(features[2])], dim=1)  # (B, D + 48, H / 4, W / 4)
        y = self.decode_quarter(y)  # (B, D, H / 4, W / 4)

        y = self.up_to_full(y)  # (B, D, H, W)
        y = torch.cat([y, self.input_skip(x)], dim=1)  # (B, D + 128, H, W)
        y = self.decode_full(y)  # (B, D, H, W)
        logits: Tensor = self.classifier(y)  # (B, K, H, W)
        return logits


class _ASPP(nn.Module):
    """Context at several distances: a point-wise branch, atrous 3x3 branches and the mean over the whole field.

    The branch of the mean has no batch normalisation: it holds one value per sample and channel, whose variance over a
    batch of one does not exist and over the few samples of a GPU means nothing. So a batch of one trains, and the mean
    reaches the network in its own size, which its convolution (with a bias here) can scale.
    """

    def __init__(self, in_channels: int, channels: int, atrous_rates: Sequence[int]) -> None:
        super().__init__()
        self.branches = nn.ModuleList(
            [
                _convolution(in_channels, channels, 1),
                *(_convolution(in_channels, channels, 3, dilation=rate) for rate in atrous_rates),
            ]
        )
        self.field_mean = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(in_channels, channels, 1), nn.ReLU())
        self.project = _convolution((len(self.branches) + 1) * channels, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        mean = self.field_mean(x).expand(-1, -1, *x.shape[-2:])  # (B, A, h, w), the same everywhere
        branches = [branch(x) for branch in self.branches]  # each (B, A, h, w)
        context: Tensor = self.project(torch.cat([*branches, mean], dim=1))  # (B, A, h, w)
        return context


def _convolution(in_channels: int, out_channels: int, kernel_size: int, dilation: int = 1) -> nn.Sequential:
    padding = dilation * (kernel_size // 2)
    return nn.Sequential(
        nn.Conv2d(in_channels, out_channels, kernel_size, padding=padding, dilation=dilation, bias=False),
        nn.BatchNorm2d(out_channels),
        nn.ReLU(),
    )


def _two_convolutions(in_channels: int, out_channels: int) -> nn.Sequential:
    return nn.Sequential(_convolution(in_channels, out_channels, 3), _convolution(out_channels, out_channels, 3))


def _upsampling(in_channels: int, out_channels: int) -> nn.Sequential:
    """Double the resolution: (B, C, h, w) -> (B, D, 2h, 2w)."""
    return nn.Sequential(
        nn.ConvTranspose2d(in_channels, out_channels, 3, stride=2, padding=1, output_padding=1, bias=False),
        nn.BatchNorm2d(out_channels),
        nn.ReLU(),
    )
