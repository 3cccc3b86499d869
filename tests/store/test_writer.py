from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from climseg.atomic import partial_path
from climseg.channels import LABELS
from climseg.errors import InputError
from climseg.store import writer
from climseg.store.info import StoreInfo, read_image, read_mask

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

    written: list[int] = []
    original = writer._write_sample

    def spy(image: Any, mask: Any, group: Any, index: int, *rest: Any) -> Any:
        written.append(index)
        return original(image, mask, group, index, *rest)

    monkeypatch.setattr(writer, "_write_sample", spy)
    info = write_small_store(output)
    assert sorted(written) == list(range(8, 24))
    assert info == StoreInfo.read(store)
    assert not partial_path(output).exists()


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
