"""The values of a sample of time steps, one step in memory at a time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from climseg.canonical import check_range, iso_times
from climseg.channels import CLASSES, LABELS, MISSING_LABEL
from climseg.errors import InputError
from climseg.inspection.report import LabelsReport, ValuesReport
from climseg.likely_units import likely_units, looks_too_small

Progress = Callable[[int, int], None]


def sample_of(steps: int, wanted: int | None) -> list[int]:
    """Positions of a sample of time steps, spread evenly from the first to the last; None takes all."""
    if wanted is None or wanted >= steps:
        return list(range(steps))
    return sorted({round(position) for position in np.linspace(0, steps - 1, wanted).tolist()})


class Tally:
    """What is remembered of the steps of one Dataset that were read."""

    def __init__(self, names: Sequence[str], whole_globe: bool) -> None:
        """Begin with nothing read.

        Args:
            names: The channels of the Dataset.
            whole_globe: Whether its grid covers the globe; some checks make sense there alone.
        """
        self._whole_globe = whole_globe
        self._channels = {name: _Sums() for name in names}
        self._classes = np.zeros(len(CLASSES) + 1, dtype=np.int64)
        self._labels_problem = ""

    def read(self, ds: xr.Dataset, indices: Sequence[int], progress: Progress = lambda done, total: None) -> None:
        """Read time steps, one after the other."""
        times = iso_times(ds)
        for done, index in enumerate(indices):
            progress(done, len(indices))
            self._add(ds.isel(time=index), times[index])
        progress(len(indices), len(indices))

    def values(self, channel: str) -> ValuesReport:
        """What was seen of a channel."""
        sums = self._channels[channel]
        some = sums.finite > 0
        return ValuesReport(
            steps=sums.steps,
            minimum=sums.minimum if some else None,
            mean=sums.total / sums.finite if some else None,
            maximum=sums.maximum if some else None,
            missing_share=1.0 - sums.finite / sums.cells if sums.cells else 0.0,
            missing_at=sums.missing_at,
            unreadable=sums.unreadable,
            constant_at=sums.constant_at,
            impossible=sums.impossible,
            mistake=sums.mistake,
            impossible_at=sums.impossible_at,
            too_small=self._whole_globe and some and looks_too_small(channel, sums.minimum, sums.maximum),
        )

    def labels(self) -> LabelsReport:
        """What was seen of the mask."""
        labelled = int(self._classes[1:].sum())
        shares = {name: n / labelled for name, n in zip(CLASSES, self._classes[1:].tolist(), strict=True) if labelled}
        missing = float(self._classes[0] / max(self._classes.sum(), 1))
        return LabelsReport(not self._labels_problem, self._labels_problem, shares, missing)

    def _add(self, step: xr.Dataset, time: str) -> None:
        try:
            read = {str(name): variable.values for name, variable in step.compute().data_vars.items()}
            unreadable: dict[str, str] = {}
        except InputError:  # of one field; which of them, and the others, shows one by one
            read, unreadable = _one_by_one(step)
        for name, values in read.items():
            if name == LABELS:
                self._classes += np.bincount(
                    values.ravel().astype(np.int64) - MISSING_LABEL, minlength=len(CLASSES) + 1
                )
            else:
                self._channels[name].add(name, values, time)
        for name, sentence in unreadable.items():
            if name == LABELS:
                self._labels_problem = self._labels_problem or sentence
            else:
                self._channels[name].steps += 1
                self._channels[name].unreadable[time] = sentence


def _one_by_one(step: xr.Dataset) -> tuple[dict[str, NDArray[np.float32]], dict[str, str]]:
    """The values that can be read, and for the others why not."""
    read, unreadable = {}, {}
    for name, variable in step.data_vars.items():
        try:
            read[str(name)] = variable.values
        except InputError as error:
            unreadable[str(name)] = str(error)
    return read, unreadable


@dataclass
class _Sums:
    """What is remembered of one channel; attributes as in :class:`ValuesReport`."""

    steps: int = 0
    cells: int = 0
    finite: int = 0
    total: float = 0.0
    minimum: float = np.inf
    maximum: float = -np.inf
    missing_at: list[str] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)
    constant_at: list[str] = field(default_factory=list)
    impossible: str = ""
    mistake: str = ""
    impossible_at: list[str] = field(default_factory=list)

    def add(self, channel: str, values: NDArray[np.float32], time: str) -> None:
        """Count one step (lat, lon)."""
        finite = values[np.isfinite(values)]
        self.steps += 1
        self.cells += values.size
        self.finite += finite.size
        if finite.size < values.size:
            self.missing_at.append(time)
        if finite.size:
            smallest, largest = float(finite.min()), float(finite.max())
            self.total += float(finite.sum(dtype=np.float64))
            self.minimum, self.maximum = min(self.minimum, smallest), max(self.maximum, largest)
            if smallest == largest:
                self.constant_at.append(time)
        try:
            check_range(channel, values, time, "")
        except InputError as error:
            if not self.impossible:
                self.impossible, self.mistake = str(error).removeprefix(": "), likely_units(channel, values)
            self.impossible_at.append(time)
