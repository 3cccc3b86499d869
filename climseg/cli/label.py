"""``climseg label``: files to masks by a published heuristic."""

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import hydra
import xarray as xr
from omegaconf import DictConfig

from climseg.canonical import check_range, iso_times
from climseg.channels import CHANNELS, LABELS
from climseg.cli.fields import input_paths, mask_path, open_input, source_options
from climseg.cli.progress import progress_bar
from climseg.errors import InputError
from climseg.labels.needs import needs_of
from climseg.masks import MaskWriter, describe_input
from climseg.sources.open import survey_input
from climseg.sources.steps import read_steps

log = logging.getLogger(__name__)


def run(configuration: DictConfig) -> None:
    """Open, label, write."""
    paths = input_paths(configuration.input)
    output = mask_path(configuration.output, paths)
    labels = hydra.utils.instantiate(configuration.labels)
    fields = _open_what_is_needed(configuration, paths, labels)
    masks = labels(fields)
    attributes = {"title": "Extreme weather masks by climseg", "source": "heuristic labels, no network"}
    attributes |= describe_input(fields, paths)
    definition = str(masks.attrs.get("definition", ""))
    total = masks.sizes["time"]
    with (
        progress_bar("time steps") as progress,
        MaskWriter(output, fields, attributes, definition, configuration.command_line) as writer,
    ):
        progress(0, total)
        for index, mask in enumerate(_checked_masks(fields, masks, attributes["input_files"])):
            writer.write(index, mask)
            progress(index + 1, total)
    log.info("masks: %s", output)


def _open_what_is_needed(configuration: DictConfig, paths: list[str], labels: Callable[..., Any]) -> xr.Dataset:
    """The input with the channels that the labels need, or with those of ``source.channels`` where it is given."""
    needed = needs_of(labels)
    if needed is None or configuration.source.channels is not None:
        return open_input(configuration, paths)
    try:
        return open_input(configuration, paths, list(needed.channels))
    except InputError as error:
        if needed.fewer and _are_there(needed.fewer, configuration, paths):
            raise InputError(f"{error} {needed.instead}") from error
        raise


def _are_there(channels: Sequence[str], configuration: DictConfig, paths: list[str]) -> bool:
    try:
        survey = survey_input(paths, **(source_options(configuration) | {"channels": list(channels)}))
    except InputError:
        return False
    return not survey.missing


def _checked_masks(fields: xr.Dataset, masks: xr.DataArray, origin: str) -> Iterator[Any]:
    """Masks (lat, lon) int8 in the order of time, each after the values of its fields were found possible.

    Fields and masks are computed together, so that nothing is read twice. Missing values pass: the heuristics mark
    them.

    Raises:
        InputError: A channel holds values that its unit cannot give; channel and time are named.
    """
    channels = [str(name) for name in fields.data_vars if name in CHANNELS]
    both = fields[channels].assign({LABELS: masks})
    for time, step in zip(iso_times(fields), read_steps(both), strict=True):
        for channel in channels:
            check_range(channel, step[channel].values, time, origin)
        yield step[LABELS].values
