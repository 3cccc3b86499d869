"""``climseg label``: files to masks by a published heuristic, or by the masks that came with them."""

import logging
from collections.abc import Callable
from pathlib import Path

import hydra
import xarray as xr
from omegaconf import DictConfig

from climseg.atomic import check_writable, sole_writer
from climseg.channels import LABELS
from climseg.cli.fields import input_paths, mask_path, open_input
from climseg.cli.labelling import climatology_path, label_request, open_for, run_heuristic
from climseg.cli.progress import progress_bar
from climseg.labels.heuristic import Heuristic
from climseg.labels.make_climatology import lacks_climatology
from climseg.labels.run import table_paths
from climseg.labels.spool import spool_path
from climseg.masks import MaskWriter, describe_input
from climseg.sources.steps import read_steps

log = logging.getLogger(__name__)


def run(configuration: DictConfig) -> None:
    """Open, label, write."""
    paths = input_paths(configuration.input)
    output = mask_path(configuration.output, paths)
    labels = hydra.utils.instantiate(configuration.labels)
    if isinstance(labels, Heuristic):
        _by_heuristic(labels, configuration, paths, output)
    else:
        _from_file(labels, configuration, paths, output)
    log.info("masks: %s", output)


def _by_heuristic(heuristic: Heuristic, configuration: DictConfig, paths: list[str], output: Path) -> None:
    tables = table_paths(output, heuristic, configuration.explain)
    for path in tables.values():
        check_writable(path)
    labelling = open_for(heuristic, configuration, paths)
    with sole_writer(spool_path(output)):
        request = label_request(configuration, paths)
        run_heuristic(labelling, configuration, paths, request, output, tables, configuration.explain)
    if lacks_climatology(heuristic.rivers):
        log.info("climatology: %s", climatology_path(output))
    for name, path in tables.items():
        log.info("%s: %s", name, path)


def _from_file(
    labels: Callable[[xr.Dataset], xr.DataArray], configuration: DictConfig, paths: list[str], output: Path
) -> None:
    """The masks of the files, one time step after the other."""
    fields = open_input(configuration, paths)
    masks = labels(fields)
    attributes = {"title": "Extreme weather masks by climseg", "source": "labels that came with the files"}
    attributes |= describe_input(fields, paths)
    total = masks.sizes["time"]
    with (
        progress_bar("time steps") as progress,
        MaskWriter(
            output, fields, attributes, str(masks.attrs.get("definition", "")), configuration.command_line
        ) as writer,
    ):
        progress(0, total)
        for index, step in enumerate(read_steps(masks.to_dataset(name=LABELS))):
            writer.write(index, step[LABELS].values)
            progress(index + 1, total)
