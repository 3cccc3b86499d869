"""``climseg plot``: a map of masks."""

import logging
from pathlib import Path

from omegaconf import DictConfig

from climseg.cli.fields import input_paths, open_input
from climseg.masks import open_masks
from climseg.plotting import save_map

log = logging.getLogger(__name__)


def run(configuration: DictConfig) -> None:
    """Open both, draw, write."""
    masks = open_masks(str(configuration.masks))
    fields = None
    if configuration.fields is not None:
        fields = open_input(configuration, input_paths(configuration.fields), [configuration.field])
    time = None if configuration.time is None else str(configuration.time)
    output = Path(str(configuration.output))
    save_map(masks, fields, time, output, configuration.field)
    log.info("picture: %s", output)
