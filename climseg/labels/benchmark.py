"""How long the definitions take for one time step on one core, and how much memory."""

import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Timing:
    """Repeated measurements of one definition.

    Attributes:
        seconds: Processor time of each run, s.
        sort_seconds: Processor time of sorting one field, measured in turn with the runs, s.
        peak_bytes: The most memory that one run holds beside its fields.
    """

    seconds: list[float]
    sort_seconds: list[float]
    peak_bytes: int

    @property
    def sorts(self) -> float:
        """How many times as long as sorting the values of one field: a figure that other machines share."""
        return median(self.seconds) / median(self.sort_seconds)


def time_definition(run: Callable[[], Any], field: np.ndarray[Any, Any], repeats: int) -> Timing:
    """Measure one definition.

    The first run is not counted: it makes what a definition keeps for further steps of the same grid.

    Args:
        run: Applies it to a time step.
        field: (lat, lon), what is sorted for comparison.
        repeats: How often both are measured.
    """
    run()
    tracemalloc.start()  # numpy tells it of every array
    run()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    seconds, sort_seconds = [], []
    for _ in range(repeats):
        seconds.append(_processor_time(run))
        sort_seconds.append(_processor_time(lambda: np.sort(field, axis=None)))
    return Timing(seconds, sort_seconds, peak)


def _processor_time(run: Callable[[], Any]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start
