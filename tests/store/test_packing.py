import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from climseg import blocks
from climseg.channels import LABELS
from climseg.errors import InputError
from climseg.sources.open import open_fields
from climseg.store import task
from climseg.store.info import StoreInfo, image_chunk, read_image
from climseg.store.packing import StoredType, decode, encode, largest_error, packing, stored_type
from climseg.synthetic import make_atmosphere

PACKED: tuple[StoredType, ...] = ("float16", "uint16")


def there_and_back(image: Any, dtype: StoredType) -> Any:
    how = packing(image.min(axis=(1, 2)).tolist(), image.max(axis=(1, 2)).tolist(), dtype)
    return decode(encode(image, how, dtype), how)


@settings(max_examples=200, deadline=None)
@given(
    image=arrays.arrays(np.float32, (2, 3, 5), elements=st.floats(-(2.0**100), 2.0**100, width=32)),
    dtype=st.sampled_from(PACKED),
)
def test_what_is_read_again_is_within_the_stated_error(image: Any, dtype: StoredType) -> None:
    error = np.abs(there_and_back(image, dtype).astype(np.float64) - image).max(axis=(1, 2))
    assert np.all(error <= largest_error(image.min(axis=(1, 2)), image.max(axis=(1, 2)), dtype))


@settings(max_examples=100, deadline=None)
@given(value=st.floats(-(2.0**100), 2.0**100, width=32), dtype=st.sampled_from(PACKED))
def test_a_constant_field_comes_back_as_it_was(value: float, dtype: StoredType) -> None:
    image = np.full((1, 4, 6), value, np.float32)
    np.testing.assert_array_equal(there_and_back(image, dtype), image)


@pytest.mark.parametrize("dtype", PACKED)
def test_a_spread_of_a_few_roundings_on_a_large_value_is_kept(dtype: StoredType) -> None:
    image = np.float32(101325.0) + np.arange(4, dtype=np.float32).reshape(1, 2, 2) * np.spacing(np.float32(101325.0))
    assert np.abs(there_and_back(image, dtype) - image).max() <= 2 * np.spacing(np.float32(101325.0))


def test_no_rain_stays_no_rain_in_uint16() -> None:
    rain = np.zeros((1, 8, 9), np.float32)
    rain[0, 3, 4] = 3e-5
    assert (there_and_back(rain, "uint16") == 0).sum() == 71


def test_uint16_is_right_to_half_of_a_65535th_of_the_range() -> None:
    # 0 to 65535 in steps of 1: stored as they are; between two steps, half a step is lost.
    image = np.array([[[0.0, 0.5, 1000.25, 65535.0]]], np.float32)
    np.testing.assert_array_equal(there_and_back(image, "uint16"), [[[0.0, 0.0, 1000.0, 65535.0]]])


def test_float16_is_right_to_an_8192nd_of_the_range() -> None:
    # From -1 to 1, float16 has steps of 2**-11 next to 1: half of one is 1/8192 of the range.
    image = np.array([[[-1.0, 1.0, 1.0 - 2.0**-12, 0.5, 2.0**-20]]], np.float32)
    np.testing.assert_array_equal(there_and_back(image, "float16"), [[[-1.0, 1.0, 1.0, 0.5, 2.0**-20]]])


def test_the_stated_errors_of_pressures_are_small() -> None:
    # Mean sea level pressure from a record low to a strong high, surface pressure down to the Himalaya.
    low, high = [93000.0, 50000.0], [105000.0, 105000.0]
    np.testing.assert_allclose(largest_error(low, high, "float16"), [1.46 + 0.05, 6.71 + 0.05], atol=0.01)
    np.testing.assert_allclose(largest_error(low, high, "uint16"), [0.09 + 0.05, 0.42 + 0.05], atol=0.01)


@pytest.mark.parametrize("dtype", PACKED)
def test_all_channels_of_a_made_atmosphere_are_within_the_stated_error(dtype: StoredType) -> None:
    made = make_atmosphere([np.datetime64("2001-08-15T00")], np.linspace(-90, 90, 91), np.arange(0, 360, 2.0))
    channels = [str(name) for name in made.data_vars if name != LABELS]
    image = made[channels].isel(time=0).to_dataarray("channel").values.astype(np.float32)
    error = np.abs(there_and_back(image, dtype).astype(np.float64) - image).max(axis=(1, 2))
    low, high = image.min(axis=(1, 2)), image.max(axis=(1, 2))
    assert np.all(error <= largest_error(low, high, dtype))
    # As a share of the channel's own spread, nothing that a network could see.
    share = error / image.std(axis=(1, 2), dtype=np.float64)
    assert share.max() < {"float16": 0.02, "uint16": 0.0012}[dtype]
    if dtype == "uint16":
        for name in ("PS", "PSL"):
            assert error[channels.index(name)] < 1.0  # Pa


@pytest.mark.parametrize("dtype", PACKED)
@pytest.mark.parametrize("file", ["merra/IWV_IVT_MERRA_20170228_00.nc", "gfs/gfs_20111011T00_2p5deg.nc"])
def test_real_files_are_within_the_stated_error(shared: Path, file: str, dtype: StoredType) -> None:
    fields = open_fields([str(shared / file)])
    for name, field in fields.data_vars.items():
        image = field.isel(time=[0]).values
        error = np.abs(there_and_back(image, dtype).astype(np.float64) - image).max()
        assert error <= largest_error(image.min(), image.max(), dtype), name
    assert "TMQ" in fields


@pytest.mark.parametrize("dtype", PACKED)
def test_a_packed_store_is_read_as_float32_within_the_stated_error(
    dtype: StoredType, write_small_store: Any, store: Path, tmp_path: Path
) -> None:
    info, whole = write_small_store(tmp_path / "store", dtype=dtype), StoreInfo.read(store)
    assert StoreInfo.read(tmp_path / "store").dtype == dtype
    assert info.statistics == whole.statistics  # of the values before
    assert image_chunk(tmp_path / "store", 3).stat().st_size == 2 * 4 * 37 * 72
    for step in (0, 7, 23):
        values, image = read_image(store, whole, step), read_image(tmp_path / "store", info, step)
        assert image.dtype == np.float32
        error = np.abs(image.astype(np.float64) - values).max(axis=(1, 2))
        assert np.all(error <= largest_error(values.min(axis=(1, 2)), values.max(axis=(1, 2)), dtype))


@pytest.mark.parametrize("dtype", PACKED)
def test_xarray_opens_a_packed_store_and_the_formula_gives_the_values(
    dtype: StoredType, write_small_store: Any, tmp_path: Path
) -> None:
    info = write_small_store(tmp_path / "store", dtype=dtype)
    opened = xr.open_zarr(tmp_path / "store", consolidated=False)
    assert "image * image_scale + image_offset" in opened["image"].attrs["long_name"]
    values = opened["image"] * opened["image_scale"] + opened["image_offset"]
    assert values.dims == ("time", "channel", "lat", "lon")
    np.testing.assert_allclose(
        values.isel(time=5).values.astype(np.float32), read_image(tmp_path / "store", info, 5), rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize("dtype", PACKED)
def test_an_interrupted_packed_store_goes_on_to_the_same_bytes(
    dtype: StoredType, write_small_store: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop_after_eight(done: int, total: int) -> None:
        if done >= 8:
            raise KeyboardInterrupt

    monkeypatch.setattr(blocks, "_WORTH_A_TASK", 4 * 4 * 4 * 37 * 72)
    write_small_store(tmp_path / "whole", dtype=dtype)
    with pytest.raises(KeyboardInterrupt):
        write_small_store(tmp_path / "store", dtype=dtype, progress=stop_after_eight)
    written: list[int] = []
    original = task.write_mask
    monkeypatch.setattr(task, "write_mask", lambda folder, i, mask: (written.append(i), original(folder, i, mask)))
    write_small_store(tmp_path / "store", dtype=dtype)
    assert written == list(range(8, 24))
    for path in sorted(p.relative_to(tmp_path / "whole") for p in (tmp_path / "whole").rglob("c/**/*") if p.is_file()):
        assert (tmp_path / "store" / path).read_bytes() == (tmp_path / "whole" / path).read_bytes()


def test_the_same_input_stored_otherwise_is_another_store(write_small_store: Any, tmp_path: Path) -> None:
    write_small_store(tmp_path / "store")
    with pytest.raises(InputError, match="made from other input or options"):
        write_small_store(tmp_path / "store", dtype="float16")


def test_a_store_of_format_1_is_read_as_float32(store: Path, write_small_store: Any, tmp_path: Path) -> None:
    write_small_store(tmp_path / "store")
    file = tmp_path / "store/climseg.json"
    content = json.loads(file.read_text())
    del content["dtype"]
    file.write_text(json.dumps(content | {"format": 1}))
    old = StoreInfo.read(tmp_path / "store")
    assert old.dtype == "float32"
    np.testing.assert_array_equal(read_image(tmp_path / "store", old, 4), read_image(store, StoreInfo.read(store), 4))
    write_small_store(tmp_path / "store")  # is complete already
    file.write_text(json.dumps(content | {"format": 2, "dtype": "float8"}))
    with pytest.raises(InputError, match="stored as float8, which this version cannot read"):
        StoreInfo.read(tmp_path / "store")


def test_an_unknown_type_is_refused_with_the_near_one() -> None:
    assert stored_type("float16") == "float16"
    with pytest.raises(InputError, match=r"store\.dtype=int16: .*did you mean 'uint16'"):
        stored_type("int16")
