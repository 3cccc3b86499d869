"""Percentiles of five-month windows against numpy on all data at once."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from climseg.labels.climatology import create_spool, row_percentiles, spool_step


def spooled(path: Path, values: np.ndarray) -> Path:
    """A spool of (time, lat, lon)."""
    steps, lat_size, lon_size = values.shape
    create_spool(path, lat_size, steps, lon_size)
    for index in np.random.default_rng(0).permutation(steps):
        spool_step(path, int(index), values[index])
    return path


def whole(values: np.ndarray, months: np.ndarray, percentile: float, min_steps: int) -> np.ndarray:
    """(12, lat, lon) from all data at once."""
    result = np.full((12, *values.shape[1:]), np.nan)
    for month in range(12):
        window = [(month + k) % 12 + 1 for k in (-2, -1, 0, 1, 2)]
        chosen = values[np.isin(months, window)].astype(np.float64)
        if len(chosen):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # cells without any value
                of_all = np.nanpercentile(chosen, percentile, axis=0)
            result[month] = np.where((~np.isnan(chosen)).sum(axis=0) >= min_steps, of_all, np.nan)
    return result


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 1000),
    steps=st.integers(1, 60),
    percentile=st.sampled_from([0.0, 50.0, 85.0, 93.3, 100.0]),
    missing=st.sampled_from([0.0, 0.3]),
    min_steps=st.integers(0, 20),
)
def test_it_is_the_percentile_of_all_steps_of_the_five_months(
    tmp_path_factory: pytest.TempPathFactory, seed: int, steps: int, percentile: float, missing: float, min_steps: int
) -> None:
    generator = np.random.default_rng(seed)
    values = (generator.random((steps, 5, 4)) * 1000).astype(np.float32)
    values[generator.random(values.shape) < missing] = np.nan
    months = generator.integers(1, 13, steps)
    path = spooled(tmp_path_factory.mktemp("spool") / "spool", values)
    expected = whole(values, months, percentile, max(min_steps, 1))
    for rows in (slice(0, 5), slice(2, 4), slice(4, 9)):
        found = row_percentiles(path, rows, months, percentile, min_steps)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, expected[:, rows], rtol=1e-6)


def test_december_and_january_are_neighbours_and_years_count_together(tmp_path: Path) -> None:
    months = np.tile(np.arange(1, 13), 3)
    values = (np.arange(36) // 12 * 100.0 + months)[:, None, None] * np.ones((1, 2, 3))
    path = spooled(tmp_path / "spool", values)
    median = row_percentiles(path, slice(0, 2), months, 50.0, 1)
    # January of 3 years with November, December, February, March: the values of the middle year, 101 to 112.
    assert (median[0] == 103.0).all()
    assert (median[6] == 107.0).all()


def test_too_few_steps_leave_a_month_missing(tmp_path: Path) -> None:
    months = np.array([1, 1, 2, 7])
    path = spooled(tmp_path / "spool", np.ones((4, 2, 3)))
    found = row_percentiles(path, slice(0, 2), months, 85.0, 3)
    told = [month + 1 for month in range(12) if np.isfinite(found[month]).all()]
    assert told == [1, 2, 3, 12]
    assert np.isnan(found[3:11]).all()


def test_a_step_of_another_grid_or_number_is_refused(tmp_path: Path) -> None:
    create_spool(tmp_path / "spool", 2, 4, 3)
    for index, shape in ((0, (3, 2)), (4, (2, 3)), (-1, (2, 3))):
        with pytest.raises(ValueError, match="is none of 4 of shape"):
            spool_step(tmp_path / "spool", index, np.zeros(shape))
    with pytest.raises(ValueError, match="months has the shape"):
        row_percentiles(tmp_path / "spool", slice(0, 1), [1, 2], 85.0, 1)


def test_the_file_has_its_full_size_from_the_start(tmp_path: Path) -> None:
    create_spool(tmp_path / "spool", 10, 20, 30)
    assert (tmp_path / "spool").stat().st_size - 4 * 10 * 20 * 30 == 128  # numpy's header
    assert np.load(tmp_path / "spool", mmap_mode="r").shape == (10, 20, 30)
