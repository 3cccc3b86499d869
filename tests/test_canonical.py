from typing import Any

import dask.array as da
import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from climseg.canonical import (
    SOURCE_VALUES,
    check_canonical,
    check_complete,
    check_range,
    check_values,
    orient,
    restore_orientation,
    source_longitudes,
    to_canonical,
)
from climseg.channels import CHANNELS
from climseg.errors import InputError

TIMES = np.array(["2001-01-01T00", "2001-01-01T06"], "datetime64[ns]")
LAT = np.array([-60.0, -20.0, 20.0, 60.0])
LON = np.arange(0.0, 360.0, 60.0)


def _fields(lat: Any = LAT, lon: Any = LON, **variables: Any) -> xr.Dataset:
    """One value per point that tells where it is: 1000 lat + (lon modulo 360), to 0.001 degrees."""
    lat, lon = np.asarray(lat), np.asarray(lon)
    field = 1000.0 * lat[:, None] + np.round(lon % 360.0, 3) % 360.0
    data = xr.DataArray(np.stack([field, field + 0.5]), dims=("time", "lat", "lon"), attrs={"units": "kg m-2"})
    return xr.Dataset({"TMQ": data} | variables, coords={"time": TIMES, "lat": lat, "lon": lon})


def _values_lie_where_they_were(ds: xr.Dataset) -> bool:
    expected = 1000.0 * ds["lat"] + np.round(ds["lon"] % 360.0, 3) % 360.0
    return bool(np.allclose(ds["TMQ"][0], expected, atol=1e-2))


@given(
    north_first=st.booleans(),
    east_first=st.booleans(),
    start=st.integers(-6, 6),
    cyclic=st.booleans(),
    order=st.permutations(["time", "lat", "lon"]),
)
def test_orienting_gives_one_result_and_restoring_undoes_it(
    north_first: bool, east_first: bool, start: int, cyclic: bool, order: list[str]
) -> None:
    lat = LAT[::-1] if north_first else LAT
    lon = 60.0 * (start + np.arange(7 if cyclic else 6))
    given_fields = _fields(lat, lon[::-1] if east_first else lon)
    ds = to_canonical(given_fields.transpose(*order), "a.nc")
    np.testing.assert_array_equal(ds["lat"], LAT)
    np.testing.assert_array_equal(ds["lon"], LON)
    assert _values_lie_where_they_were(ds)
    back = restore_orientation(ds)
    for name in ("lat", "lon"):
        np.testing.assert_array_equal(back[name], given_fields[name])
        assert SOURCE_VALUES not in back[name].attrs
    np.testing.assert_array_equal(back["TMQ"], given_fields["TMQ"].astype(np.float32))


@pytest.mark.parametrize(
    "lon", [[350.0, 355.0, 0.0, 5.0, 10.0], [-10.0, -5.0, 0.0, 5.0, 10.0], [10.0, 5.0, 0.0, -5.0, -10.0]]
)
def test_a_region_across_greenwich_stays_contiguous(lon: list[float]) -> None:
    ds = to_canonical(_fields(lon=lon), "a.nc")
    np.testing.assert_array_equal(ds["lon"], [350.0, 355.0, 360.0, 365.0, 370.0])
    assert _values_lie_where_they_were(ds)
    np.testing.assert_array_equal(restore_orientation(ds)["lon"], lon)


def test_a_region_across_the_date_line_stays_contiguous() -> None:
    ds = to_canonical(_fields(lon=[170.0, 175.0, -180.0, -175.0]), "a.nc")
    np.testing.assert_array_equal(ds["lon"], [170.0, 175.0, 180.0, 185.0])


def test_a_globe_stored_as_float32_around_greenwich_begins_at_zero() -> None:
    lon = (-180.0 + 0.25 * np.arange(1440)).astype(np.float32)
    lon[720] = -1.5e-5  # for 0: the resolution of float32 near 180
    ds = to_canonical(_fields(lon=lon), "a.nc")
    np.testing.assert_allclose(ds["lon"], 0.25 * np.arange(1440), atol=1e-9)
    np.testing.assert_array_equal(restore_orientation(ds)["lon"], lon)


def test_a_region_that_begins_a_rounding_error_west_of_greenwich_begins_at_zero() -> None:
    ds = to_canonical(_fields(lon=[-1e-10, 5.0, 10.0]), "a.nc")
    np.testing.assert_allclose(ds["lon"], [0.0, 5.0, 10.0], atol=1e-9)


def test_a_cut_or_regridded_dataset_stays_canonical_when_restored() -> None:
    ds = to_canonical(_fields(LAT[::-1], LON - 180.0), "a.nc")
    cut = restore_orientation(ds.isel(lon=slice(1, 4)))
    np.testing.assert_array_equal(cut["lon"], LON[1:4])
    np.testing.assert_array_equal(cut["lat"], LAT[::-1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_canonical_dataset_has_float32_channels_with_cf_attributes_and_no_encoding(dtype: type) -> None:
    given_fields = _fields().astype(dtype)
    given_fields["TMQ"].encoding = {"dtype": "int16", "scale_factor": 0.1, "chunksizes": (1, 2, 2)}
    given_fields["TMQ"].attrs |= {"comment": "derived: somehow", "grid_mapping": "crs"}
    ds = to_canonical(given_fields, "a.nc")
    assert ds["TMQ"].dtype == np.float32
    assert ds["TMQ"].attrs == CHANNELS["TMQ"].attributes | {"comment": "derived: somehow"}
    assert ds["TMQ"].encoding == {}
    assert ds["lat"].attrs["standard_name"] == "latitude"
    assert given_fields["TMQ"].dtype == dtype
    assert "grid_mapping" in given_fields["TMQ"].attrs
    assert given_fields["lat"].attrs == {}


def test_labels_become_int8_with_the_names_of_the_classes() -> None:
    labels = xr.DataArray(np.full((2, 4, 6), 2, np.int64), dims=("time", "lat", "lon"))
    ds = to_canonical(_fields(LABELS=labels), "a.nc")
    assert ds["LABELS"].dtype == np.int8
    assert ds["LABELS"].attrs["flag_meanings"] == "background tropical_cyclone atmospheric_river"
    np.testing.assert_array_equal(ds["LABELS"].attrs["flag_values"], [0, 1, 2])


def test_lazy_fields_stay_lazy() -> None:
    fields = _fields(LAT[::-1], LON - 180.0).chunk(time=1)
    assert isinstance(to_canonical(fields, "a.nc")["TMQ"].data, da.Array)


@pytest.mark.parametrize(
    ("ds", "said"),
    [
        (_fields().isel(time=0, drop=True), "variable TMQ has the dimensions ('lat', 'lon')"),
        (_fields().drop_vars("lat"), "has no lat coordinate"),
        (_fields().isel(lat=[0]), "lat has a single point"),
        (_fields(lat=[0.0, 20.0, 10.0, 30.0]), "lat must run in one direction"),
        (_fields(lat=[80.0, 90.0, 100.0]), "lat holds 100; latitudes in degrees lie within -90 and 90"),
        (_fields(lon=[0.0, 10.0, 10.0, 20.0]), "lon must run in one direction"),
        (_fields(lon=[0.0, 10.0, 20.0, 90.0]), "lon is not evenly spaced (steps from 10 to 70 degrees)"),
        (_fields(lat=[0.0, np.nan, 20.0]), "lat holds missing values"),
    ],
)
def test_fields_that_cannot_become_canonical_are_refused_with_the_reason(ds: xr.Dataset, said: str) -> None:
    with pytest.raises(InputError) as error:
        to_canonical(ds, "a.nc")
    assert str(error.value).startswith(f"a.nc: {said}")


def _broken(**changes: Any) -> xr.Dataset:
    return to_canonical(_fields(), "a.nc").assign_coords(**changes)


@pytest.mark.parametrize(
    ("ds", "said"),
    [
        (_broken().isel(time=0, drop=True), "has no 'time' axis"),
        (_broken(time=TIMES[::-1]), "the time axis does not increase"),
        (_broken(time=TIMES[[0, 0]]), "the time 2001-01-01 00:00:00 appears twice"),
        (_broken(lat=LAT[::-1]), "lat must ascend"),
        (_broken(lon=LON - 180.0), "lon must ascend from a first value in [0, 360)"),
        (_broken().rename(TMQ="TNQ"), "'TNQ' is not a channel; did you mean 'TMQ'"),
        (_broken().assign(TMQ=_broken()["TMQ"].assign_attrs(units="mm")), "variable TMQ is in 'mm'; expected 'kg m-2'"),
        (_broken().astype(np.float64), "variable TMQ is float64; expected float32"),
        (_broken().transpose("lat", "lon", "time"), "variable TMQ has dims ('lat', 'lon', 'time')"),
    ],
)
def test_the_check_names_the_first_thing_that_is_not_canonical(ds: xr.Dataset, said: str) -> None:
    with pytest.raises(InputError) as error:
        check_canonical(ds, origin="a.nc")
    assert str(error.value).startswith(f"a.nc: {said}")


def test_the_check_names_the_channels_that_are_missing_and_those_that_are_there() -> None:
    ds = to_canonical(_fields(), "a.nc")
    check_canonical(ds, channels=["TMQ"])
    with pytest.raises(InputError, match=r"the Dataset: has no channel PSL, T500; found: TMQ\."):
        check_canonical(ds, channels=["TMQ", "PSL", "T500"])


def test_orienting_an_oriented_dataset_changes_nothing_and_keeps_the_source_values() -> None:
    once = to_canonical(_fields(LAT[::-1], LON - 180.0), "a.nc")
    xr.testing.assert_identical(orient(once, "a.nc"), once)


def test_missing_and_infinite_values_are_counted_and_refused() -> None:
    values = np.array([[20.0, np.nan], [np.inf, 30.0]], np.float32)
    with pytest.raises(
        InputError, match=r"a\.nc: channel TMQ has 2 missing or infinite of 4 values at noon; fill them"
    ):
        check_complete("TMQ", values, "noon", "a.nc")
    with pytest.raises(InputError, match="2 missing or infinite"):
        check_values("TMQ", values, "noon", "a.nc")


def test_the_range_is_checked_of_what_is_not_missing() -> None:
    check_range("TMQ", np.array([np.nan, 30.0], np.float32), "noon", "a.nc")
    check_range("TMQ", np.array([np.nan, np.nan], np.float32), "noon", "a.nc")
    with pytest.raises(
        InputError, match=r"a\.nc: channel TMQ runs from 30 to 200 at noon; in kg m-2 it lies within -1 "
    ):
        check_range("TMQ", np.array([np.nan, 30.0, 200.0], np.float32), "noon", "a.nc")
    with pytest.raises(InputError, match="runs from 30 to inf"):
        check_range("TMQ", np.array([30.0, np.inf], np.float32), "noon", "a.nc")


def test_values_in_range_pass() -> None:
    check_values("PSL", np.array([87_000.0, 108_480.0], np.float32), "noon", "a.nc")


@pytest.mark.parametrize(
    ("west", "columns", "longitude", "expected"),
    [
        (-180.0, 360, 255.0, -105.0),
        (-180.0, 360, 179.5, 179.5),
        (0.0, 360, 255.0, 255.0),
        (-30.0, 60, 385.0, 25.0),  # a cut over Greenwich is 330 to 389 in canonical longitudes
        (-30.0, 60, 25.0, 25.0),
        (330.0, 60, 25.0, 385.0),
    ],
)
def test_longitudes_go_back_into_the_convention_of_the_file(
    west: float, columns: int, longitude: float, expected: float
) -> None:
    lon = west + np.arange(columns)
    field = xr.DataArray(np.full((1, 3, columns), 20.0), dims=("time", "lat", "lon"), attrs={"units": "kg m-2"})
    raw = field.to_dataset(name="TMQ").assign_coords(time=[np.datetime64("2001-01-01")], lat=[0.0, 1.0, 2.0], lon=lon)
    assert source_longitudes(to_canonical(raw, "made"))(longitude) == expected
