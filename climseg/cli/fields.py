"""Opening a command's input with the chosen source."""

from pathlib import Path
from typing import Any

import hydra
import xarray as xr
from omegaconf import DictConfig, ListConfig, OmegaConf

from climseg.sources.files import expand_paths


def input_paths(value: object) -> list[Path]:
    """The files behind a command's ``input=`` (a glob or a list), in the order of their names."""
    return expand_paths([str(v) for v in value] if isinstance(value, ListConfig) else str(value))


def open_input(configuration: DictConfig, paths: list[Path], channels: list[str] | None = None) -> xr.Dataset:
    """The canonical Dataset of input files through ``source=``, with these channels or the source's own choice."""
    chosen = {} if channels is None else {"channels": channels}
    fields: xr.Dataset = hydra.utils.instantiate(configuration.source)([str(p) for p in paths], **chosen)
    return fields


def plain(configuration: DictConfig) -> dict[str, Any]:
    """A part of the configuration as plain dicts, lists and values, with everything resolved."""
    content = OmegaConf.to_container(configuration, resolve=True)
    assert isinstance(content, dict)
    return {str(key): value for key, value in content.items()}


def command_line(command: str, configuration: DictConfig) -> str:
    """What stands in a file's history: the command and its own keys."""
    words = [f"{key!s}={value}" for key, value in configuration.items() if not isinstance(value, DictConfig)]
    return f"climseg {command} {' '.join(words)}"
