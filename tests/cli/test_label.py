"""``climseg label``: what it reads, what it refuses, what it lets pass."""

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from climseg.channels import LABELS
from climseg.cli.main import run
from climseg.labels.kurth2018 import CYCLONE_CHANNELS, kurth2018
from climseg.masks import open_masks


def _label(ds: xr.Dataset, folder: Path, *words: str) -> int:
    ds.to_netcdf(folder / "a.nc")
    return run(["label", f"input={folder / 'a.nc'}", f"output={folder / 'masks.nc'}", *words])


@pytest.fixture(scope="module")
def fields(atmosphere: xr.Dataset) -> xr.Dataset:
    return atmosphere.isel(time=slice(0, 5)).drop_vars(LABELS)


def test_the_channels_that_the_heuristic_needs_are_read_and_no_others(fields: xr.Dataset, tmp_path: Path) -> None:
    assert _label(fields, tmp_path) == 0
    masks = open_masks(tmp_path / "masks.nc")
    assert set(masks.attrs["channels"].split()) == set(CYCLONE_CHANNELS)
    np.testing.assert_array_equal(masks[LABELS], kurth2018(fields))


def test_channels_that_are_given_win(fields: xr.Dataset, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _label(fields, tmp_path, "labels.tropical_cyclones=false", "source.channels=[PSL,TMQ]") == 0
    assert open_masks(tmp_path / "masks.nc").attrs["channels"] == "PSL TMQ"
    assert _label(fields, tmp_path, "source.channels=[PSL,TMQ]") == 2
    assert "has no channel U850" in capsys.readouterr().err


def test_chunks_of_several_steps_give_the_same_masks(fields: xr.Dataset, tmp_path: Path) -> None:
    chunked = fields.copy()
    for name in chunked.data_vars:
        chunked[name].encoding = {"chunksizes": (2, 37, 72)}
    assert _label(chunked, tmp_path) == 0
    np.testing.assert_array_equal(open_masks(tmp_path / "masks.nc")[LABELS], kurth2018(fields))


def test_values_that_the_unit_cannot_give_are_refused_and_nothing_is_left(
    fields: xr.Dataset, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = fields.copy(deep=True)
    wrong["PSL"][3] /= 100.0
    assert _label(wrong, tmp_path) == 2
    time = str(fields["time"].values[3])[:19]
    error = capsys.readouterr().err
    assert "channel PSL runs from" in error
    assert f"at {time}; in Pa" in error
    assert "look like hPa labelled Pa" in error
    assert [p.name for p in tmp_path.iterdir()] == ["a.nc"]


def test_missing_values_pass_and_get_no_class(fields: xr.Dataset, tmp_path: Path) -> None:
    holed = fields.copy(deep=True)
    holed["TMQ"][1, 4, 6] = np.nan
    assert _label(holed, tmp_path) == 0
    missing = open_masks(tmp_path / "masks.nc")[LABELS].values == -1
    assert missing.sum() == 1
    assert missing[1, 4, 6]


def test_a_channel_that_is_missing_is_named_as_the_files_would_have_it(
    shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["label", f"input={shared / 'era5_cds_new' / '*.nc'}", f"output={tmp_path / 'masks.nc'}"]
    assert run(words) == 2
    error = capsys.readouterr().err
    assert "give it with source.accumulation_hours" in error
    assert run([*words, "source.accumulation_hours=1"]) == 2
    error = capsys.readouterr().err
    assert "U850 needs u at 850 hPa" in error
    assert "tropical_cyclones" not in error  # rivers need tcwv, which is missing too


def test_rivers_alone_are_offered_where_they_can_be_had(
    shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["label", f"input={shared / 'gfs' / 'gfs_20041212T12_2p5deg.nc'}", f"output={tmp_path / 'masks.nc'}"]
    assert run(words) == 2
    error = capsys.readouterr().err
    assert "UBOT needs UBOT or U on lowest model level" in error
    assert "set labels.tropical_cyclones=false to label rivers alone" in error
    assert run([*words, "labels.tropical_cyclones=false"]) == 0
