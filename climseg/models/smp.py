"""Networks and encoders of segmentation-models-pytorch, by name."""

import inspect

import segmentation_models_pytorch
import timm
from segmentation_models_pytorch.encoders import encoders, get_encoder
from torch import nn

from climseg.errors import InputError, near_matches

# What smp_model sets itself, and what would make the network return something else than logits.
_NOT_OPTIONS = {
    "self",
    "kwargs",
    "encoder_name",
    "encoder_weights",
    "in_channels",
    "classes",
    "activation",
    "aux_params",
}

# These decoders halve the encoder's features again: by pooling three times, or once for the coarsest of four scales.
_FURTHER_STRIDE = {"PAN": 8, "DPT": 2}

# How segmentation-models-pytorch and timm refuse values that do not go together.
_REFUSALS = (ValueError, TypeError, AssertionError)


def smp_model(
    arch: str, encoder: str, *, in_channels: int, classes: int, encoder_weights: str | None = None, **options: object
) -> nn.Module:
    """Build any network of segmentation-models-pytorch.

    Batch normalisation behind global pooling is taken out of the decoder (DeepLabV3, DeepLabV3Plus, PAN, UPerNet), so
    that a batch of one trains; see climseg.models.deeplabv3plus. With a periodic grid the layers wrap in longitude, but
    bilinear upsampling, as DeepLabV3, PAN and others have, still sees the edge; Unet with its defaults is exact.

    Args:
        arch: Name of the network in any case, such as Unet or FPN.
        encoder: Name of the encoder, such as resnet34, or ``tu-`` and the name of one of timm's.
        in_channels: Number of input channels C.
        classes: Number of classes K.
        encoder_weights: Name of pretrained weights (a download), or None for random ones.
        options: Further arguments of the network, and with a ``tu-`` encoder those of timm.

    Returns:
        A network (B, C, H, W) -> logits (B, K, H, W) with the attribute ``stride``, which divides H and W.

    Raises:
        InputError: For an unknown network, encoder, weights or option, or a value that the network refuses.
    """
    architectures = {a.__name__: a for a in segmentation_models_pytorch.MODEL_ARCHITECTURES_MAPPING.values()}
    found = next((a for name, a in architectures.items() if name.lower() == arch.lower()), None)
    if found is None:
        near = near_matches(arch, architectures) or f"; known are {', '.join(architectures)}"
        raise InputError(f"segmentation-models-pytorch has no network {arch!r}{near}")
    _check_encoder(encoder, encoder_weights)
    known = set(inspect.signature(found).parameters) - _NOT_OPTIONS
    for name in options:
        if name not in known and not (encoder.startswith("tu-") and name not in _NOT_OPTIONS):
            near = near_matches(name, known) or f"; it has {', '.join(sorted(known))}"
            raise InputError(f"{found.__name__} of segmentation-models-pytorch has no option {name!r} to set{near}")
    try:
        network = found(
            encoder_name=encoder, encoder_weights=encoder_weights, in_channels=in_channels, classes=classes, **options
        )
    except _REFUSALS as error:
        reason = str(error) or type(error).__name__
        raise InputError(f"{found.__name__} of segmentation-models-pytorch refuses its options: {reason}") from error
    _remove_norm_after_global_pooling(network.decoder)
    network.stride = network.encoder.output_stride * _FURTHER_STRIDE.get(found.__name__, 1)
    built: nn.Module = network
    return built


def build_encoder(
    encoder: str, encoder_weights: str | None, in_channels: int, output_stride: int
) -> tuple[nn.Module, list[int]]:
    """Build an encoder of segmentation-models-pytorch with five stages.

    Args:
        encoder: Name of the encoder, such as resnet50, or ``tu-`` and the name of one of timm's.
        encoder_weights: Name of pretrained weights (a download), or None for random ones.
        in_channels: Number of input channels C.
        output_stride: 8 or 16 (late stages are dilated instead of strided), or 32.

    Returns:
        A network (B, C, H, W) -> list of six features, the input first, the last one at 1/output_stride; and the
        channels of each feature.

    Raises:
        InputError: For an unknown encoder or weights, or an encoder that cannot be dilated.
    """
    _check_encoder(encoder, encoder_weights)
    try:
        built = get_encoder(encoder, in_channels, weights=encoder_weights, output_stride=output_stride)
    except _REFUSALS as error:
        reason = str(error) or type(error).__name__
        raise InputError(
            f"encoder {encoder} cannot be built with output stride {output_stride} ({reason}): try 32 or another one"
        ) from error
    return built, list(built.out_channels)


def _check_encoder(encoder: str, encoder_weights: str | None) -> None:
    if encoder.startswith("tu-"):
        # timm's names may carry a tag after a dot, which names the pretrained weights.
        known, name = timm.list_models(), encoder.removeprefix("tu-").split(".")[0]
        if name not in known:
            raise InputError(f"timm has no encoder {name!r}{near_matches(name, known)}")
    elif encoder not in encoders:
        near = near_matches(encoder, encoders) or "; those of timm are written tu-NAME"
        raise InputError(f"segmentation-models-pytorch has no encoder {encoder!r}{near}")
    elif encoder_weights is not None and encoder_weights not in encoders[encoder]["pretrained_settings"]:
        known = list(encoders[encoder]["pretrained_settings"])
        raise InputError(f"encoder {encoder} has no weights {encoder_weights!r}, only {', '.join(known)} or null")


def _remove_norm_after_global_pooling(decoder: nn.Module) -> None:
    """Take out batch normalisation over one cell per sample and channel, which a batch of one cannot train."""
    for sequence in decoder.modules():
        first = sequence[0] if isinstance(sequence, nn.Sequential) and len(sequence) else None
        if isinstance(first, nn.AdaptiveAvgPool2d) and first.output_size in (1, (1, 1)):
            for module in sequence.modules():
                for name, child in module.named_children():
                    if isinstance(child, nn.BatchNorm2d):
                        setattr(module, name, nn.Identity())
