from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import cftime
import numpy as np
import pytest
import xarray as xr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from climseg.channels import CHANNELS
from climseg.errors import InputError
from climseg.sources.open import open_fields

WriteFile = Callable[..., Path]
open_cam5 = partial(open_fields, source="cam5")
TMQ = (30.0, "kg m-2")


def test_channels_come_in_their_order_and_other_variables_are_left_out(write_file: WriteFile) -> None:
    path = write_file("a.nc", {"IVT": (1.0, "kg m-1 s-1"), "PSL": (101300.0, "Pa"), "TMQ": TMQ})
    ds = open_cam5(path)
    assert list(ds.data_vars) == ["TMQ", "PSL"]
    assert ds.attrs == {"source": "netCDF with names of CAM5"}
    assert ds["TMQ"].chunks is not None
    assert list(open_cam5(path, channels=["PSL", "TMQ"]).data_vars) == ["PSL", "TMQ"]


@pytest.mark.parametrize(
    ("channel", "value", "units", "expected"),
    [
        ("PSL", 1013.25, "hPa", 101325.0),
        ("PSL", 1013.25, "mb", 101325.0),
        ("T200", -53.15, "degC", 220.0),
        ("T200", -53.15, "deg C", 220.0),
        ("QREFHT", 12.0, "g/kg", 0.012),
        ("PRECT", 8.64, "mm/day", 1e-7),
    ],
)
def test_units_are_converted_by_their_attribute(
    write_file: WriteFile, channel: str, value: float, units: str, expected: float
) -> None:
    ds = open_cam5(write_file("a.nc", {channel: (value, units)}))
    np.testing.assert_allclose(ds[channel].values, expected, rtol=1e-6)
    assert ds[channel].attrs["units"] == CHANNELS[channel].units


def test_a_file_without_any_units_has_those_of_cam5_and_says_so(write_file: WriteFile) -> None:
    ds = open_cam5(write_file("a.nc", {"PSL": (101300.0, None), "TMQ": (30.0, None)}))
    assert ds["PSL"].attrs["units"] == "Pa"
    assert "documented for CAM5" in ds["PSL"].attrs["comment"]


def test_a_variable_without_units_beside_others_with_units_is_refused(write_file: WriteFile) -> None:
    path = write_file("a.nc", {"PSL": (101300.0, None), "IVT": (30.0, "kg m-1 s-1")})
    with pytest.raises(InputError, match=r"a\.nc: variable PSL has no units attribute"):
        open_cam5(path)


def test_unknown_units_are_refused_with_the_variable_and_the_file(write_file: WriteFile) -> None:
    with pytest.raises(InputError, match=r"a\.nc: variable TMQ is in 'furlongs', which does not convert to 'kg m-2'"):
        open_cam5(write_file("a.nc", {"TMQ": (1.0, "furlongs")}))


def test_files_packed_with_different_scale_factors_give_their_own_values(write_file: WriteFile, tmp_path: Path) -> None:
    values = {"a.nc": 101300.0, "b.nc": 98700.0}
    for day, (name, value) in enumerate(values.items(), start=1):
        packing = {"dtype": "int16", "scale_factor": 0.25 * day, "add_offset": value, "_FillValue": -32767}
        field = value + 0.25 * day * np.arange(7).reshape(7, 1)
        write_file(name, {"PSL": (field, "Pa")}, times=[f"2001-01-0{day}"], encoding={"PSL": packing})
    ds = open_cam5(f"{tmp_path}/*.nc")
    np.testing.assert_array_equal(ds["PSL"][:, :, 0], [101300 + 0.25 * np.arange(7), 98700 + 0.5 * np.arange(7)])
    assert ds["PSL"].encoding == {}
    ds.to_netcdf(tmp_path / "out.nc")
    with xr.open_dataset(tmp_path / "out.nc") as written:
        np.testing.assert_array_equal(written["PSL"], ds["PSL"])


def test_every_file_counts_its_time_from_its_own_start(write_file: WriteFile, tmp_path: Path) -> None:
    for name, start in (("b.nc", "2001-01-01T00"), ("a.nc", "2001-01-01T12")):
        times = np.datetime64(start, "ns") + np.arange(2) * np.timedelta64(6, "h")
        encoding = {"time": {"units": f"hours since {start.replace('T', ' ')}:00", "dtype": "int32"}}
        write_file(name, {"TMQ": TMQ}, times=times, encoding=encoding)
    ds = open_cam5(f"{tmp_path}/*.nc")
    assert list(ds.indexes["time"].hour) == [0, 6, 12, 18]


def test_the_times_of_all_files_survive_writing_whatever_units_the_first_had(
    write_file: WriteFile, tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    for day, hour in ((1, 0), (2, 7)):
        encoding = {"time": {"units": f"days since 2001-01-0{day} {hour}:00", "dtype": "int64"}}
        write_file(f"{day}.nc", {"TMQ": TMQ}, times=[f"2001-01-0{day}T0{hour}"], encoding=encoding)
    ds = open_cam5(f"{tmp_path}/*.nc")
    ds.to_netcdf(tmp_path / "out.nc4")
    with xr.open_dataset(tmp_path / "out.nc4") as written:
        np.testing.assert_array_equal(written["time"], np.array(["2001-01-01T00", "2001-01-02T07"], "datetime64[ns]"))
    assert not [w for w in recwarn if "serializ" in str(w.message).lower()]


def test_noleap_dates_survive_from_the_file_to_a_written_one(write_file: WriteFile, tmp_path: Path) -> None:
    dates = [cftime.DatetimeNoLeap(2000, 2, 28, 12), cftime.DatetimeNoLeap(2000, 3, 1, 12)]
    ds = open_cam5(write_file("a.nc", {"TMQ": TMQ}, times=dates))
    assert list(ds["time"].values) == dates
    ds.to_netcdf(tmp_path / "b.nc")
    assert list(open_cam5(tmp_path / "b.nc")["time"].values) == dates


def test_a_file_without_a_calendar_follows_one_in_the_standard_calendar(write_file: WriteFile, tmp_path: Path) -> None:
    write_file("a.nc", {"TMQ": TMQ}, times=["2000-02-28"], encoding={"time": {"calendar": "standard"}})
    path = write_file("b.nc", {"TMQ": TMQ}, times=["2000-02-29"])
    with xr.open_dataset(path, decode_times=False) as raw:
        ds = raw.load()
    del ds["time"].attrs["calendar"]
    path.unlink()
    ds.to_netcdf(path)
    assert list(open_cam5(f"{tmp_path}/*.nc").indexes["time"].day) == [28, 29]


GRID = np.arange(3 * 6 * 8, dtype=np.float32).reshape(3, 6, 8)
GRID_LAT = np.linspace(-75.0, 75.0, 6)
GRID_LON = np.arange(0.0, 360.0, 45.0)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    order=st.permutations(["time", "lat", "lon"]),
    north_first=st.booleans(),
    west_first=st.integers(0, 7),
    negative=st.booleans(),
    cyclic=st.booleans(),
    format=st.sampled_from(["NETCDF3_CLASSIC", "NETCDF4"]),
)
def test_any_order_of_axes_and_any_convention_of_longitudes_gives_one_canonical_dataset(
    write_file: WriteFile,
    order: list[str],
    north_first: bool,
    west_first: int,
    negative: bool,
    cyclic: bool,
    format: str,
) -> None:
    times = np.datetime64("2001-01-01") + np.arange(3)
    columns = np.roll(np.arange(8), -west_first)
    columns = np.append(columns, columns[0]) if cyclic else columns
    rows = np.arange(6)[::-1] if north_first else np.arange(6)
    lon = GRID_LON[columns] - 360.0 * (negative & (GRID_LON[columns] >= 180.0))
    field = xr.DataArray(GRID[:, rows][:, :, columns], dims=("time", "lat", "lon")).transpose(*order)
    path = write_file(
        "a.nc", {"TMQ": (field.values, "kg m-2", order)}, times=times, lat=GRID_LAT[rows], lon=lon, format=format
    )
    ds = open_cam5(path)
    np.testing.assert_array_equal(ds["lat"], GRID_LAT)
    np.testing.assert_array_equal(ds["lon"], GRID_LON)
    np.testing.assert_array_equal(ds["TMQ"], GRID)


def _label_file(write_file: WriteFile, labels: Any, name: str = "data-2001-01-01-00-1-0.nc", day: int = 1) -> Path:
    return write_file(name, {"TMQ": TMQ, "LABELS": (labels, None, ("lat", "lon"))}, times=[f"2001-01-0{day}"])


@pytest.mark.parametrize("dtype", [np.int64, np.float32])
def test_labels_of_climatenet_become_int8(write_file: WriteFile, dtype: type) -> None:
    labels = (np.arange(56).reshape(7, 8) % 3).astype(dtype)
    ds = open_cam5(_label_file(write_file, labels), labels=True)
    assert ds["LABELS"].dtype == np.int8
    np.testing.assert_array_equal(ds["LABELS"][0], labels)


def test_labels_are_left_out_unless_they_are_asked_for(write_file: WriteFile) -> None:
    assert "LABELS" not in open_cam5(_label_file(write_file, np.zeros((7, 8), np.int64)))


def test_missing_labels_become_the_missing_class(write_file: WriteFile) -> None:
    labels = np.full((7, 8), np.nan, np.float32)
    labels[0, 0] = 2.0
    values = open_cam5(_label_file(write_file, labels), labels=True)["LABELS"].values[0]
    assert values[0, 0] == 2
    assert (values.ravel()[1:] == -1).all()


@pytest.mark.parametrize("value", [3, -2, 0.5])
def test_a_label_that_is_no_class_is_refused_when_it_is_read(write_file: WriteFile, value: float) -> None:
    good = _label_file(write_file, np.zeros((7, 8), np.float32))
    bad = _label_file(write_file, np.full((7, 8), value, np.float32), "data-2001-01-02-00-1-0.nc", day=2)
    ds = open_cam5([good, bad], labels=True)
    ds["LABELS"][0].load()
    with pytest.raises(InputError, match=rf"data-2001-01-02-00-1-0\.nc: LABELS holds the value {value:g}"):
        ds["LABELS"][1].load()


def test_labels_that_the_file_lacks_are_refused(write_file: WriteFile) -> None:
    with pytest.raises(InputError, match="has no variable LABELS"):
        open_cam5(write_file("a.nc", {"TMQ": TMQ}), labels=True)


def test_one_time_labelled_by_two_experts_is_refused_with_the_way_to_choose(
    write_file: WriteFile, tmp_path: Path
) -> None:
    for expert in (0, 1):
        _label_file(write_file, np.zeros((7, 8), np.int64), f"data-2001-01-01-00-1-{expert}.nc")
    with pytest.raises(InputError, match=r"data-2001-01-01-00-1-0\.nc and data-2001-01-01-00-1-1\.nc .*'\*-0\.nc'"):
        open_cam5(f"{tmp_path}/*.nc")
    assert open_cam5(f"{tmp_path}/*-0.nc").sizes["time"] == 1


@pytest.mark.parametrize(
    ("fields", "channels", "said"),
    [
        ({"TMQ": TMQ}, ["TMQ", "PSL"], "has no variable PSL. It has: TMQ."),
        (
            {"psl": TMQ},
            None,
            "no channel can be had from it by the names of CAM5. It has: psl. 'psl'; did you mean 'PSL' or 'PS'?",
        ),
        ({"u10": TMQ, "msl": TMQ}, None, "It has: msl, u10. These are names of ERA5: try source=era5."),
        ({"TMQ": TMQ}, ["TNQ"], "'TNQ' is not a channel; did you mean 'TMQ'?"),
        (
            {"TMQ": TMQ},
            ["PRECIPITATION_OF_ALL_KINDS"],
            "'PRECIPITATION_OF_ALL_KINDS' is not a channel. Known: TMQ, U850",
        ),
        ({"TMQ": TMQ}, ["TMQ", "TMQ"], "TMQ is asked for twice"),
        ({"TMQ": TMQ}, "TMQ", "expected a list of names"),
        ({"TMQ": TMQ}, [], "expected a list of names"),
    ],
)
def test_channels_that_cannot_be_had_are_refused_by_name(
    write_file: WriteFile, fields: dict[str, Any], channels: Any, said: str
) -> None:
    with pytest.raises(InputError) as error:
        open_cam5(write_file("a.nc", fields), channels=channels)
    assert said in str(error.value)


def test_the_time_option_serves_a_single_file_only(write_file: WriteFile) -> None:
    first, second = (write_file(f"{n}.nc", {"TMQ": TMQ}, times=None) for n in "ab")
    assert open_cam5(first, time="2011-10-11T00").indexes["time"][0] == np.datetime64("2011-10-11")
    with pytest.raises(InputError, match="the input has 2 files"):
        open_cam5([first, second], time="2011-10-11T00")
    with pytest.raises(InputError, match=r"a\.nc: has no time coordinate"):
        open_cam5([first, second])
