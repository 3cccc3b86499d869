from datetime import datetime, timedelta

import cftime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from climseg.errors import InputError
from climseg.store.splits import split_by_time

SHARES = {"train": 0.8, "validation": 0.1, "test": 0.1}


def hourly(days: int) -> list[datetime]:
    return [datetime(2001, 1, 1) + timedelta(hours=h) for h in range(24 * days)]


def test_ten_blocks_go_eight_to_one_to_one() -> None:
    splits = split_by_time(hourly(100), SHARES, block_days=10, gap_hours=0)
    assert [splits.count(s) for s in ("train", "validation", "test")] == [8 * 240, 240, 240]


@settings(max_examples=30, deadline=None)
@given(
    steps=st.lists(st.integers(1, 30), min_size=60, max_size=200),
    gap=st.integers(1, 72),
    block=st.floats(2.0, 20.0),
)
def test_samples_of_different_splits_are_never_nearer_than_the_gap(steps: list[int], gap: int, block: float) -> None:
    times = [datetime(2001, 1, 1)]
    for step in steps:
        times.append(times[-1] + timedelta(hours=step))
    try:
        splits = split_by_time(times, SHARES, block_days=block, gap_hours=gap)
    except InputError:
        return
    kept = [(t, s) for t, s in zip(times, splits, strict=True) if s != "gap"]
    assert all(b - a >= timedelta(hours=gap) for a, sa in kept for b, sb in kept if sa != sb and b > a)


def test_a_split_without_time_steps_is_refused_with_the_mend() -> None:
    with pytest.raises(InputError, match=r"no time step is left for .*splits\.block_days"):
        split_by_time(hourly(2), SHARES, block_days=30)


def test_a_share_of_zero_leaves_a_split_out() -> None:
    splits = split_by_time(hourly(30), {"train": 0.8, "validation": 0.2, "test": 0.0})
    assert set(splits) == {"train", "validation", "gap"}


def test_shares_must_sum_to_one() -> None:
    with pytest.raises(InputError, match="sum to 1"):
        split_by_time(hourly(30), {"train": 0.8, "validation": 0.2, "test": 0.2})
    with pytest.raises(InputError, match="sum to 1"):
        split_by_time(hourly(30), {"train": float("nan"), "validation": 0.5, "test": 0.5})


@pytest.mark.parametrize("options", [{"block_days": 0.0}, {"block_days": -3.0}, {"gap_hours": -1.0}])
def test_lengths_of_nothing_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(InputError, match="expected more than 0, and 0 or more"):
        split_by_time(hourly(30), SHARES, **options)


def test_a_noleap_calendar_is_split_as_any_other() -> None:
    times = [cftime.DatetimeNoLeap(2004, 2, 20) + timedelta(hours=6 * i) for i in range(400)]
    assert set(split_by_time(times, SHARES)) == {"train", "validation", "test", "gap"}


def test_a_single_time_step_can_be_training_data_alone() -> None:
    assert split_by_time(hourly(1)[:1], {"train": 1.0, "validation": 0.0, "test": 0.0}) == ["train"]
