"""Opening a command's input with the chosen source."""

from pathlib import Path
from typing import Any

import hydra
import xarray as xr
from omegaconf import DictConfig, ListConfig, OmegaConf

from climseg.atomic import check_writable
from climseg.errors import InputError
from climseg.regrid import regrid, target_grid
from climseg.sources.paths import expand_paths


def input_paths(value: object) -> list[str]:
    """The files behind a command's ``input=`` (a glob or a list), in the order of their names."""
    return expand_paths([str(v) for v in value] if isinstance(value, ListConfig) else str(value))


def open_input(configuration: DictConfig, paths: list[str], channels: list[str] | None = None) -> xr.Dataset:
    """The canonical Dataset of input files through ``source=`` and ``grid=``.

    Args:
        configuration: Of the command; one without the key ``grid`` does not interpolate.
        paths: The files.
        channels: Channels to open; None leaves the choice to the source.
    """
    chosen = {} if channels is None else {"channels": channels}
    return on_grid(configuration, paths, hydra.utils.instantiate(configuration.source)(paths, **chosen))


def on_grid(configuration: DictConfig, paths: list[str], fields: xr.Dataset) -> xr.Dataset:
    """The fields of input files on the grid of ``grid=``, or as they are where the command has none."""
    if configuration.get("grid") is None:
        return fields
    return regrid(fields, target_grid(str(configuration.grid), fields), ", ".join(paths[:2]))


def source_options(configuration: DictConfig) -> dict[str, Any]:
    """The arguments that ``source=`` gives the opener, for :func:`climseg.sources.open.survey_input`."""
    return {key: value for key, value in plain(configuration.source).items() if not key.startswith("_")}


def mask_path(value: object, paths: list[str]) -> Path:
    """The mask file to write; refused before any work when its name is bad or an input file's."""
    output = Path(str(value))
    if output.suffix not in (".nc", ".nc4"):
        raise InputError(f"output={output}: mask files are netCDF; give a name that ends in .nc.")
    if output.resolve() in [Path(p).resolve() for p in paths]:
        raise InputError(f"output={output} is an input file too and would be replaced; give another name.")
    check_writable(output)
    return output


def plain(configuration: DictConfig) -> dict[str, Any]:
    """A part of the configuration as plain dicts, lists and values, with everything resolved."""
    content = OmegaConf.to_container(configuration, resolve=True)
    assert isinstance(content, dict)
    return {str(key): value for key, value in content.items()}
