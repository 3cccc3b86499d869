"""``climseg benchmark``: how fast this machine does a part of the work."""

import importlib
import json
import logging
from typing import Final

from omegaconf import DictConfig

from climseg.cli.json_file import json_path, write_json
from climseg.errors import InputError, near_matches

log = logging.getLogger(__name__)

# Each is a module climseg.cli.benchmarks.NAME with run(configuration) -> figures.
BENCHMARKS: Final = ("prepare", "labels", "input", "train", "scaling")


def run(configuration: DictConfig) -> None:
    """Measure, show a table and one line of JSON, write."""
    what = str(configuration.what)
    if what not in BENCHMARKS:
        near = near_matches(what, BENCHMARKS) or "."
        raise InputError(f"what={what}: no such benchmark{near} Known: {', '.join(BENCHMARKS)}.")
    output = None if configuration.output is None else json_path(configuration.output, "the figures are")
    figures = {"what": what} | importlib.import_module(f"climseg.cli.benchmarks.{what}").run(configuration)
    print(json.dumps(figures))  # noqa: T201
    if output is not None:
        write_json(output, figures)
        log.info("figures: %s", output)
