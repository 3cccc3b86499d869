import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from climseg import blocks
from climseg.atomic import partial_path
from climseg.channels import LABELS
from climseg.errors import InputError
from climseg.sources.paths import input_manifest
from climseg.store import task, writer
from climseg.store.info import StoreInfo, read_image, read_mask
from climseg.store.splits import split_by_time
from climseg.store.writer import plan_store

CHANNELS = ["TMQ", "U850", "V850", "PSL"]


def test_what_is_written_is_read_again(store: Path, atmosphere: xr.Dataset) -> None:
    info = StoreInfo.read(store)
    for step in (0, 13, 23):
        image = atmosphere[CHANNELS].isel(time=step).to_dataarray("channel").values
        np.testing.assert_array_equal(read_image(store, info, step), image)
        np.testing.assert_array_equal(read_mask(store, info, step), atmosphere[LABELS].values[step])


def test_the_store_opens_in_xarray_with_its_coordinates(store: Path, atmosphere: xr.Dataset) -> None:
    opened = xr.open_zarr(store, consolidated=False)
    assert opened["image"].dims == ("time", "channel", "lat", "lon")
    assert opened["channel"].values.tolist() == CHANNELS
    xr.testing.assert_equal(opened["time"].drop_attrs(), atmosphere["time"].drop_attrs())
    np.testing.assert_array_equal(opened["image"].sel(channel="PSL").values, atmosphere["PSL"].values)


def test_statistics_and_frequencies_are_those_of_the_training_split(store: Path, atmosphere: xr.Dataset) -> None:
    info = StoreInfo.read(store)
    train = atmosphere.isel(time=info.indices("train"))
    np.testing.assert_allclose(info.statistics.mean[3], train["PSL"].values.astype(np.float64).mean(), rtol=1e-12)
    np.testing.assert_allclose(info.statistics.std[0], train["TMQ"].values.astype(np.float64).std(), rtol=1e-9)
    share = [float((train[LABELS] == k).mean()) for k in range(3)]
    np.testing.assert_allclose(info.frequencies, share, rtol=1e-12)


def test_a_missing_value_is_refused_by_channel_and_time(
    write_small_store: Any, atmosphere: xr.Dataset, tmp_path: Path
) -> None:
    fields = atmosphere.drop_vars(LABELS).copy(deep=True)
    fields["V850"][5, 3, 4] = np.nan
    with pytest.raises(InputError, match="V850 has 1 missing or infinite of 2664 values at 2001-08-03T12:00:00"):
        write_small_store(tmp_path / "store", fields=fields)
    assert not (tmp_path / "store").exists()


def test_a_constant_channel_is_refused_by_name(write_small_store: Any, atmosphere: xr.Dataset, tmp_path: Path) -> None:
    fields = atmosphere.drop_vars(LABELS).copy(deep=True)
    fields["PSL"][:] = 101325.0
    with pytest.raises(InputError, match="PSL is 101325 everywhere"):
        write_small_store(tmp_path / "store", fields=fields)


def test_values_that_the_unit_cannot_give_are_refused(
    write_small_store: Any, atmosphere: xr.Dataset, tmp_path: Path
) -> None:
    fields = atmosphere.drop_vars(LABELS).copy(deep=True)
    fields["PSL"] /= 100  # hPa, still called Pa
    with pytest.raises(InputError, match=r"PSL runs from .* at 2001-08-0.*; in Pa it lies within 80000 and"):
        write_small_store(tmp_path / "store", fields=fields)
    assert list(tmp_path.iterdir()) == []


def test_labels_that_are_all_missing_are_refused(atmosphere: xr.Dataset, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no cell of the training split carries a label"):
        writer.write_store(
            atmosphere.drop_vars(LABELS),
            xr.full_like(atmosphere[LABELS], -1),
            tmp_path / "store",
            channels=CHANNELS,
            splits=["train"] * 24,
            request={},
        )
    assert list(tmp_path.iterdir()) == []


def test_a_class_number_that_does_not_exist_is_refused(
    write_small_store: Any, atmosphere: xr.Dataset, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="LABELS holds 7"):
        writer.write_store(
            atmosphere.drop_vars(LABELS),
            xr.full_like(atmosphere[LABELS], 7),
            tmp_path / "store",
            channels=CHANNELS,
            splits=["train"] * 24,
            request={},
        )


@pytest.fixture
def six_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of four steps of the small atmosphere."""
    monkeypatch.setattr(blocks, "_WORTH_A_TASK", 4 * 4 * len(CHANNELS) * 37 * 72)


@pytest.mark.usefixtures("six_blocks")
def test_an_interrupted_run_goes_on_where_it_was(
    write_small_store: Any, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop_after_eight(done: int, total: int) -> None:
        if done >= 8:
            raise KeyboardInterrupt

    output = tmp_path / "store"
    with pytest.raises(KeyboardInterrupt):
        write_small_store(output, progress=stop_after_eight)
    assert not output.exists()
    # A line that a kill cut off must not count as done.
    with (partial_path(output) / "progress.jsonl").open("a") as file:
        file.write('{"index": 8, "count": 26')

    written = spy_on_masks(monkeypatch)
    info = write_small_store(output)
    assert written == list(range(8, 24))
    assert info == StoreInfo.read(store)
    assert not partial_path(output).exists()


@pytest.mark.usefixtures("six_blocks")
def test_a_block_that_was_interrupted_in_its_middle_is_written_again(
    write_small_store: Any, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = task.write_mask

    def stop_at_ten(folder: Path, index: int, mask: Any) -> None:
        if index == 10:
            raise KeyboardInterrupt
        original(folder, index, mask)

    output = tmp_path / "store"
    monkeypatch.setattr(task, "write_mask", stop_at_ten)
    with pytest.raises(KeyboardInterrupt):
        write_small_store(output)
    monkeypatch.setattr(task, "write_mask", original)
    # The image of step 10 is there without its mask, and half of it.
    chunk = partial_path(output) / "image/c/10/0/0/0"
    chunk.write_bytes(chunk.read_bytes()[:1000])

    written = spy_on_masks(monkeypatch)
    info = write_small_store(output)
    assert written == list(range(8, 24))
    for step in range(24):
        np.testing.assert_array_equal(read_image(output, info, step), read_image(store, info, step))
        np.testing.assert_array_equal(read_mask(output, info, step), read_mask(store, info, step))


def spy_on_masks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list that fills with the time steps whose masks are written."""
    written: list[int] = []
    original = task.write_mask

    def spy(folder: Path, index: int, mask: Any) -> None:
        written.append(index)
        original(folder, index, mask)

    monkeypatch.setattr(task, "write_mask", spy)
    return written


@pytest.mark.usefixtures("six_blocks")
@pytest.mark.parametrize("change", ["size", "time stamp", "nothing"])
def test_an_unfinished_store_of_a_changed_input_file_is_begun_anew(
    change: str, write_small_store: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop_after_eight(done: int, total: int) -> None:
        if done >= 8:
            raise KeyboardInterrupt

    file = tmp_path / "input.nc"
    file.write_text("fields")
    with pytest.raises(KeyboardInterrupt):
        write_small_store(tmp_path / "store", request={"files": input_manifest([file])}, progress=stop_after_eight)
    stamps = file.stat().st_atime_ns, file.stat().st_mtime_ns
    if change == "size":
        file.write_text("other fields")
        os.utime(file, ns=stamps)
    elif change == "time stamp":
        os.utime(file, ns=(stamps[0], stamps[1] + 1_000_000_000))
    written = spy_on_masks(monkeypatch)
    info = write_small_store(tmp_path / "store", request={"files": input_manifest([file])})
    assert written == list(range(8 if change == "nothing" else 0, 24))
    assert info.request["files"] == input_manifest([file])


def test_a_plan_says_what_writing_does_and_writes_nothing(
    write_small_store: Any, plan_small_store: Any, atmosphere: xr.Dataset, tmp_path: Path
) -> None:
    output = tmp_path / "store"
    plan = plan_small_store(output)
    assert (plan.steps, plan.done, plan.blocks) == (24, 0, 1)
    assert list(tmp_path.iterdir()) == []
    write_small_store(output)
    chunks = [p.stat().st_size for name in ("image", "mask") for p in (output / name / "c").rglob("*") if p.is_file()]
    assert plan.store_bytes == sum(chunks)
    plan = plan_small_store(output)
    assert (plan.done, plan.blocks) == (24, 0)
    with pytest.raises(InputError, match="made from other input or options"):
        plan_small_store(output, request={"input_files": ["another"]})


@pytest.mark.usefixtures("six_blocks")
def test_a_plan_counts_what_an_interrupted_run_left(
    write_small_store: Any, plan_small_store: Any, tmp_path: Path
) -> None:
    def stop_after_eight(done: int, total: int) -> None:
        if done >= 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_small_store(tmp_path / "store", progress=stop_after_eight)
    plan = plan_small_store(tmp_path / "store")
    assert (plan.done, plan.blocks) == (8, 4)
    assert plan_small_store(tmp_path / "store", request={"input_files": ["another"]}).done == 0


@pytest.fixture
def plan_small_store(atmosphere: xr.Dataset) -> Any:
    """A function that plans what ``write_small_store`` writes."""

    def plan(output: Path, request: Any = None) -> Any:
        times = list(atmosphere["time"].to_index())
        splits = split_by_time(times, {"train": 0.6, "validation": 0.2, "test": 0.2}, gap_hours=13)
        return plan_store(atmosphere, output, channels=CHANNELS, splits=splits, request=request or {})

    return plan


def test_a_mask_of_background_alone_is_written_and_read(
    write_small_store: Any, atmosphere: xr.Dataset, tmp_path: Path
) -> None:
    masks = atmosphere[LABELS].copy(deep=True)
    masks[3] = 0
    info = writer.write_store(
        atmosphere.drop_vars(LABELS),
        masks,
        tmp_path / "store",
        channels=CHANNELS,
        splits=["train"] * 24,
        request={},
    )
    assert not read_mask(tmp_path / "store", info, 3).any()


def test_a_complete_store_is_left_alone_and_one_of_another_request_refused(
    write_small_store: Any, tmp_path: Path
) -> None:
    output = tmp_path / "store"
    write_small_store(output)
    before = (output / "climseg.json").stat().st_mtime_ns
    write_small_store(output)
    assert (output / "climseg.json").stat().st_mtime_ns == before
    with pytest.raises(InputError, match="made from other input or options"):
        write_small_store(output, request={"input_files": ["another"]})


def test_an_unfinished_store_of_another_request_is_begun_anew(write_small_store: Any, tmp_path: Path) -> None:
    def stop(done: int, total: int) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_small_store(tmp_path / "store", progress=stop, channels=["TMQ", "PSL"])
    assert write_small_store(tmp_path / "store").channels == CHANNELS


def test_a_folder_that_is_no_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a complete climseg store"):
        StoreInfo.read(tmp_path)
    (tmp_path / "climseg.json").write_text("{}")
    with pytest.raises(InputError, match="store format None"):
        StoreInfo.read(tmp_path)


def test_a_truncated_chunk_is_refused_by_its_file(write_small_store: Any, tmp_path: Path) -> None:
    info = write_small_store(tmp_path / "store")
    chunk = tmp_path / "store/image/c/2/0/0/0"
    chunk.write_bytes(chunk.read_bytes()[:-8])
    with pytest.raises(InputError, match=r"c/2/0/0/0: holds 10654 values instead of 10656"):
        read_image(tmp_path / "store", info, 2)
