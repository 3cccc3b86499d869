from pathlib import Path

import cftime
import netCDF4
import numpy as np
import pandas as pd
import pytest
import xarray as xr

from climseg.channels import CAM5_CHANNELS, LABELS
from climseg.errors import InputError
from climseg.synthetic import files, make_atmosphere, write_files
from climseg.synthetic.further import FURTHER_CHANNELS

LAT, LON = np.linspace(-90.0, 90.0, 19), np.arange(36) * 10.0
TIMES = pd.date_range("2001-01-31T12", periods=4, freq="6h")


def test_months_get_their_files_and_hold_what_make_atmosphere_gives(tmp_path: Path) -> None:
    paths = write_files(tmp_path, TIMES, LAT, LON, seed=3)
    assert [p.name for p in paths] == ["climseg-synthetic-2001-01.nc", "climseg-synthetic-2001-02.nc"]
    assert sorted(p.name for p in tmp_path.iterdir()) == [p.name for p in paths]
    with xr.open_mfdataset(paths, combine="by_coords") as found:
        xr.testing.assert_equal(found.load(), make_atmosphere(TIMES, LAT, LON, seed=3))
        assert found["TMQ"].attrs["units"] == "kg m-2"
        assert found[LABELS].attrs["flag_meanings"] == "background tropical_cyclone atmospheric_river"
        assert set(found.data_vars) == {*CAM5_CHANNELS, LABELS}
    with netCDF4.Dataset(paths[0]) as raw:
        assert raw["TMQ"].dtype == np.float32
        assert raw["TMQ"].filters()["zlib"]
        assert raw["TMQ"].chunking() == [1, 19, 36]
        assert raw["time"].calendar == "proleptic_gregorian"


def test_more_channels_are_those_of_make_atmosphere_and_the_other_values_stay(tmp_path: Path) -> None:
    (path,) = write_files(tmp_path, TIMES[:1], LAT, LON, seed=3, more_channels=True)
    with xr.open_dataset(path) as found:
        xr.testing.assert_equal(found.load(), make_atmosphere(TIMES[:1], LAT, LON, seed=3, more_channels=True))
        xr.testing.assert_equal(found[[*CAM5_CHANNELS, LABELS]], make_atmosphere(TIMES[:1], LAT, LON, seed=3))
        assert set(found.data_vars) == {*CAM5_CHANNELS, *FURTHER_CHANNELS, LABELS}
        assert found["IVT"].attrs["units"] == "kg m-1 s-1"


@pytest.mark.parametrize("first", [True, False])
def test_files_of_more_channels_and_of_16_do_not_mix(tmp_path: Path, first: bool) -> None:
    write_files(tmp_path, TIMES[:1], LAT, LON, more_channels=first)
    with pytest.raises(InputError, match="holds other channels than asked for"):
        write_files(tmp_path, TIMES[:1], LAT, LON, more_channels=not first)


def test_steps_get_their_files_with_the_hour_in_the_name(tmp_path: Path) -> None:
    paths = write_files(tmp_path, TIMES[:2], LAT, LON, per="step")
    assert [p.name for p in paths] == ["climseg-synthetic-2001-01-31-12.nc", "climseg-synthetic-2001-01-31-18.nc"]


def test_a_noleap_calendar_reaches_the_file(tmp_path: Path) -> None:
    times = [cftime.DatetimeNoLeap(2004, 2, 28), cftime.DatetimeNoLeap(2004, 2, 28, 6)]
    (path,) = write_files(tmp_path, times, LAT, LON)
    with xr.open_dataset(path) as ds:
        assert ds["time"].dt.calendar == "noleap"
        assert list(ds["time"].values) == times


def test_complete_files_are_left_alone_and_progress_counts_all_steps(tmp_path: Path) -> None:
    first = write_files(tmp_path, TIMES[:2], LAT, LON)
    stamp = first[0].stat().st_mtime_ns
    seen: list[tuple[int, int]] = []
    write_files(tmp_path, TIMES, LAT, LON, progress=lambda done, total: seen.append((done, total)))
    assert first[0].stat().st_mtime_ns == stamp
    assert seen == [(2, 4), (3, 4), (4, 4)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 8}, "climseg_synthetic_seed = 7, asked for is 8"),
        ({"lat": LAT[1:]}, "other latitudes"),
        ({"lon": LON[:-1]}, "other longitudes"),
        ({"times": TIMES[1:2]}, "other time steps"),
        (
            {"times": [cftime.DatetimeNoLeap(2001, 1, 31, 12), cftime.DatetimeNoLeap(2001, 1, 31, 18)]},
            "other time steps",
        ),
    ],
)
def test_a_file_of_another_request_is_refused(tmp_path: Path, change: dict[str, object], message: str) -> None:
    request = {"times": TIMES[:2], "lat": LAT, "lon": LON, "seed": 7}
    write_files(tmp_path, **request)
    with pytest.raises(InputError, match=message):
        write_files(tmp_path, **(request | change))


def test_a_foreign_file_of_that_name_is_refused_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "climseg-synthetic-2001-01.nc"
    path.write_text("mine")
    with pytest.raises(InputError, match="is not a file of the synthetic atmosphere"):
        write_files(tmp_path, TIMES[:1], LAT, LON)
    assert path.read_text() == "mine"


def test_a_broken_off_file_leaves_nothing_and_is_written_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_files(tmp_path, TIMES[:2], LAT, LON, progress=stop)
    assert list(tmp_path.iterdir()) == []
    assert len(write_files(tmp_path, TIMES[:2], LAT, LON)) == 1


def test_another_recipe_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path, TIMES[:1], LAT, LON)
    monkeypatch.setattr(files, "RECIPE", files.RECIPE + 1)
    with pytest.raises(InputError, match="climseg_synthetic_recipe"):
        write_files(tmp_path, TIMES[:1], LAT, LON)


def test_two_steps_of_one_hour_cannot_have_a_file_each(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="one hour"):
        write_files(tmp_path, pd.date_range("2001-01-01", periods=2, freq="30min"), LAT, LON, per="step")
