"""``climseg predict``: files to masks with a trained network."""

import logging

from omegaconf import DictConfig

from climseg.cli.device import choose_device
from climseg.cli.fields import input_paths, mask_path, open_input
from climseg.cli.progress import progress_bar
from climseg.inference.predict import write_predictions
from climseg.training.contract import load_checkpoint

log = logging.getLogger(__name__)


def run(configuration: DictConfig) -> None:
    """Open, predict, write."""
    paths = input_paths(configuration.input)
    output = mask_path(configuration.output, paths)
    checkpoint = load_checkpoint(str(configuration.checkpoint))
    fields = open_input(configuration, paths, checkpoint.contract.channels)
    with progress_bar("time steps") as progress:
        write_predictions(
            checkpoint,
            fields,
            output,
            command=configuration.command_line,
            input_files=paths,
            regrid=configuration.regrid,
            probabilities=configuration.probabilities,
            device=choose_device(configuration.device),
            progress=progress,
        )
    log.info("masks: %s", output)
