from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import cftime
import numpy as np
import pytest
import xarray as xr

from climseg.errors import InputError
from climseg.sources.open import open_fields

WriteFile = Callable[..., Path]
Make = Callable[..., Path]
open_cam5 = partial(open_fields, source="cam5")
LAT, LON = [0.0, 10.0], [0.0, 10.0, 20.0]
UNITS = {"TMQ": "kg m-2", "PSL": "Pa"}


@pytest.fixture
def make(write_file: WriteFile) -> Make:
    """A function that writes variables whose values are the hour since 2001 began; at cftime dates, the position."""

    def write(name: str, hours: Sequence[Any], *names: str, lat: Any = LAT, lon: Any = LON) -> Path:
        if hasattr(hours[0], "calendar"):
            times: Any = list(hours)
            values = np.arange(len(hours), dtype=np.float32)
        else:
            times = np.datetime64("2001-01-01", "ns") + np.array(hours, "timedelta64[h]")
            values = np.array(hours, dtype=np.float32)
        fields = {n: (values.reshape(-1, 1, 1), UNITS[n]) for n in names or ("TMQ",)}
        return write_file(name, fields, times=times, lat=lat, lon=lon)

    return write


def test_files_are_put_in_the_order_of_their_times_and_not_of_their_names(make: Make) -> None:
    ds = open_cam5([make("a.nc", [12, 18]), make("b.nc", [0, 6]), make("c.nc", [24])])
    np.testing.assert_array_equal(ds["TMQ"][:, 0, 0], [0, 6, 12, 18, 24])
    assert ds.indexes["time"].is_monotonic_increasing


def test_files_whose_times_interleave_are_sorted_step_by_step(make: Make) -> None:
    ds = open_cam5([make("a.nc", [0, 12]), make("b.nc", [18, 6])])
    np.testing.assert_array_equal(ds["TMQ"][:, 0, 0], [0, 6, 12, 18])
    assert list(ds.indexes["time"].hour) == [0, 6, 12, 18]


def test_times_of_one_file_may_run_backwards(make: Make) -> None:
    ds = open_cam5(make("a.nc", [18, 12, 6, 0]))
    np.testing.assert_array_equal(ds["TMQ"][:, 0, 0], [0, 6, 12, 18])


def test_files_of_one_variable_each_and_of_successive_months_combine_together(make: Make) -> None:
    ds = open_cam5([make(f"{v}{h}.nc", [h, h + 6], v) for h in (12, 0) for v in ("TMQ", "PSL")])
    assert list(ds.data_vars) == ["TMQ", "PSL"]
    np.testing.assert_array_equal(ds["PSL"][:, 1, 2], [0, 6, 12, 18])


def test_cftime_files_combine_on_one_cftime_axis(make: Make) -> None:
    days = [cftime.DatetimeNoLeap(2000, 2, 28), cftime.DatetimeNoLeap(2000, 3, 1)]
    ds = open_cam5([make("b.nc", days[1:]), make("a.nc", days[:1])])
    assert list(ds["time"].values) == days


def test_one_moment_in_the_units_of_two_files_is_one_time(write_file: WriteFile) -> None:
    paths = []
    for name, units in (("TMQ", "days since 1850-01-01"), ("PSL", "hours since 1900-01-01")):
        encoding = {"time": {"units": units, "dtype": "float64"}}
        times = ["2001-01-01T01", "2001-01-01T04"]  # no binary fraction of a day
        paths.append(write_file(f"{name}.nc", {name: (1.0, UNITS[name])}, times=times, encoding=encoding))
    assert list(open_cam5(paths).indexes["time"].hour) == [1, 4]


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        (
            [("a.nc", [0, 6], "TMQ"), ("b.nc", [6, 12], "TMQ")],
            "The time 2001-01-01 06:00:00 of variable TMQ is in both {}/a.nc and {}/b.nc",
        ),
        ([("a.nc", [0, 6, 0], "TMQ")], "{}/a.nc: variable TMQ has the time 2001-01-01 00:00:00 twice"),
        (
            [("a.nc", [0, 6, 12], "TMQ"), ("b.nc", [0, 12], "PSL")],
            "Variable PSL has no value at 2001-01-01 06:00:00, where {}/a.nc has TMQ",
        ),
        (
            [("a.nc", [0, 6], "TMQ"), ("b.nc", [0], "PSL"), ("c.nc", [6, 12], "PSL")],
            "Variable TMQ has no value at 2001-01-01 12:00:00, where {}/c.nc has PSL",
        ),
        (
            [("a.nc", [0, 6], "TMQ", "PSL"), ("b.nc", [12], "TMQ")],
            "Variable PSL has no value at 2001-01-01 12:00:00, where {}/b.nc has TMQ",
        ),
        (
            [("a.nc", [cftime.DatetimeNoLeap(2001, 1, 1), cftime.DatetimeNoLeap(2001, 1, 1)], "TMQ")],
            "{}/a.nc: variable TMQ has the time 2001-01-01 00:00:00 twice",
        ),
        (
            [("a.nc", [0], "TMQ"), ("b.nc", [cftime.DatetimeNoLeap(2002, 1, 1)], "TMQ")],
            "{}/a.nc has the calendar standard and {}/b.nc has noleap",
        ),
        (
            [
                ("a.nc", [cftime.Datetime360Day(2002, 1, 1)], "TMQ"),
                ("b.nc", [cftime.DatetimeNoLeap(2002, 1, 2)], "TMQ"),
            ],
            "{}/a.nc has the calendar 360_day and {}/b.nc has noleap",
        ),
    ],
)
def test_times_that_do_not_fit_together_are_refused_by_name(
    make: Make, tmp_path: Path, parts: list[tuple[Any, ...]], said: str
) -> None:
    with pytest.raises(InputError) as error:
        open_cam5([make(*part) for part in parts])
    assert said.format(tmp_path, tmp_path) in str(error.value)


@pytest.mark.filterwarnings("ignore:Unable to decode time axis")
@pytest.mark.parametrize("year", ["0850", "2300"])
def test_years_beyond_those_of_datetime64_are_read_and_not_mixed_with_others(write_file: WriteFile, year: str) -> None:
    far = xr.Dataset(
        {"TMQ": (("time", "lat", "lon"), np.ones((2, 2, 3), np.float32), {"units": "kg m-2"})},
        {"time": ("time", [0.0, 1.0], {"units": f"days since {year}-01-01", "calendar": "standard"})},
    )
    near = write_file("near.nc", {"TMQ": (1.0, "kg m-2")}, lat=LAT, lon=LON)
    path = near.with_name("far.nc")
    far.assign_coords(lat=LAT, lon=LON).to_netcdf(path)
    assert [time.year for time in open_cam5(path)["time"].values] == [int(year)] * 2
    with pytest.raises(InputError, match=r"far\.nc has the calendar standard in years .* and .*near\.nc has standard;"):
        open_cam5([path, near])


def test_grids_that_differ_are_refused_by_name(make: Make) -> None:
    paths = [make("a.nc", [0]), make("b.nc", [6], lat=[0.0, 5.0])]
    said = r"a\.nc and .*b\.nc have unequal grids: lat is 0 to 10 in 2 points in the first and 0 to 5 in 2 points"
    with pytest.raises(InputError, match=said):
        open_cam5(paths)
    with pytest.raises(InputError, match="unequal grids: lon"):
        open_cam5([make("a.nc", [0]), make("b.nc", [6], lon=[0.0, 10.0])])


def test_a_file_that_is_not_read_may_have_another_grid(make: Make) -> None:
    paths = [make("a.nc", [0]), make("b.nc", [6], "PSL", lat=[0.0, 5.0])]
    assert list(open_cam5(paths, channels=["TMQ"]).data_vars) == ["TMQ"]


def test_a_grid_stored_once_as_float32_and_once_as_float64_is_one_grid(make: Make) -> None:
    fine = np.arange(0.0, 1.0, 0.1)
    ds = open_cam5([make("a.nc", [0], lat=fine), make("b.nc", [6], lat=fine.astype(np.float32))])
    np.testing.assert_array_equal(ds["lat"], fine)


def test_rows_of_either_order_are_one_grid(make: Make, write_file: WriteFile) -> None:
    rows = np.array([[1.0], [2.0]], np.float32)
    first = write_file("a.nc", {"TMQ": (rows, "kg m-2")}, lat=LAT, lon=LON)
    second = write_file("b.nc", {"TMQ": (rows[::-1], "kg m-2")}, times=["2001-01-02"], lat=LAT[::-1], lon=LON)
    np.testing.assert_array_equal(open_cam5([first, second])["TMQ"][:, :, 0], [[1.0, 2.0], [1.0, 2.0]])


# Periods


@pytest.mark.parametrize(
    ("period", "days"),
    [
        (["2001-01-02", "2001-01-03"], [2, 2, 3, 3]),
        (["2001-01-02T12", "2001-01-03"], [2, 3, 3]),
        (["2001-01-02T01", "2001-01-03T00"], [2, 3]),
        (["2000", "2001-01-01"], [1, 1]),
        (["2001-01-04", "2010-12-30"], [4, 4]),
        (["2001-01", "2001-01"], [1, 1, 2, 2, 3, 3, 4, 4]),
    ],
)
@pytest.mark.parametrize("calendar", ["standard", "noleap", "360_day"])
def test_a_period_takes_its_first_and_its_last_time_and_all_between(
    make: Make, calendar: str, period: list[str], days: list[int]
) -> None:
    hours = np.arange(0, 96, 12)
    if calendar == "standard":
        paths = [make("a.nc", hours[:3]), make("b.nc", hours[3:])]
    else:
        dates = [cftime.datetime(2001, 1, 1 + h // 24, h % 24, calendar=calendar) for h in hours.tolist()]
        paths = [make("a.nc", dates[:3]), make("b.nc", dates[3:])]
    ds = open_cam5(paths, period=period)
    assert list(ds.indexes["time"].day) == days
    assert ds["TMQ"].shape[0] == len(days)
    if calendar == "standard":
        np.testing.assert_array_equal(ds["TMQ"][:, 0, 0], ds["time"].dt.dayofyear * 24 - 24 + ds["time"].dt.hour)


@pytest.mark.parametrize("calendar", ["standard", "noleap"])
@pytest.mark.parametrize(
    ("period", "said"),
    [
        (["2002-01-01", "2002-02-01"], "no time of the input lies in it; the input goes from 2001-01-01"),
        (["2001-01-02", "2001-01-01"], "no time of the input lies in it"),
        (["2001-01-01T01", "2001-01-01T05"], "no time of the input lies in it"),
        (["yesterday", "2001-01-01"], "expected times such as 2011-10-01"),
        (["2001-01-32", "2001-02-01"], "expected times such as 2011-10-01"),
        (["2001-01-01"], "expected a first and a last time"),
        (["2001-01-01"] * 3, "expected a first and a last time"),
        ("2001-01-01", "expected a first and a last time"),
    ],
)
def test_a_period_without_times_or_that_is_none_is_refused(make: Make, calendar: str, period: Any, said: str) -> None:
    dates = [cftime.datetime(2001, 1, day, calendar="noleap") for day in (1, 2)]
    path = make("a.nc", [0, 24] if calendar == "standard" else dates)
    with pytest.raises(InputError, match=rf"source\.period=.*{said}"):
        open_cam5(path, period=period)


def test_a_day_that_the_calendar_lacks_is_refused_by_the_name_of_the_calendar(make: Make) -> None:
    path = make("a.nc", [cftime.Datetime360Day(2011, 10, 1)])
    with pytest.raises(InputError, match=r"source\.period=\[2011-10-01,2011-10-31\].*calendar 360_day"):
        open_cam5(path, period=["2011-10-01", "2011-10-31"])


def test_a_period_holds_for_levels_that_lie_in_files_of_their_own(write_file: WriteFile) -> None:
    paths = []
    for level in (1000.0, 850.0, 700.0, 500.0, 300.0):
        extra = {"level": ((), level, {"units": "hPa"})}
        values = np.array([0.001, 0.002]).reshape(2, 1, 1)
        times = ["2001-01-01", "2001-01-02"]
        paths.append(write_file(f"{level:g}.nc", {"q": (values, "kg kg-1")}, times=times, extra=extra))
    ds = open_fields(paths, source="era5", channels=["TMQ"], period=["2001-01-02", "2001-01-02"])
    # By hand: 0.002 * 70000 Pa / 9.80665.
    np.testing.assert_allclose(ds["TMQ"], 14.27603, rtol=1e-6)
    assert ds.sizes["time"] == 1


# Chunks


def test_dask_chunks_begin_where_files_and_stored_chunks_begin(write_file: WriteFile) -> None:
    paths = []
    for number, steps in enumerate((5, 3)):
        times = np.datetime64("2001-01-01") + 5 * number + np.arange(steps)
        encoding = {"TMQ": {"chunksizes": (2, 7, 8)}}
        paths.append(write_file(f"{number}.nc", {"TMQ": (1.0, "kg m-2")}, times=times, encoding=encoding))
    assert open_cam5(paths)["TMQ"].chunks[0] == (2, 2, 1, 2, 1)
    assert open_cam5(paths, period=["2001-01-02", "2001-01-07"])["TMQ"].chunks[0] == (1, 2, 1, 2)


def test_steps_of_interleaved_files_are_chunks_of_their_own(make: Make) -> None:
    assert open_cam5([make("a.nc", [0, 12]), make("b.nc", [6, 18])])["TMQ"].chunks[0] == (1, 1, 1, 1)
