"""``climseg predict``: files to masks with a trained network."""

import logging
from pathlib import Path

from omegaconf import DictConfig

from climseg.atomic import check_writable
from climseg.cli.device import choose_device
from climseg.cli.fields import command_line, input_paths, open_input
from climseg.cli.progress import progress_bar
from climseg.inference.predict import write_predictions
from climseg.training.contract import load_checkpoint

log = logging.getLogger(__name__)


def run(configuration: DictConfig) -> None:
    """Open, predict, write."""
    output = Path(str(configuration.output))
    check_writable(output)
    checkpoint = load_checkpoint(str(configuration.checkpoint))
    paths = input_paths(configuration.input)
    fields = open_input(configuration, paths, checkpoint.contract.channels)
    with progress_bar("time steps") as progress:
        write_predictions(
            checkpoint,
            fields,
            output,
            command=command_line("predict", configuration),
            input_files=paths,
            regrid=configuration.regrid,
            probabilities=configuration.probabilities,
            device=choose_device(configuration.device),
            progress=progress,
        )
    log.info("masks: %s", output)
