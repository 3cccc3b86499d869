"""A network from plain values, as a checkpoint holds them."""

import importlib
import inspect
from collections.abc import Callable, Mapping

from torch import nn

from climseg.errors import InputError, near_matches


def build_network(config: Mapping[str, object], in_channels: int, classes: int, pretrained: bool = True) -> nn.Module:
    """Build the network that a model configuration names.

    The configuration may come from a checkpoint of unknown origin, so nothing is called before it is known to build a
    network: ``_target_`` must be a subclass of torch.nn.Module, or a function of climseg.models.

    Args:
        config: ``_target_``, such as climseg.models.tiramisu.Tiramisu, and its arguments.
        in_channels: Number of input channels C, as the store has them.
        classes: Number of classes K.
        pretrained: False to ignore ``encoder_weights``: their download is wasted when a state dict is loaded next.

    Returns:
        A network (B, C, H, W) -> logits (B, K, H, W).

    Raises:
        InputError: For a target that is missing, cannot be imported or does not build networks, for unknown and missing
            arguments, and for values that the network refuses.
    """
    arguments = dict(config)
    name = arguments.pop("_target_", None)
    target = _find_target(name)
    parameters = inspect.signature(target).parameters
    takes_all = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    for argument in arguments:
        if argument in ("in_channels", "classes"):
            raise InputError(f"model: {argument} comes from the data; take it out of the configuration of {name}")
        if argument not in parameters and not takes_all:
            near = near_matches(argument, parameters) or f"; it takes {', '.join(parameters)}"
            raise InputError(f"model: {name} has no argument {argument!r}{near}")
    if not pretrained and "encoder_weights" in arguments:
        arguments["encoder_weights"] = None
    arguments |= {"in_channels": in_channels, "classes": classes}
    try:
        inspect.signature(target).bind(**arguments)
    except TypeError as error:
        raise InputError(f"model: {name}: {error}") from error
    try:
        network = target(**arguments)
    except (ValueError, TypeError, RuntimeError, ZeroDivisionError, AssertionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"model: {name} cannot be built with these arguments: {error}") from error
    if not isinstance(network, nn.Module):
        raise InputError(f"model: {name} returned {type(network).__name__} instead of a network")
    return network


def _find_target(name: object) -> Callable[..., object]:
    if not isinstance(name, str) or "." not in name:
        raise InputError(
            f"model: _target_ is {name!r}, but the full name of a network was expected, such as "
            "climseg.models.tiramisu.Tiramisu"
        )
    module_name, _, attribute = name.rpartition(".")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise InputError(f"model: _target_ {name} cannot be imported: {error}") from error
    if not hasattr(module, attribute):
        raise InputError(f"model: {module_name} has no {attribute!r}{near_matches(attribute, vars(module)) or '.'}")
    target: Callable[..., object] = getattr(module, attribute)
    is_network = inspect.isclass(target) and issubclass(target, nn.Module)
    is_own_function = inspect.isfunction(target) and target.__module__.startswith("climseg.models.")
    if not (is_network or is_own_function):
        raise InputError(
            f"model: _target_ {name} is refused: only a subclass of torch.nn.Module or a function of climseg.models "
            "may build a network"
        )
    return target
