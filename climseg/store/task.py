"""What one task does for a store: read a block of time steps with its labels, check it, write it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from climseg.blocks import Block, Reading, Segment, read_block
from climseg.canonical import check_values, iso_times
from climseg.channels import CLASSES, LABELS, MISSING_LABEL
from climseg.errors import InputError
from climseg.store.info import write_image, write_mask
from climseg.store.packing import StoredType
from climseg.store.statistics import SampleStatistics, sample_packing, sample_statistics


@dataclass(frozen=True)
class StoreTask:
    """What a task needs to write any block of a segment.

    Attributes:
        segment: The channels in their order and LABELS (time, lat, lon), lazy.
        folder: The unfinished store.
        origin: The input to name in an error.
        reading: Around the reading of a small block.
        dtype: How images are stored.
    """

    segment: Segment
    folder: Path
    origin: str
    reading: Reading
    dtype: StoredType = "float32"


def write_block(task: StoreTask, block: Block) -> dict[int, SampleStatistics]:
    """Read, label, check and write the time steps of a block.

    Returns:
        The statistics of each time step by its position in the input.

    Raises:
        InputError: A channel holds missing or impossible values, or a mask a number that is no class.
    """
    fields = read_block(task.segment, block, task.reading)
    masks = fields[LABELS].values
    channels = {str(name): field.values for name, field in fields.drop_vars(LABELS).items()}
    written: dict[int, SampleStatistics] = {}
    for offset, time in enumerate(iso_times(fields)):
        image = np.stack([values[offset] for values in channels.values()])  # (C, H, W)
        for channel, values in zip(channels, image, strict=True):
            check_values(channel, values, time, task.origin)
        _check_mask(masks[offset], time)
        statistics = sample_statistics(image, masks[offset])
        write_image(task.folder, block.start + offset, image, task.dtype, sample_packing(statistics, task.dtype))
        write_mask(task.folder, block.start + offset, masks[offset])
        written[block.start + offset] = statistics
    return written


def _check_mask(mask: NDArray[Any], time: str) -> None:
    if mask.min() < MISSING_LABEL or mask.max() >= len(CLASSES):
        strange = mask[(mask < MISSING_LABEL) | (mask >= len(CLASSES))][0]
        raise InputError(
            f"{LABELS} holds {strange} at {time}; expected 0 (background), 1 (tropical cyclone), 2 (atmospheric "
            f"river) or {MISSING_LABEL} (not labelled)."
        )
