"""``climseg prepare`` with labels by a heuristic: the store's masks are those of ``climseg label``."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from climseg.atomic import sole_writer
from climseg.channels import LABELS
from climseg.cli.main import run
from climseg.labels.spool import spool_path
from climseg.masks import open_masks
from climseg.store.info import StoreInfo, read_image, read_mask
from tests.labels import scenes

ALL_TRAIN = ("splits.train=1", "splits.validation=0", "splits.test=0", "cluster.workers=1")


@pytest.fixture(scope="module")
def scene_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three days of 6 hours at 2 degrees, a stored chunk for each step."""
    scene = scenes.EVERYTHING.on(2.0, hours=[6.0 * step for step in range(13)]).drop_vars(LABELS)
    file: Path = tmp_path_factory.mktemp("scene") / "a.nc"
    scene.to_netcdf(file)
    return file


@pytest.fixture
def words(scene_file: Path, tmp_path: Path) -> list[str]:
    return ["prepare", f"input={scene_file}", f"output={tmp_path / 'store'}", *ALL_TRAIN, "labels=kurth2018"]


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def _masks_of_store(store: Path) -> tuple[np.ndarray[Any, Any], StoreInfo]:
    info = StoreInfo.read(store)
    return np.stack([read_mask(store, info, step) for step in range(len(info.times))]), info


def _masks_of_label(scene_file: Path, folder: Path, *words: str) -> xr.DataArray:
    output = folder / "masks.nc"
    assert run(["label", f"input={scene_file}", f"output={output}", *words]) == 0
    with open_masks(output) as masks:
        return masks[LABELS].load()


def test_the_masks_are_those_of_label_and_nothing_stays_beside_the_store(
    words: list[str], scene_file: Path, tmp_path: Path
) -> None:
    assert run(words) == 0
    assert _names(tmp_path) == ["store"]
    masks, info = _masks_of_store(tmp_path / "store")
    expected = _masks_of_label(scene_file, tmp_path, "labels=kurth2018")
    np.testing.assert_array_equal(masks, expected)
    assert set(np.unique(masks)) == {0, 1, 2}
    assert info.labels == expected.attrs["definition"]
    assert len(info.channels) == 16


def test_channels_and_grid_are_those_asked_for_whatever_the_labels_take(
    words: list[str], scene_file: Path, tmp_path: Path
) -> None:
    assert run([*words, "channels=[PSL,UIVT]", "grid=4deg"]) == 0
    masks, info = _masks_of_store(tmp_path / "store")
    assert info.channels == ["PSL", "UIVT"]
    assert read_image(tmp_path / "store", info, 0).shape == (2, 46, 90)
    np.testing.assert_array_equal(masks, _masks_of_label(scene_file, tmp_path, "labels=kurth2018", "grid=4deg"))


def test_a_climatology_on_the_way_does_not_stay(words: list[str], scene_file: Path, tmp_path: Path) -> None:
    asked = ["labels=guan_waliser", "labels.rivers.min_steps=10"]
    assert run([*words, "channels=[TMQ]", *asked]) == 0
    assert _names(tmp_path) == ["store"]
    masks, _ = _masks_of_store(tmp_path / "store")
    np.testing.assert_array_equal(masks, _masks_of_label(scene_file, tmp_path, *asked))


def test_a_dry_run_writes_nothing(words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*words, "--dry-run"]) == 0
    assert "0 of 13 steps" in capsys.readouterr().out
    assert _names(tmp_path) == []


def _no_labelling(*values: Any, **options: Any) -> None:
    raise AssertionError("steps were labelled")


def test_a_complete_store_is_found_without_labelling_again(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*words, "channels=[TMQ]"]
    assert run(words) == 0
    # A kill between the last two acts of a run leaves its masks.
    (tmp_path / ".store.labels.nc").touch()
    monkeypatch.setattr("climseg.cli.labelling.find", _no_labelling)
    assert run(words) == 0
    assert _names(tmp_path) == ["store"]
    assert run([*words, "labels.rivers.threshold=21"]) == 2
    assert "made from other input or options" in capsys.readouterr().err
    assert _names(tmp_path) == ["store"]


def test_masks_stay_when_the_store_is_refused_and_serve_the_next_try(
    words: list[str], scene_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with xr.open_dataset(scene_file) as scene:
        holed = scene.load()
    holed["TREFHT"][2, 3, 4] = np.nan  # no matter to labels without criterion of height
    holed.to_netcdf(tmp_path / "a.nc")
    words = [*words, f"input={tmp_path / 'a.nc'}"]
    assert run([*words, "channels=[TMQ,TREFHT]"]) == 2
    assert _names(tmp_path) == [".store.labels.nc", "a.nc"]
    monkeypatch.setattr("climseg.cli.labelling.find", _no_labelling)
    assert run([*words, "channels=[TMQ]"]) == 0
    assert _names(tmp_path) == ["a.nc", "store"]


def test_times_or_grids_that_differ_between_labels_and_channels_are_refused(
    words: list[str], scene_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with xr.open_dataset(scene_file) as scene:
        scene.drop_vars("TS").to_netcdf(tmp_path / "a.nc")
        scene[["TS"]].isel(time=slice(0, 12)).to_netcdf(tmp_path / "b.nc")
    assert run([*words, f"input={tmp_path / '[ab].nc'}", "channels=[TS]"]) == 2
    error = capsys.readouterr().err
    assert "have 12 time steps and those of the labels 13: 2001-09-04T00:00:00 is in one of them only" in error
    with xr.open_dataset(scene_file) as scene:
        scene[["TS"]].isel(lat=slice(None, None, 2)).to_netcdf(tmp_path / "b.nc")
    assert run([*words, f"input={tmp_path / '[ab].nc'}", "channels=[TS]"]) == 2
    assert "have unequal grids (lat: 46 and 91 points); interpolate both to one" in capsys.readouterr().err
    assert _names(tmp_path) == ["a.nc", "b.nc"]


def test_two_commands_do_not_make_the_same_masks(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with sole_writer(spool_path(tmp_path / ".store.labels.nc")):
        assert run(words) == 2
    assert "is being written by another process" in capsys.readouterr().err
    assert _names(tmp_path) == []


def test_a_folder_that_cannot_be_written_is_refused_before_the_labels_are_made(
    words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("climseg.cli.labelling.find", _no_labelling)
    assert run([*words, "output=/proc/store"]) == 2
    assert "cannot be written here" in capsys.readouterr().err


def _kill_when(command: list[str], there: Callable[[], bool]) -> None:
    """Start a command and kill it when something is there."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    end = time.monotonic() + 120
    while process.poll() is None and not there() and time.monotonic() < end:
        time.sleep(0.001)
    assert process.poll() is None
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def test_killed_in_either_stage_and_started_again_it_gives_the_same_store(words: list[str], tmp_path: Path) -> None:
    words = [*words, "channels=[TMQ,PSL]"]
    command = [sys.executable, "-m", "climseg", *words]
    steps = spool_path(tmp_path / ".store.labels.nc")
    _kill_when(command, lambda: any(steps.glob("*/*.npz")))
    assert not (tmp_path / "store").exists()
    _kill_when(command, lambda: (tmp_path / ".store.partial").exists())
    assert not (tmp_path / "store").exists()
    assert (tmp_path / ".store.labels.nc").is_file()
    assert run(words) == 0
    assert _names(tmp_path) == ["store"]
    (tmp_path / "store").rename(tmp_path / "one")
    assert run(words) == 0
    files = sorted(path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*") if path.is_file())
    again = sorted(path.relative_to(tmp_path / "store") for path in (tmp_path / "store").rglob("*") if path.is_file())
    assert files == again
    assert all((tmp_path / "one" / file).read_bytes() == (tmp_path / "store" / file).read_bytes() for file in files)
