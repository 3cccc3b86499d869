from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import cftime
import netCDF4
import numpy as np
import pytest

from climseg.channels import CAM5_CHANNELS, CHANNELS, LABELS
from climseg.errors import InputError
from climseg.sources.open import open_fields

open_deepcam = partial(open_fields, source="deepcam")
WriteSample = Callable[..., Path]
ROWS, COLUMNS = 7, 12


@pytest.fixture
def write_sample(tmp_path: Path) -> WriteSample:
    """A function that writes a small sample: value = step * 1000 + channel * 10 + row, labels = column modulo 3."""

    def write(name: str, step: int = 0, channels: int = 16, labels: Any = None) -> Path:
        row = np.arange(ROWS).reshape(-1, 1, 1)
        channel = np.arange(channels)
        values = np.broadcast_to(step * 1000 + channel * 10 + row, (ROWS, COLUMNS, channels)).astype(np.float32)
        mask = np.broadcast_to(np.arange(COLUMNS) % 3, (ROWS, COLUMNS)) if labels is None else labels
        with netCDF4.Dataset(tmp_path / name, "w") as file:
            group = file.createGroup("climate")
            for dim, size in (("y", ROWS), ("x", COLUMNS), ("c", channels)):
                group.createDimension(dim, size)
            group.createVariable("data", "f4", ("y", "x", "c"), chunksizes=(ROWS, COLUMNS, channels))[:] = values
            group.createVariable("labels_0", "i8", ("y", "x"))[:] = mask
        return tmp_path / name

    return write


def _write_statistics(path: Path) -> Path:
    with netCDF4.Dataset(path, "w") as file:
        group = file.createGroup("climate")
        group.createDimension("c", 16)
        for name in ("mean", "sqmean", "minval", "maxval"):
            group.createVariable(name, "f4", ("c",))[:] = 1.0
    return path


def test_channels_last_become_the_channels_of_cam5_in_their_order(write_sample: WriteSample) -> None:
    ds = open_deepcam(write_sample("data-1999-03-01-02-0.h5"))
    assert list(ds.data_vars) == list(CAM5_CHANNELS)
    for number, name in enumerate(CAM5_CHANNELS):
        # Rows go from south to north.
        np.testing.assert_array_equal(ds[name][0, :, 0], number * 10 + np.arange(ROWS))
        assert ds[name].attrs["units"] == CHANNELS[name].units
    assert ds.attrs == {"source": "DeepCAM HDF5"}


def test_the_grid_goes_from_pole_to_pole_and_eastward_from_greenwich(write_sample: WriteSample) -> None:
    ds = open_deepcam(write_sample("data-1999-03-01-02-0.h5"))
    np.testing.assert_allclose(ds["lat"], [-90.0, -60.0, -30.0, 0.0, 30.0, 60.0, 90.0], atol=1e-12)
    np.testing.assert_array_equal(ds["lon"], np.arange(0.0, 360.0, 30.0))


@pytest.mark.parametrize(("step", "hour"), [(0, 0), (1, 3), (7, 21)])
def test_the_name_says_the_time_in_three_hourly_steps(write_sample: WriteSample, step: int, hour: int) -> None:
    ds = open_deepcam(write_sample(f"data-1999-03-01-0{step}-2.h5"))
    assert list(ds["time"].values) == [cftime.DatetimeNoLeap(1999, 3, 1, hour)]


def test_samples_follow_each_other_on_the_noleap_calendar(write_sample: WriteSample, tmp_path: Path) -> None:
    for step, name in enumerate(("2000-02-28-07", "2000-03-01-00", "2000-03-01-01")):
        write_sample(f"data-{name}-0.h5", step)
    ds = open_deepcam(f"{tmp_path}/data-*.h5", channels=["U850"])
    np.testing.assert_array_equal(ds["U850"][:, 0, 0], [10.0, 1010.0, 2010.0])
    # No 29 February between the first two: three hours lie between each and the next.
    assert [t.hour for t in ds["time"].values] == [21, 0, 3]
    assert set(np.diff(ds.indexes["time"]).astype("timedelta64[h]").astype(int)) == {3}


def test_labels_come_as_classes(write_sample: WriteSample) -> None:
    ds = open_deepcam(write_sample("data-1999-03-01-02-0.h5"), labels=True)
    assert ds[LABELS].dtype == np.int8
    np.testing.assert_array_equal(ds[LABELS][0, 0], np.arange(COLUMNS) % 3)
    assert LABELS not in open_deepcam(write_sample("data-1999-03-01-02-0.h5"))


def test_a_label_that_is_no_class_is_refused_when_it_is_read(write_sample: WriteSample) -> None:
    path = write_sample("data-1999-03-01-02-0.h5", labels=np.full((ROWS, COLUMNS), 3))
    ds = open_deepcam(path, labels=True)
    with pytest.raises(InputError, match=r"data-1999-03-01-02-0\.h5: LABELS holds the value 3"):
        ds[LABELS].load()


def test_auto_tells_samples_by_their_layout(write_sample: WriteSample, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "climseg")
    ds = open_fields(write_sample("data-1999-03-01-02-0.h5"))
    assert ds.attrs == {"source": "DeepCAM HDF5"}
    assert "source=auto: took deepcam, as " in caplog.text


def test_two_runs_of_the_model_are_refused_with_the_way_to_choose(write_sample: WriteSample, tmp_path: Path) -> None:
    for run in (1, 2):
        write_sample(f"data-1999-03-01-02-{run}.h5")
    with pytest.raises(InputError, match=r"same time of two runs of the model; .*'data-\*-2\.h5'"):
        open_deepcam(f"{tmp_path}/*.h5")
    assert open_deepcam(f"{tmp_path}/data-*-2.h5").sizes["time"] == 1


@pytest.mark.parametrize("name", ["a.h5", "data-1999-03-01-08-0.h5", "data-1999-03-01-2-0.h5", "data-1999-03-01-02.h5"])
def test_a_sample_whose_name_says_no_time_is_refused(write_sample: WriteSample, name: str) -> None:
    with pytest.raises(InputError, match=rf"{name}: a DeepCAM sample has its time in its name"):
        open_deepcam(write_sample(name))


def test_a_name_with_a_day_that_is_none_is_refused(write_sample: WriteSample) -> None:
    with pytest.raises(InputError, match=r"data-2000-02-29-00-0\.h5: .*cannot be decoded"):
        open_deepcam(write_sample("data-2000-02-29-00-0.h5"))


def test_a_sample_of_another_number_of_channels_is_refused(write_sample: WriteSample) -> None:
    with pytest.raises(InputError, match=r"climate/data has the shape \(7, 12, 4\); expected \(768, 1152, 16\)"):
        open_deepcam(write_sample("data-1999-03-01-02-0.h5", channels=4))


def test_statistics_beside_samples_are_left_aside(
    write_sample: WriteSample, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "climseg")
    write_sample("data-1999-03-01-02-0.h5")
    _write_statistics(tmp_path / "stats.h5")
    assert open_fields(f"{tmp_path}/*.h5").sizes["time"] == 1
    assert "stats.h5 holds statistics" in caplog.text


@pytest.mark.parametrize("source", ["auto", "deepcam"])
def test_statistics_alone_are_refused(tmp_path: Path, source: str) -> None:
    path = _write_statistics(tmp_path / "stats.h5")
    with pytest.raises(InputError, match=r"stats\.h5: holds DeepCAM's statistics, no fields; give samples"):
        open_fields(path, source=source)


def test_other_files_are_no_samples(write_sample: WriteSample, tmp_path: Path) -> None:
    sample = write_sample("data-1999-03-01-02-0.h5")
    with netCDF4.Dataset(tmp_path / "other.nc", "w") as file:
        file.createDimension("lat", 2)
    for files in ([tmp_path / "other.nc"], [sample, tmp_path / "other.nc"]):
        with pytest.raises(InputError, match=r"other\.nc: is no DeepCAM sample"):
            open_deepcam(files)
