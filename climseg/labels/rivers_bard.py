"""The rivers of BARD: the share of many parameter choices under which a cell lies in a region of strong transport."""

import csv
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np
from scipy.stats import qmc

from climseg.errors import InputError, near_matches
from climseg.grid import Floats, is_periodic, row_cell_area
from climseg.labels.needs import Needs, needs
from climseg.labels.regions import label_regions, measure_regions
from climseg.labels.runs import RunCount, find_runs
from climseg.labels.step import Field, RegionTable, Rivers, Step

# The parameters of a row, and the ranges that O'Brien et al. 2020 give for them.
RANGES: Final = {"quantile": (0.80, 0.99), "hwhm_degrees": (5.3, 25.0), "min_area_km2": (3.5e5, 5.0e6)}
_POSSIBLE: Final = {"quantile": (0.0, 1.0), "hwhm_degrees": (1e-6, 180.0), "min_area_km2": (0.0, 5.2e8)}
# One value in so many makes the sample, and its quantile is taken lower by the margin.
_SAMPLED: Final = 61
_MARGIN: Final = 0.04


@needs(Needs(("IVT",), whole_globe=True))
def atmospheric_rivers(
    step: Step, *, min_probability: float = 2 / 3, rows: int = 64, parameters: str | None = None
) -> Rivers:
    """Mark the cells whose :func:`river_probability` is at least ``min_probability``.

    Regions are those of the marked cells; nothing more is asked of them.

    Args:
        step: With IVT; missing values (NaN) are no river, and untold.
        min_probability: 0 to 1.
        rows: See :func:`river_probability`.
        parameters: See :func:`river_probability`.

    Raises:
        InputError: What :func:`river_probability` raises.

    Source: O'Brien et al. 2020 (doi:10.5194/gmd-13-6131-2020), and the threshold of 2/3 in TECA.
    """
    probability = river_probability(step, rows=rows, parameters=parameters)
    likely = probability >= min_probability
    labels = label_regions(likely, is_periodic(step.lon), connectivity=4)
    found = measure_regions(labels, step.lat, step.lon)
    sums = np.bincount(labels[likely] - 1, weights=probability[likely], minlength=found.area.size)
    cells = np.bincount(labels[likely] - 1, minlength=found.area.size)
    regions = RegionTable(
        measures={
            "lat": found.lat,
            "lon": found.lon,
            "area_km2": found.area / 1e6,
            "mean_probability": sums / cells,
        },
        failed={"probability": np.zeros(found.area.size, dtype=np.bool_)},  # what fails it is no region at all
    )
    return Rivers(likely, np.isnan(probability), regions)


def river_probability(step: Step, *, rows: int = 64, parameters: str | None = None) -> Floats:
    """Share (lat, lon) of the parameter rows under which a cell is a river; NaN where IVT is missing.

    Under one row IVT is damped towards the equator by ``1 - exp(-lat^2 / (2 sigma^2))`` with
    ``sigma = hwhm_degrees / sqrt(2 ln 2)``, the cells above the ``quantile`` of the damped field stay (every present
    cell counts alike, as in TECA's percentile segmentation), and of their regions (4 neighbours, over the seam of a
    closed grid) those of at least ``min_area_km2``.

    TECA draws its rows from a posterior that it has sampled by a Markov chain from experts' counts of rivers. Without a
    table of rows a fixed sequence fills the published ranges evenly; TECA's own rows can be given as a table.

    Args:
        step: With IVT.
        rows: How many rows of the fixed sequence, at least 1; no matter with ``parameters``.
        parameters: Path of a CSV file of rows, with the columns quantile (0 to 1), hwhm_degrees and min_area_km2.

    Raises:
        InputError: ``rows`` is below 1, or the file is absent or has other columns or impossible values.
    """
    table = parameter_rows(rows) if parameters is None else read_parameter_rows(parameters)
    ivt = step.fields["IVT"]
    present = ~np.isnan(ivt)
    whole, some = bool(present.all()), bool(present.any())
    closed, row_area = is_periodic(step.lon), row_cell_area(step.lat, step.lon) / 1e6
    count = RunCount((step.lat.size, step.lon.size))
    for quantile, hwhm, min_area in table if some else ():
        sigma = hwhm / np.sqrt(2.0 * np.log(2.0))
        damping = 1.0 - np.exp(-(step.lat**2) / (2.0 * sigma**2))
        damped = ivt * damping.astype(ivt.dtype)[:, None]
        values = damped.ravel() if whole else damped[present]
        runs = find_runs(damped > _upper_quantile(values, quantile), closed)
        count.add(runs, runs.areas(row_area) >= min_area)
    return np.where(present, count.total() / len(table), np.nan)


def _upper_quantile(values: Field, quantile: float) -> float:
    """As ``np.quantile``, with less to sort: what a sample shows to lie well below the quantile is left out."""
    guess = np.quantile(values[::_SAMPLED], max(quantile - _MARGIN, 0.0))
    upper = values[values >= guess]
    position = quantile * (values.size - 1) - (values.size - upper.size)
    if position < 0 or upper.size == 1:
        return float(np.quantile(values, quantile))
    return float(np.quantile(upper, min(position / (upper.size - 1), 1.0)))


@lru_cache(maxsize=4)
def parameter_rows(rows: int) -> Floats:
    """A fixed sequence (rows, 3) that fills ``RANGES`` evenly: Sobol's, in the order of its numbers.

    Raises:
        InputError: ``rows`` is below 1.
    """
    if rows < 1:
        raise InputError(f"rows of the rivers of bard is {rows}; expected 1 or more.")
    # Not scrambled, so that no seed and no version of a library can change it; half a step off the ranges' ends.
    power = int(np.ceil(np.log2(rows)))
    points = qmc.Sobol(len(RANGES), scramble=False).random_base2(power)[:rows] + 0.5 / 2**power
    low, high = (np.array(ends) for ends in zip(*RANGES.values(), strict=True))
    return np.asarray(low + points * (high - low), dtype=np.float64)


def read_parameter_rows(path: str) -> Floats:
    """Rows (n, 3) of a CSV file, in the order of ``RANGES``; other columns are left out, ``~`` is the home folder.

    Raises:
        InputError: The file is absent or empty, lacks a column, or has a value that is no number or out of its range.
    """
    file = Path(path).expanduser()
    try:
        changed = file.stat().st_mtime_ns
    except OSError as error:
        raise _unreadable(file, error) from error
    return _read(file, changed)


@lru_cache(maxsize=4)
def _read(path: Path, changed: int) -> Floats:
    """See :func:`read_parameter_rows`; a file that has ``changed`` (its time of modification in ns) is read again."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file, skipinitialspace=True)
            columns = reader.fieldnames or []
            rows = list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise _unreadable(path, error) from error
    for name in RANGES:
        if name not in columns:
            raise InputError(
                f"{path}: the table of parameters has no column {name!r}{near_matches(name, columns)} "
                f"(expected the columns {', '.join(RANGES)}; there are {', '.join(columns) or 'none'})."
            )
    if not rows:
        raise InputError(f"{path}: the table of parameters has no rows below its header.")
    return np.array([[_value(path, line, row, name) for name in RANGES] for line, row in enumerate(rows, start=2)])


def _unreadable(path: Path, error: Exception) -> InputError:
    return InputError(f"{path}: the table of parameters cannot be read ({error}).")


def _value(path: Path, line: int, row: Mapping[str, str | None], name: str) -> float:
    low, high = _POSSIBLE[name]
    text = row[name]
    try:
        value = float(text or "")
    except ValueError:
        value = np.nan
    if not low <= value <= high:
        raise InputError(f"{path}: line {line}, {name} is {text!r}; expected a number from {low:g} to {high:g}.")
    return value
