from collections.abc import Callable
from pathlib import Path
from typing import Any

import cftime
import numpy as np
import pandas as pd
import pytest
import xarray as xr

from climseg.errors import InputError
from climseg.sources import netcdf
from climseg.sources.axes import accumulation_seconds, axes_of, hybrid_axis, pressure_axis, times_of
from climseg.sources.stored import StoredFile

LAT = np.array([10.0, 0.0, -10.0])
LON = np.array([0.0, 90.0, 180.0, 270.0])
NOON = np.datetime64("2001-01-01T12", "ns")
Scan = Callable[..., StoredFile]


@pytest.fixture
def scan(tmp_path: Path) -> Scan:
    """A function that writes the Dataset of one variable TMQ, or a given one, into a.nc and scans that."""

    def write(dims: tuple[str, ...] | xr.Dataset, shape: tuple[int, ...] = (), **coords: Any) -> StoredFile:
        ds = dims if isinstance(dims, xr.Dataset) else xr.Dataset({"TMQ": (dims, np.ones(shape))}, coords=coords)
        ds.to_netcdf(tmp_path / "a.nc")
        return netcdf.scan(str(tmp_path / "a.nc"))

    return write


@pytest.mark.parametrize(
    ("time", "lat", "lon"), [("time", "lat", "lon"), ("valid_time", "latitude", "longitude"), ("Time", "LAT", "LON")]
)
def test_axes_are_found_by_their_names(scan: Scan, time: str, lat: str, lon: str) -> None:
    file = scan((time, lat, lon), (1, 3, 4), **{time: [NOON], lat: LAT, lon: LON})
    axes = axes_of(file)
    assert (axes.time, axes.lat, axes.lon) == (time, lat, lon)
    assert times_of(file, None)[0][0] == NOON


def test_axes_are_found_by_their_standard_names(scan: Scan) -> None:
    file = scan(
        ("t", "y", "x"),
        (1, 3, 4),
        t=("t", [NOON], {"standard_name": "time"}),
        north=("y", LAT, {"standard_name": "latitude"}),
        east=("x", LON, {"standard_name": "longitude"}),
    )
    axes = axes_of(file)
    assert (axes.time, axes.lat, axes.lon) == ("t", "y", "x")


def test_the_canonical_grid_ascends_and_says_which_stored_rows_and_columns_it_takes(scan: Scan) -> None:
    lon = np.array([-90.0, 0.0, 90.0, 180.0, 270.0])  # the last is the first again
    axes = axes_of(scan(("time", "lat", "lon"), (1, 3, 5), time=[NOON], lat=LAT, lon=lon))
    np.testing.assert_array_equal(axes.grid["lat"], [-10.0, 0.0, 10.0])
    np.testing.assert_array_equal(axes.grid["lon"], [0.0, 90.0, 180.0, 270.0])
    assert axes.rows.tolist() == [2, 1, 0]
    assert axes.columns.tolist() == [1, 2, 3, 0]
    np.testing.assert_array_equal(axes.grid["lon"].attrs["source_values"], lon)


def test_the_valid_time_of_a_forecast_counts_and_not_its_start(scan: Scan) -> None:
    start = np.datetime64("2001-01-01T00", "ns")
    file = scan(("lat", "lon"), (3, 4), time=start, valid_time=NOON, lat=LAT, lon=LON)
    assert list(times_of(file, None)[0]) == [NOON]


def test_the_time_option_dates_a_file_that_has_none(scan: Scan) -> None:
    file = scan(("lat", "lon"), (3, 4), lat=LAT, lon=LON)
    assert times_of(file, "2011-10-11T06")[0][0] == np.datetime64("2011-10-11T06")
    with pytest.raises(InputError, match=r"a\.nc: has no time coordinate .*source\.time="):
        times_of(file, None)


@pytest.mark.parametrize("time", ["yesterday", "2011-13-01", "2011", "2011-10-11T25"])
def test_a_time_option_that_is_no_time_is_refused(scan: Scan, time: str) -> None:
    with pytest.raises(InputError, match=f"source.time='{time}' is no time"):
        times_of(scan(("lat", "lon"), (3, 4), lat=LAT, lon=LON), time)


def test_the_time_option_is_refused_where_the_file_has_times(scan: Scan) -> None:
    with pytest.raises(InputError, match="has a time of its own"):
        times_of(scan(("time", "lat", "lon"), (1, 3, 4), time=[NOON], lat=LAT, lon=LON), "2011-10-11")


def test_times_are_rounded_to_seconds_in_any_calendar(scan: Scan) -> None:
    almost = NOON - np.timedelta64(300, "ns")
    file = scan(("time", "lat", "lon"), (1, 3, 4), time=[almost], lat=LAT, lon=LON)
    assert times_of(file, None)[0][0] == NOON
    almost = cftime.Datetime360Day(2001, 2, 30, 11, 59, 59, 999_990)
    file = scan(("time", "lat", "lon"), (1, 3, 4), time=[almost], lat=LAT, lon=LON)
    assert times_of(file, None)[0][0] == cftime.Datetime360Day(2001, 2, 30, 12)


def test_times_of_single_precision_are_the_moments_meant(scan: Scan) -> None:
    # 6-hourly days of 2001 as float32 since 1850: they hold a sixteenth of a day exactly.
    days = np.float32(55152.0) + np.arange(4, dtype=np.float32) / 4
    time = ("time", days, {"units": "days since 1850-01-01", "calendar": "noleap"})
    index, encoding = times_of(scan(("time", "lat", "lon"), (4, 3, 4), time=time, lat=LAT, lon=LON), None)
    assert list(index.hour) == [0, 6, 12, 18]
    assert encoding == {"units": "days since 1850-01-01", "calendar": "noleap", "dtype": "float64"}


ROTATED = xr.Variable(("rlat",), LAT, {"standard_name": "grid_latitude"})
NO_TIME = np.datetime64("NaT", "ns")


def _fields(dims: tuple[str, ...], shape: tuple[int, ...], **coords: Any) -> xr.Dataset:
    return xr.Dataset({"TMQ": (dims, np.ones(shape))}, coords=coords)


@pytest.mark.parametrize(
    ("ds", "said"),
    [
        (
            _fields(("time", "ncol"), (1, 5), time=[NOON], lat=("ncol", range(5)), lon=("ncol", range(5))),
            "unstructured",
        ),
        (_fields(("time", "point"), (1, 5), time=[NOON], lat=("point", range(5)), lon=("point", range(5))), "unstruct"),
        (_fields(("rlat", "x"), (3, 4), rlat=ROTATED), "rotated pole"),
        (_fields(("y", "x"), (3, 4), lat=(("y", "x"), np.ones((3, 4))), lon=(("y", "x"), np.ones((3, 4)))), "curvilin"),
        (_fields(("lat", "lon"), (3, 4)), "no latitude and longitude coordinate"),
        (_fields(("time", "y", "lon"), (1, 3, 4), time=[NOON], lon=LON), "no latitude coordinate"),
        (_fields(("lon",), (4,), lat=3.0, lon=LON), "lat is a single value"),
        (_fields(("lat", "lon"), (1, 4), lat=[3.0], lon=LON), "lat has a single point"),
        (_fields(("lat", "lon"), (3, 4), lat=["a", "b", "c"], lon=LON), "lat holds no numbers"),
        (_fields(("lat", "lon"), (3, 4), lat=[0.0, 10.0, 30.0], lon=LON), "lat is not evenly spaced"),
        (_fields(("lat", "lon"), (3, 4), lat=LAT * 10.0, lon=LON), "latitudes in degrees lie within"),
    ],
)
def test_a_file_without_a_usable_grid_is_refused_with_the_reason(scan: Scan, ds: xr.Dataset, said: str) -> None:
    with pytest.raises(InputError, match=rf"a\.nc: .*{said}"):
        axes_of(scan(ds))


@pytest.mark.parametrize(
    ("ds", "said"),
    [
        (_fields(("time", "lat", "lon"), (1, 3, 4), time=[3], lat=LAT, lon=LON), "time has the units None"),
        (_fields(("time", "lat", "lon"), (0, 3, 4), time=np.array([], "M8[ns]"), lat=LAT, lon=LON), "no time step"),
        (_fields(("time", "lat", "lon"), (1, 3, 4), time=[NO_TIME], lat=LAT, lon=LON), "missing values"),
        (
            _fields(("a", "b"), (1, 1), valid_time=(("a", "b"), [[NOON]]), lat=LAT, lon=LON),
            "expected one axis of times",
        ),
        (
            _fields(("time", "lat", "lon"), (2, 3, 4), valid_time=NOON, lat=LAT, lon=LON),
            "has 2 steps along 'time', but valid_time gives 1",
        ),
        (_fields(("time", "lat", "lon"), (2, 3, 4), lat=LAT, lon=LON), "the 2 values along 'time' carry no times"),
        (_fields(("member", "lat", "lon"), (2, 3, 4), lat=LAT, lon=LON), "the 2 values along 'member' carry no times"),
    ],
)
def test_a_file_without_usable_times_is_refused_with_the_reason(scan: Scan, ds: xr.Dataset, said: str) -> None:
    with pytest.raises(InputError, match=rf"a\.nc: .*{said}"):
        times_of(scan(ds), None)


def test_a_missing_number_among_the_times_is_refused(scan: Scan) -> None:
    time = ("time", [0.0, np.nan], {"units": "days since 2001-01-01"})
    with pytest.raises(InputError, match=r"a\.nc: time holds missing values"):
        times_of(scan(("time", "lat", "lon"), (2, 3, 4), time=time, lat=LAT, lon=LON), None)


# Levels


@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        ("level", {}),
        ("pressure_level", {}),
        ("plev", {"units": "Pa"}),
        ("lev", {"units": "hPa"}),
        ("p", {"units": "mb"}),
    ],
)
def test_pressure_levels_are_told_by_name_or_by_units(scan: Scan, name: str, attributes: dict[str, str]) -> None:
    level = (name, [850.0, 500.0], attributes)
    file = scan(("time", name, "lat", "lon"), (1, 2, 3, 4), time=[NOON], lat=LAT, lon=LON, **{name: level})
    axis = pressure_axis(file.layout, file.layout.variables["TMQ"])
    assert axis is not None
    assert axis.name == name


@pytest.mark.parametrize("attributes", [{"units": "m"}, {}, {"units": "1"}])
def test_other_levels_are_no_pressure(scan: Scan, attributes: dict[str, str]) -> None:
    height = ("height", [2.0, 10.0], attributes)
    file = scan(("time", "height", "lat", "lon"), (1, 2, 3, 4), time=[NOON], lat=LAT, lon=LON, height=height)
    assert pressure_axis(file.layout, file.layout.variables["TMQ"]) is None


def test_a_scalar_level_that_the_variable_names_is_its_level(scan: Scan) -> None:
    file = scan(("time", "lat", "lon"), (1, 3, 4), time=[NOON], lat=LAT, lon=LON, level=((), 850.0, {"units": "hPa"}))
    axis = pressure_axis(file.layout, file.layout.variables["TMQ"])
    assert axis is not None
    assert axis.dims == ()


def _hybrid(scan: Scan, **more: Any) -> StoredFile:
    lev = {"units": "hPa", "standard_name": "atmosphere_hybrid_sigma_pressure_coordinate"}
    return scan(
        ("time", "lev", "lat", "lon"),
        (1, 3, 3, 4),
        time=[NOON],
        lat=LAT,
        lon=LON,
        lev=("lev", [3.6, 500, 992], lev),
        **more,
    )


def test_hybrid_levels_are_told_by_their_coefficients(scan: Scan) -> None:
    file = _hybrid(
        scan, hyam=("lev", [0.0036, 0.1, 0.0]), hybm=("lev", [0.0, 0.4, 0.9926]), P0=((), 1e5, {"units": "Pa"})
    )
    variable = file.layout.variables["TMQ"]
    hybrid = hybrid_axis(file.layout, variable)
    assert hybrid is not None
    assert (hybrid.dim, hybrid.reference) == ("lev", 1e5)
    np.testing.assert_array_equal(hybrid.a, [0.0036, 0.1, 0.0])
    np.testing.assert_array_equal(hybrid.b, [0.0, 0.4, 0.9926])
    assert pressure_axis(file.layout, variable) is None


def test_hybrid_levels_without_coefficients_are_not_taken_for_pressure(scan: Scan) -> None:
    # Their nominal pressures are those over an ocean at 1000 hPa.
    file = _hybrid(scan)
    variable = file.layout.variables["TMQ"]
    assert hybrid_axis(file.layout, variable) is None
    assert pressure_axis(file.layout, variable) is None


# Periods of accumulation


def _rain(scan: Scan, attributes: dict[str, Any], bounds: Any = None, units: str = "hours since 2001-01-01") -> Any:
    time = ("time", np.array([6.0, 12.0]), {"units": units} | ({} if bounds is None else {"bounds": "time_bnds"}))
    more = {} if bounds is None else {"time_bnds": (("time", "nv"), bounds)}
    ds = _fields(("time", "lat", "lon"), (2, 3, 4), time=time, lat=LAT, lon=LON, **more)
    ds["TMQ"].attrs.update(attributes)
    file = scan(ds)
    return accumulation_seconds(file, file.layout.variables["TMQ"])


@pytest.mark.parametrize("methods", ["time: sum", "time: sum (interval: 6 hours)", "area: sum"])
def test_cell_methods_alone_say_no_period(scan: Scan, methods: str) -> None:
    # The interval is the spacing of the data that were summed (CF conventions, section 7.3).
    assert _rain(scan, {"cell_methods": methods}) is None


def test_bounds_count_and_not_the_interval_of_what_was_summed(scan: Scan) -> None:
    days = [[-18.0, 6.0], [6.0, 30.0]]
    found = _rain(scan, {"cell_methods": "time: sum (interval: 1 hour)"}, days)
    assert found.tolist() == [86400.0, 86400.0]


@pytest.mark.parametrize(
    ("methods", "bounds"),
    [("time: mean", [[0.0, 6.0], [6.0, 12.0]]), ("time: point", [[0.0, 6.0], [6.0, 12.0]]), ("", [[0.0, 9.97e36]] * 2)],
)
def test_bounds_of_means_and_unwritten_ones_say_no_period(scan: Scan, methods: str, bounds: Any) -> None:
    assert _rain(scan, {"cell_methods": methods}, bounds) is None


@pytest.mark.parametrize(
    ("bounds", "units", "seconds"),
    [
        ([[0.0, 6.0], [6.0, 12.0]], "hours since 2001-01-01", [21600.0, 21600.0]),
        ([[3.0, 6.0], [6.0, 12.0]], "hours since 2001-01-01", [10800.0, 21600.0]),
        ([[6.0, 0.0], [12.0, 6.0]], "hours since 2001-01-01", [21600.0, 21600.0]),
        ([[5.75, 6.0], [11.75, 12.0]], "days since 2001-01-01", [21600.0, 21600.0]),
        ([[0.0, 1.0], [1.0, 2.0]], "minutes since 2001-01-01", [60.0, 60.0]),
    ],
)
def test_bounds_of_the_times_say_the_period_of_each_step(
    scan: Scan, bounds: Any, units: str, seconds: list[float]
) -> None:
    assert _rain(scan, {}, np.array(bounds), units).tolist() == seconds


def test_bounds_without_length_say_no_period(scan: Scan) -> None:
    assert _rain(scan, {}, np.array([[6.0, 6.0], [6.0, 12.0]])) is None


def test_the_times_are_those_of_pandas_in_the_standard_calendar_and_of_xarray_in_others(scan: Scan) -> None:
    file = scan(("time", "lat", "lon"), (1, 3, 4), time=[NOON], lat=LAT, lon=LON)
    assert isinstance(times_of(file, None)[0], pd.DatetimeIndex)
    time = [cftime.DatetimeNoLeap(2001, 1, 1)]
    file = scan(("time", "lat", "lon"), (1, 3, 4), time=time, lat=LAT, lon=LON)
    assert isinstance(times_of(file, None)[0], xr.CFTimeIndex)
