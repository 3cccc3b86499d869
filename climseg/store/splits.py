"""Splits by time: whole blocks of days go to one split, and a gap keeps neighbouring hours out of two splits."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final

import cftime

from climseg.errors import InputError
from climseg.store.info import SPLITS

GAP: Final = "gap"


def split_by_time(
    times: Sequence[cftime.datetime],
    shares: Mapping[str, float],
    block_days: float | None = None,
    gap_hours: float = 24.0,
) -> list[str]:
    """Give every time step to a split.

    The time range is cut into blocks of equal length. Block after block goes to the split that is furthest below its
    share, so that each split samples the whole range. Time steps closer than ``gap_hours`` to the last step of another
    split are left out: weather that near in time is nearly the same sample (weather systems live for days).

    Args:
        times: Increasing time steps.
        shares: Share of the blocks for ``train``, ``validation`` and ``test``; they sum to 1, and 0 leaves a split out.
        block_days: Length of a block; by default a tenth of the time range, at most 30 days.
        gap_hours: Smallest distance in time between samples of different splits.

    Returns:
        One of ``train``, ``validation``, ``test`` or ``gap`` for each time step.

    Raises:
        InputError: The shares are wrong, or a split that was asked for stays without a single time step.
    """
    if set(shares) != set(SPLITS) or not min(shares.values()) >= 0 or not abs(sum(shares.values()) - 1.0) <= 1e-6:
        raise InputError(
            f"splits: the shares of {', '.join(SPLITS)} must be 0 or more and sum to 1; got {dict(shares)}."
        )
    if not (gap_hours >= 0 and (block_days is None or block_days > 0)):
        raise InputError(f"splits: block_days={block_days} gap_hours={gap_hours}; expected more than 0, and 0 or more.")
    span_days = (times[-1] - times[0]) / timedelta(days=1)
    length = min(30.0, span_days / 10) if block_days is None else block_days
    length = max(length, 1e-3)

    blocks = [int((t - times[0]) / timedelta(days=length)) for t in times]
    split_of_block: dict[int, str] = {}
    given = dict.fromkeys(SPLITS, 0)
    for count, block in enumerate(sorted(set(blocks)), start=1):
        choice = max(SPLITS, key=lambda s: (shares[s] * count - given[s], shares[s]))
        split_of_block[block] = choice
        given[choice] += 1

    splits: list[str] = []
    last_kept: dict[str, cftime.datetime] = {}
    for time, block in zip(times, blocks, strict=True):
        split = split_of_block[block]
        near = any(time - t < timedelta(hours=gap_hours) for s, t in last_kept.items() if s != split)
        splits.append(GAP if near else split)
        if not near:
            last_kept[split] = time
    empty = [s for s in SPLITS if shares[s] > 0 and s not in splits]
    if empty:
        raise InputError(
            f"splits: no time step is left for {' and '.join(empty)} ({len(times)} steps over {span_days:g} days, "
            f"blocks of {length:g} days, {gap_hours:g} hours between splits); give more time steps, a smaller "
            "splits.block_days or splits.gap_hours, or a share of 0."
        )
    return splits
