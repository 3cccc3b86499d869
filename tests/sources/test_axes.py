from typing import Any

import cftime
import numpy as np
import pytest
import xarray as xr

from climseg.errors import InputError
from climseg.sources.axes import name_axes, on_grid

LAT = np.array([10.0, 0.0, -10.0])
LON = np.array([0.0, 90.0, 180.0, 270.0])
NOON = np.datetime64("2001-01-01T12", "ns")


def _fields(dims: tuple[str, ...], shape: tuple[int, ...], **coords: Any) -> xr.Dataset:
    return xr.Dataset({"TMQ": (dims, np.ones(shape))}, coords=coords)


@pytest.mark.parametrize(
    ("time", "lat", "lon"), [("time", "lat", "lon"), ("valid_time", "latitude", "longitude"), ("Time", "LAT", "LON")]
)
def test_axes_are_found_by_their_names(time: str, lat: str, lon: str) -> None:
    ds = _fields((time, lat, lon), (1, 3, 4), **{time: [NOON], lat: LAT, lon: LON})
    named = name_axes(ds, "a.nc")
    assert named["TMQ"].dims == ("time", "lat", "lon")
    assert named.indexes["time"][0] == NOON
    np.testing.assert_array_equal(named["lat"], LAT)


def test_axes_are_found_by_their_standard_names() -> None:
    ds = _fields(
        ("t", "y", "x"),
        (1, 3, 4),
        t=("t", [NOON], {"standard_name": "time"}),
        north=("y", LAT, {"standard_name": "latitude"}),
        east=("x", LON, {"standard_name": "longitude"}),
    )
    assert dict(name_axes(ds, "a.nc").sizes) == {"time": 1, "lat": 3, "lon": 4}


def test_the_valid_time_of_a_forecast_counts_and_not_its_start() -> None:
    start = np.datetime64("2001-01-01T00", "ns")
    ds = _fields(("lat", "lon"), (3, 4), time=start, valid_time=NOON, lat=LAT, lon=LON)
    named = name_axes(ds, "a.nc")
    assert list(named.indexes["time"]) == [NOON]
    assert named["TMQ"].dims == ("time", "lat", "lon")


def test_the_time_option_dates_a_file_that_has_none() -> None:
    ds = _fields(("lat", "lon"), (3, 4), lat=LAT, lon=LON)
    assert name_axes(ds, "a.nc", time="2011-10-11T06").indexes["time"][0] == np.datetime64("2011-10-11T06")
    with pytest.raises(InputError, match=r"a\.nc: has no time coordinate .*source\.time="):
        name_axes(ds, "a.nc")


@pytest.mark.parametrize("time", ["yesterday", "2011-13-01", "2011", "2011-10-11T25"])
def test_a_time_option_that_is_no_time_is_refused(time: str) -> None:
    with pytest.raises(InputError, match=f"source.time='{time}' is no time"):
        name_axes(_fields(("lat", "lon"), (3, 4), lat=LAT, lon=LON), "a.nc", time=time)


def test_the_time_option_is_refused_where_the_file_has_times_or_several_steps() -> None:
    with pytest.raises(InputError, match="has a time of its own"):
        name_axes(_fields(("time", "lat", "lon"), (1, 3, 4), time=[NOON], lat=LAT, lon=LON), "a.nc", time="2011-10-11")
    with pytest.raises(InputError, match="has 2 steps along 'time'"):
        name_axes(_fields(("time", "lat", "lon"), (2, 3, 4), lat=LAT, lon=LON), "a.nc", time="2011-10-11")


def test_times_are_rounded_to_seconds_in_any_calendar() -> None:
    almost = NOON - np.timedelta64(300, "ns")
    ds = _fields(("time", "lat", "lon"), (1, 3, 4), time=[almost], lat=LAT, lon=LON)
    assert name_axes(ds, "a.nc").indexes["time"][0] == NOON
    almost = cftime.Datetime360Day(2001, 2, 30, 11, 59, 59, 999_990)
    ds = _fields(("time", "lat", "lon"), (1, 3, 4), time=[almost], lat=LAT, lon=LON)
    assert name_axes(ds, "a.nc").indexes["time"][0] == cftime.Datetime360Day(2001, 2, 30, 12)


ROTATED = xr.Variable(("rlat",), LAT, {"standard_name": "grid_latitude"})


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
        (_fields(("lon",), (4,), lat=3.0, lon=LON), "lat is a single value"),
        (_fields(("time", "lat", "lon"), (1, 3, 4), time=[3], lat=LAT, lon=LON), "time has the units None"),
        (_fields(("time", "lat", "lon"), (0, 3, 4), time=np.array([], "M8[ns]"), lat=LAT, lon=LON), "no time step"),
        (
            _fields(("time", "lat", "lon"), (1, 3, 4), time=[np.datetime64("NaT", "ns")], lat=LAT, lon=LON),
            "missing values",
        ),
        (
            _fields(("a", "b"), (1, 1), valid_time=(("a", "b"), [[NOON]]), lat=LAT, lon=LON),
            "expected one axis of times",
        ),
    ],
)
def test_a_file_without_usable_axes_is_refused_with_the_reason(ds: xr.Dataset, said: str) -> None:
    with pytest.raises(InputError, match=rf"a\.nc: .*{said}"):
        name_axes(ds, "a.nc")


def test_a_variable_loses_dimensions_of_size_one_and_other_coordinates() -> None:
    ds = _fields(("lon", "number", "lat", "time"), (4, 1, 3, 1), time=[NOON], lat=LAT, lon=LON, number=[0], height=2.0)
    field = on_grid(name_axes(ds, "a.nc")["TMQ"], "a.nc")
    assert field.dims == ("time", "lat", "lon")
    assert set(field.coords) == {"time", "lat", "lon"}


def test_ensemble_members_are_refused_with_the_way_to_choose_one() -> None:
    ds = _fields(("number", "time", "lat", "lon"), (10, 1, 3, 4), time=[NOON], lat=LAT, lon=LON, number=range(10))
    with pytest.raises(InputError, match=r"TMQ has 10 values along 'number'.*ncks -d number,0"):
        on_grid(name_axes(ds, "a.nc")["TMQ"], "a.nc")


def test_a_field_without_time_is_refused_in_a_file_of_several_steps_and_dated_in_one_of_a_single_step() -> None:
    ds = _fields(("lat", "lon"), (3, 4), time=[NOON, NOON + np.timedelta64(6, "h")], lat=LAT, lon=LON)
    with pytest.raises(InputError, match="TMQ has no time axis"):
        on_grid(name_axes(ds, "a.nc")["TMQ"], "a.nc")
    one = name_axes(ds.isel(time=[0]), "a.nc")
    assert on_grid(one["TMQ"], "a.nc").shape == (1, 3, 4)
