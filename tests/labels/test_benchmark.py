"""Measurements of a definition."""

import numpy as np
import pytest

from climseg.labels.benchmark import Timing, time_definition


def test_each_run_is_measured_and_the_first_and_the_one_for_memory_are_not() -> None:
    runs: list[int] = []
    timing = time_definition(lambda: runs.append(1), np.ones((3, 4)), repeats=4)
    assert len(runs) == 2 + 4
    assert len(timing.seconds) == len(timing.sort_seconds) == 4
    assert min(timing.seconds) >= 0.0


def test_the_memory_is_the_most_that_a_run_holds_at_once() -> None:
    def run() -> float:
        kept = np.ones(250_000)  # 2 MB
        return float(np.ones(500_000)[:1].sum() + kept[0])  # 4 MB, for a moment

    timing = time_definition(run, np.ones((3, 4)), repeats=1)
    assert timing.peak_bytes == pytest.approx(6e6, rel=0.01)


def test_sorts_are_the_ratio_of_the_medians() -> None:
    assert Timing([3.0, 1.0, 8.0], [2.0, 1.5, 1.0], 0).sorts == 2.0


def test_the_field_is_left_as_it_is() -> None:
    field = np.array([[3.0, 1.0], [2.0, 0.0]])
    time_definition(lambda: None, field, repeats=1)
    np.testing.assert_array_equal(field, [[3.0, 1.0], [2.0, 0.0]])
