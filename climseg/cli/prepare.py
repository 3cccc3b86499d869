"""``climseg prepare``: files to a store."""

import logging
from pathlib import Path

import hydra
from omegaconf import DictConfig

from climseg.channels import CHANNELS, CLASSES
from climseg.cli.fields import input_paths, open_input, plain
from climseg.cli.progress import progress_bar
from climseg.sources.paths import input_manifest
from climseg.store.splits import split_by_time
from climseg.store.writer import write_store

log = logging.getLogger(__name__)


def run(configuration: DictConfig) -> None:
    """Open, label, split, write."""
    paths = input_paths(configuration.input)
    chosen = configuration.channels
    fields = open_input(configuration, paths, [chosen] if isinstance(chosen, str) else chosen and list(chosen))
    channels = [str(name) for name in fields.data_vars if name in CHANNELS]
    masks = hydra.utils.instantiate(configuration.labels)(fields)

    shares = plain(configuration.splits)
    block_days, gap_hours = shares.pop("block_days"), shares.pop("gap_hours")
    splits = split_by_time(list(fields["time"].to_index()), shares, block_days, gap_hours)
    request = {
        "input_files": input_manifest(paths),
        "source": plain(configuration.source),
        "labels": plain(configuration.labels),
    }
    output = Path(configuration.output)
    with progress_bar("time steps") as progress:
        info = write_store(
            fields,
            masks,
            output,
            channels=channels,
            splits=splits,
            request=request,
            workers=configuration.workers,
            progress=progress,
            origin=str(configuration.input),
        )
    counts = ", ".join(f"{splits.count(s)} {s}" for s in dict.fromkeys(splits))
    shares_of_classes = ", ".join(f"{name} {f:.3%}" for name, f in zip(CLASSES, info.frequencies, strict=True))
    log.info("%s: %d channels, time steps: %s; training cells: %s", output, len(channels), counts, shares_of_classes)
