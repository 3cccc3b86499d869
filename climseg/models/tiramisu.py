"""Tiramisu, the fully convolutional DenseNet, as it ran on Summit and Piz Daint (Kurth et al. 2018)."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from climseg.errors import InputError
from climseg.models.recompute import recomputed


class Tiramisu(nn.Module):
    """Dense blocks down to 1/16 of the resolution and up again, with skips between equal resolutions.

    As in Kurth et al. 2018 (arXiv:1810.01993), which differs from the first FC-DenseNet (Jegou et al. 2017): wider
    growth, 5x5 kernels, strided 1x1 convolutions instead of pooling, no pre-activation. The authors ran it with 16
    channels and 64 first filters (7.50 M parameters), and with 4 and 48 (7.13 M).

    Args:
        in_channels: Number of input channels C.
        classes: Number of classes K.
        first_filters: Filters of the first convolution.
        growth_rate: Channels that each layer of a dense block adds.
        down_layers: Layers of each dense block on the way down; the last one is the bottom.
        up_layers: Layers of each dense block on the way up, one block fewer.
        kernel_size: Odd size of the first convolution and of all in dense blocks.
        dropout: Share of values dropped after each layer and transition.
        batch_norm: Whether to normalise after each convolution of a layer or transition.
        checkpoint_activations: Whether training computes dense blocks twice instead of keeping what their gradients
            need: less than half is kept between the passes, for up to a third more work, and the same gradients.

    Shape:
        (B, C, H, W) -> logits (B, K, H, W); ``stride`` divides H and W.

    Raises:
        InputError: For an even kernel, or numbers of blocks that do not match.
    """

    def __init__(
        self,
        in_channels: int,
        classes: int = 3,
        first_filters: int = 64,
        growth_rate: int = 32,
        down_layers: Sequence[int] = (2, 2, 2, 4, 5),
        up_layers: Sequence[int] = (4, 2, 2, 2),
        kernel_size: int = 5,
        dropout: float = 0.2,
        batch_norm: bool = False,
        checkpoint_activations: bool = False,
    ) -> None:
        super().__init__()
        if min(first_filters, growth_rate, *down_layers, *up_layers) < 1:
            raise InputError("Tiramisu: first_filters, growth_rate and all numbers of layers must be at least 1")
        if kernel_size % 2 == 0:
            raise InputError(f"Tiramisu: kernel_size {kernel_size} is even, so it has no centre; take an odd one")
        if len(up_layers) != len(down_layers) - 1:
            raise InputError(
                f"Tiramisu: {len(down_layers)} down_layers need {len(down_layers) - 1} up_layers, not {len(up_layers)}"
            )
        self.stride = 2 ** len(up_layers)
        self.checkpoint_activations = checkpoint_activations

        def dense_block(channels: int, layers: int) -> _DenseBlock:
            return _DenseBlock(channels, layers, growth_rate, kernel_size, dropout, batch_norm)

        channels = first_filters
        self.first = nn.Sequential(nn.Conv2d(in_channels, channels, kernel_size, padding=kernel_size // 2), nn.ReLU())

        self.down_blocks = nn.ModuleList()
        self.transitions = nn.ModuleList()
        skips = []
        for layers in down_layers[:-1]:
            self.down_blocks.append(dense_block(channels, layers))
            channels += layers * growth_rate
            skips.append(channels)
            self.transitions.append(_convolution(channels, channels, 1, 2, dropout, batch_norm))

        self.bottom = dense_block(channels, down_layers[-1])

        self.upsamplings = nn.ModuleList()
        self.up_blocks = nn.ModuleList()
        added = down_layers[-1] * growth_rate
        for layers in up_layers:
            self.upsamplings.append(nn.ConvTranspose2d(added, added, 3, stride=2, padding=1, output_padding=1))
            channels = added + skips.pop()
            self.up_blocks.append(dense_block(channels, layers))
            added = layers * growth_rate

        self.classifier = nn.Conv2d(channels + added, classes, 1)
        self.apply(_initialise)

    def forward(self, x: Tensor) -> Tensor:
        """Return logits (B, K, H, W) of normalised fields (B, C, H, W)."""
        x = self.first(x)  # (B, first_filters, H, W)

        skips = []
        for block, transition in zip(self.down_blocks, self.transitions, strict=True):
            x = self._dense(block, x)  # (B, channels + layers * growth, h, w)
            skips.append(x)
            x = transition(x)  # (B, same, h / 2, w / 2)

        block = self.bottom
        x = self._dense(block, x)  # (B, ..., H / stride, W / stride)

        for upsampling, up_block in zip(self.upsamplings, self.up_blocks, strict=True):
            added = x[:, block.in_channels :]  # only what the block before made, not what it was given
            x = torch.cat([upsampling(added), skips.pop()], dim=1)  # (B, added + skip, 2h, 2w)
            block = up_block
            x = self._dense(block, x)  # (B, ... + layers * growth, 2h, 2w)

        logits: Tensor = self.classifier(x)  # (B, K, H, W)
        return logits

    def _dense(self, block: nn.Module, x: Tensor) -> Tensor:
        if self.checkpoint_activations and self.training and torch.is_grad_enabled():
            return recomputed(block, x)
        y: Tensor = block(x)
        return y


class _DenseBlock(nn.Module):
    """Layers that each see everything before them: (B, C, h, w) -> (B, C + layers * growth, h, w)."""

    def __init__(
        self, in_channels: int, layers: int, growth_rate: int, kernel_size: int, dropout: float, batch_norm: bool
    ) -> None:
        super().__init__()
        self.in_channels = in_channels
        self.layers = nn.ModuleList(
            _convolution(in_channels + i * growth_rate, growth_rate, kernel_size, 1, dropout, batch_norm)
            for i in range(layers)
        )

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = torch.cat([x, layer(x)], dim=1)
        return x


def _convolution(
    in_channels: int, out_channels: int, kernel_size: int, stride: int, dropout: float, batch_norm: bool
) -> nn.Sequential:
    convolution = nn.Conv2d(in_channels, out_channels, kernel_size, stride=stride, padding=kernel_size // 2)
    norm = [nn.BatchNorm2d(out_channels)] if batch_norm else []
    return nn.Sequential(convolution, *norm, nn.ReLU(), nn.Dropout(dropout))


def _initialise(module: nn.Module) -> None:
    """Draw weights after He et al. 2015, which keeps the variance through layers with ReLU; biases start at 0."""
    if isinstance(module, nn.Conv2d | nn.ConvTranspose2d):
        nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
        if module.bias is not None:
            nn.init.zeros_(module.bias)
