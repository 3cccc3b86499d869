import cftime
import numpy as np
import pandas as pd
import pytest
import xarray as xr

from climseg.canonical import to_canonical
from climseg.inspection.axes import describe_grid, describe_times


def test_equally_spaced_times_have_a_spacing_and_no_gap() -> None:
    report = describe_times(pd.date_range("2001-01-01", periods=1460, freq="6h"), ["TMQ"])
    assert (report.steps, report.spacing_hours, report.missing, report.duplicates) == (1460, 6.0, 0, 0)
    assert (report.first, report.last) == ("2001-01-01T00:00:00", "2001-12-31T18:00:00")
    assert report.calendar == "standard"


def test_missing_steps_are_counted_and_the_first_named() -> None:
    times = pd.date_range("2001-01-01", periods=40, freq="6h").delete([5, 6, 20, 30, 31, 32])
    report = describe_times(times, ["TMQ"])
    assert report.missing == 6
    assert report.first_missing[:3] == ["2001-01-02T06:00:00", "2001-01-02T12:00:00", "2001-01-06T00:00:00"]
    assert len(report.first_missing) == 5


def test_two_winters_miss_the_hours_between_them() -> None:
    times = pd.date_range("1990-12-01", "1991-01-31", freq="h").append(
        pd.date_range("1999-12-01", "2000-01-31", freq="h")
    )
    between = pd.Timestamp("1999-12-01") - pd.Timestamp("1991-01-31")
    assert describe_times(times, []).missing == between // pd.Timedelta("1h") - 1


def test_repeated_times_are_counted_and_do_not_count_as_steps() -> None:
    times = pd.DatetimeIndex(["2001-01-01T00", "2001-01-01T06", "2001-01-01T06", "2001-01-01T12"])
    report = describe_times(times, [])
    assert (report.steps, report.duplicates, report.first_duplicates) == (3, 1, ["2001-01-01T06:00:00"])
    assert (report.spacing_hours, report.missing) == (6.0, 0)


def test_the_29th_of_february_is_missing_in_no_noleap_calendar() -> None:
    days = [cftime.DatetimeNoLeap(2000, 2, 27), cftime.DatetimeNoLeap(2000, 2, 28), cftime.DatetimeNoLeap(2000, 3, 1)]
    report = describe_times(xr.CFTimeIndex(days), [])
    assert (report.calendar, report.spacing_hours, report.missing) == ("noleap", 24.0, 0)
    standard = describe_times(pd.DatetimeIndex([f"{d.year}-{d.month}-{d.day}" for d in days]), [])
    assert (standard.smallest_hours, standard.largest_hours) == (24.0, 48.0)


def test_months_are_no_gaps() -> None:
    report = describe_times(pd.date_range("2001-01-01", periods=12, freq="MS"), [])
    assert (report.missing, report.smallest_hours, report.largest_hours) == (0, 28 * 24.0, 31 * 24.0)


def test_scattered_times_have_no_spacing() -> None:
    report = describe_times(pd.DatetimeIndex(["2001-01-01", "2001-01-04", "2001-01-09", "2001-02-01"]), [])
    assert (report.spacing_hours, report.missing, report.largest_hours) == (None, 0, 23 * 24.0)


def test_one_step_has_neither() -> None:
    report = describe_times(pd.DatetimeIndex(["2001-01-01"]), [])
    assert (report.steps, report.spacing_hours, report.smallest_hours) == (1, None, None)


def _canonical(lat: np.ndarray, lon: np.ndarray) -> xr.Dataset:
    field = xr.DataArray(np.zeros((1, lat.size, lon.size)), dims=("time", "lat", "lon"), attrs={"units": "Pa"})
    times = np.array(["2001-01-01"], "datetime64[ns]")
    return to_canonical(xr.Dataset({"PSL": field}, coords={"time": times, "lat": lat, "lon": lon}), "a.nc")


def test_the_grid_of_era5_is_the_globe_with_both_poles_from_north_to_south() -> None:
    report = describe_grid(_canonical(np.linspace(90, -90, 721), np.arange(0, 360, 0.25)), ["PSL"])
    assert (report.rows, report.columns, report.lat_spacing, report.lon_spacing) == (721, 1440, 0.25, 0.25)
    assert report.closed
    assert report.whole_globe
    assert report.poles == ["south", "north"]
    assert report.latitude_order == "north to south"
    assert report.longitude_convention == "0 to 360"


def test_a_globe_of_cell_centres_has_no_poles() -> None:
    report = describe_grid(_canonical(np.arange(-89.5, 90), np.arange(-179.5, 180)), [])
    assert report.whole_globe
    assert report.poles == []
    assert (report.latitude_order, report.longitude_convention) == ("south to north", "-180 to 180")


@pytest.mark.parametrize(
    ("lat", "lon", "closed", "convention"),
    [
        (np.arange(0.0, 60.0), np.arange(0.0, 360.0), True, "0 to 360"),
        (np.arange(0.0, 60.0), np.arange(10.0, 100.0), False, "either"),
        (np.arange(0.0, 60.0), np.arange(-20.0, 20.0), False, "-180 to 180"),
    ],
)
def test_bands_and_regions_are_no_globe(lat: np.ndarray, lon: np.ndarray, closed: bool, convention: str) -> None:
    report = describe_grid(_canonical(lat, lon), [])
    assert not report.whole_globe
    assert report.closed == closed
    assert report.longitude_convention == convention
    assert (report.west, report.east) == (lon[0] % 360.0, lon[0] % 360.0 + lon[-1] - lon[0])
