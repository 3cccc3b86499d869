"""``climseg label``: files to masks by a published heuristic."""

import logging

import hydra
from omegaconf import DictConfig

from climseg.cli.fields import input_paths, mask_path, open_input
from climseg.cli.progress import progress_bar
from climseg.masks import MaskWriter, describe_input

log = logging.getLogger(__name__)


def run(configuration: DictConfig) -> None:
    """Open, label, write."""
    paths = input_paths(configuration.input)
    output = mask_path(configuration.output, paths)
    fields = open_input(configuration, paths)
    masks = hydra.utils.instantiate(configuration.labels)(fields)
    attributes = {"title": "Extreme weather masks by climseg", "source": "heuristic labels, no network"}
    attributes |= describe_input(fields, paths)
    definition = str(masks.attrs.get("definition", ""))
    total = masks.sizes["time"]
    with (
        progress_bar("time steps") as progress,
        MaskWriter(output, fields, attributes, definition, configuration.command_line) as writer,
    ):
        progress(0, total)
        for index in range(total):
            writer.write(index, masks.isel(time=index).values)
            progress(index + 1, total)
    log.info("masks: %s", output)
