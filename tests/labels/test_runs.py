"""Runs against the labelling of the whole mask."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from climseg.labels.regions import label_regions
from climseg.labels.runs import RunCount, find_runs

masks = arrays(np.bool_, st.tuples(st.integers(1, 7), st.integers(3, 9)))


@settings(max_examples=300, deadline=None)
@given(mask=masks, periodic=st.booleans())
def test_the_regions_of_runs_are_those_of_the_mask(mask: np.ndarray, periodic: bool) -> None:
    labels = label_regions(mask, periodic)
    runs = find_runs(mask, periodic)
    row_area = np.arange(1.0, 1.0 + mask.shape[0])
    areas = np.bincount(labels.ravel(), weights=np.repeat(row_area, mask.shape[1]), minlength=labels.max() + 1)[1:]
    np.testing.assert_array_equal(np.sort(runs.areas(row_area)), np.sort(areas))
    for number in range(labels.max()):
        count = RunCount(mask.shape)
        count.add(runs, np.arange(labels.max()) == number)
        region = count.total() > 0
        assert region.any()
        assert np.unique(labels[region]).size == 1
        assert region.sum() == (labels == labels[region][0]).sum()


@settings(deadline=None)
@given(first=arrays(np.bool_, (4, 6)), second=arrays(np.bool_, (4, 6)))
def test_cells_are_counted_over_many_masks(first: np.ndarray, second: np.ndarray) -> None:
    count = RunCount((4, 6))
    for mask in (first, second, first):
        runs = find_runs(mask, False)
        count.add(runs, np.ones(runs.areas(np.ones(4)).size, dtype=bool))
    np.testing.assert_array_equal(count.total(), 2 * first + second)
