from itertools import pairwise

import dask.array as da
import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from climseg import blocks
from climseg.blocks import Block, segments, time_blocks
from climseg.channels import CHANNELS, LABELS


def lazy(steps: int, chunks: dict[str, tuple[int, ...] | int], rows: int = 192, columns: int = 288) -> xr.Dataset:
    """Zeros that are never computed: channels with their dask chunks in time."""
    shape = (steps, rows, columns)
    return xr.Dataset(
        {
            name: (("time", "lat", "lon"), da.zeros(shape, dtype=np.float32, chunks=(chunk, rows, columns)))
            for name, chunk in chunks.items()
        }
    )


def lengths(found: list[Block]) -> list[int]:
    return [block.stop - block.start for block in found]


# One step of 16 channels of 192 x 288 cells in float32 is 3.5 MB: four are 13.5 MiB, 75 are 253 MiB.
ALL_16 = list(CHANNELS)[:16]


def test_short_chunks_are_joined_up_to_16_mib() -> None:
    assert lengths(time_blocks(lazy(10, dict.fromkeys(ALL_16, 1)), ALL_16)) == [4, 4, 2]


def test_the_steps_of_a_chunk_stay_together() -> None:
    assert lengths(time_blocks(lazy(70, dict.fromkeys(ALL_16, 30)), ALL_16)) == [30, 30, 10]


def test_chunks_of_more_than_256_mib_are_cut_evenly() -> None:
    assert lengths(time_blocks(lazy(200, dict.fromkeys(ALL_16, 200)), ALL_16)) == [66, 67, 67]


def test_one_step_at_a_quarter_degree_is_a_block_of_its_own() -> None:
    assert lengths(time_blocks(lazy(3, dict.fromkeys(ALL_16, 1), 768, 1152), ALL_16)) == [1, 1, 1]


def test_the_channel_with_the_longest_chunks_decides() -> None:
    ds = lazy(90, dict.fromkeys(ALL_16, 1) | {"PSL": (31, 28, 31)})
    assert time_blocks(ds, ALL_16) == [Block(0, 31), Block(31, 59), Block(59, 90)]
    assert max(lengths(time_blocks(ds, [c for c in ALL_16 if c != "PSL"]))) == 5


def test_steps_that_are_done_are_left_out_and_the_rest_stays_in_its_block() -> None:
    ds = lazy(70, dict.fromkeys(ALL_16, 30))
    assert time_blocks(ds, ALL_16, done={*range(30), 40, 41}) == [Block(30, 40), Block(42, 60), Block(60, 70)]
    assert time_blocks(ds, ALL_16, done=range(70)) == []


@settings(max_examples=50, deadline=None)
@given(chunks=st.lists(st.integers(1, 300), min_size=1, max_size=20), done=st.sets(st.integers(0, 6000)))
def test_every_step_is_in_one_block_and_no_short_chunk_in_two(chunks: list[int], done: set[int]) -> None:
    ds = lazy(sum(chunks), dict.fromkeys(ALL_16, tuple(chunks)))
    found = time_blocks(ds, ALL_16, done)
    assert [i for b in found for i in range(b.start, b.stop)] == [i for i in range(sum(chunks)) if i not in done]
    whole = time_blocks(ds, ALL_16)
    assert max(lengths(whole)) * 16 * 192 * 288 * 4 <= 256 * 2**20
    ends = {block.stop for block in whole}
    for start, stop in pairwise([0, *np.cumsum(chunks).tolist()]):
        assert stop - start > 75 or not ends & set(range(start + 1, stop))


def test_segments_hold_the_steps_of_their_blocks(atmosphere: xr.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "_SEGMENT", 5)
    fields = atmosphere[["TMQ", LABELS]].chunk(time=1)
    wanted = [Block(0, 2), Block(2, 5), Block(7, 8), Block(8, 20), Block(20, 24)]
    found = list(segments(fields, wanted))
    assert [part for _, parts in found for part in parts] == wanted
    assert [segment.start for segment, _ in found] == [0, 7, 8, 20]
    for segment, parts in found:
        xr.testing.assert_identical(
            segment.fields.compute(), atmosphere[["TMQ", LABELS]].isel(time=slice(parts[0].start, parts[-1].stop))
        )
        # Nothing else is sent to the workers: of each chunk of the two variables its values and its place.
        assert len(dict(segment.fields.__dask_graph__())) <= 2 * 2 * segment.fields.sizes["time"]


def test_segments_of_a_long_input_are_cut_in_two_stages_and_miss_nothing(
    atmosphere: xr.Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "_SEGMENT", 1)  # and 16 steps in the first stage
    fields = atmosphere[["TMQ", LABELS]]
    found = list(segments(fields, [Block(i, i + 1) for i in range(24)]))
    assert [(segment.start, parts) for segment, parts in found] == [(i, [Block(i, i + 1)]) for i in range(24)]
    xr.testing.assert_identical(xr.concat([segment.fields for segment, _ in found], "time"), fields)
