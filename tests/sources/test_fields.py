from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from climseg.errors import InputError
from climseg.sources.fields import Lookup, describe_variables, names_in
from climseg.sources.open import open_fields
from climseg.sources.recipes import Field
from climseg.sources.scan import scan_files
from climseg.sources.table import built_in_table

WriteFile = Callable[..., Path]
open_cam5 = partial(open_fields, source="cam5")
open_era5 = partial(open_fields, source="era5")
TMQ = (1.0, "kg m-2")
VALUES = np.arange(7 * 8, dtype=np.float32).reshape(7, 8)


# Dimensions


def test_a_variable_loses_dimensions_of_size_one_and_other_coordinates(write_file: WriteFile) -> None:
    field = VALUES.T.reshape(8, 1, 7, 1)
    path = write_file(
        "a.nc",
        {"TMQ": (field, "kg m-2", ("lon", "number", "lat", "time"))},
        extra={"number": [0], "height": 2.0},
    )
    ds = open_cam5(path)
    assert ds["TMQ"].dims == ("time", "lat", "lon")
    assert set(ds.coords) == {"time", "lat", "lon"}
    np.testing.assert_array_equal(ds["TMQ"][0], VALUES)


def test_ensemble_members_are_refused_with_the_way_to_choose_one(write_file: WriteFile) -> None:
    path = write_file("a.nc", {"TMQ": (*TMQ, ("number", "time", "lat", "lon"))}, extra={"number": range(10)})
    with pytest.raises(InputError, match=r"a\.nc: variable TMQ has 10 values along 'number'.*ncks -d number,0"):
        open_cam5(path)


def test_a_variable_that_is_not_wanted_may_have_other_dimensions(write_file: WriteFile) -> None:
    fields = {"TMQ": TMQ, "PSL": (1.0, "Pa", ("number", "time", "lat", "lon")), "PS": (1.0, "Pa", ("time", "lat"))}
    path = write_file("a.nc", fields, extra={"number": range(3)})
    assert list(open_cam5(path, channels=["TMQ"]).data_vars) == ["TMQ"]
    with pytest.raises(InputError, match=r"variable PS has the dimensions \('time', 'lat'\); expected a regular"):
        open_cam5(path, channels=["PS"])


def test_a_field_without_time_is_dated_in_a_file_of_a_single_step_and_refused_in_one_of_several(
    write_file: WriteFile,
) -> None:
    field = {"TMQ": (VALUES, "kg m-2", ("lat", "lon"))}
    np.testing.assert_array_equal(open_cam5(write_file("a.nc", field))["TMQ"][0], VALUES)
    path = write_file("b.nc", field, times=["2001-01-01", "2001-01-02"])
    with pytest.raises(InputError, match=r"b\.nc: variable TMQ has no time axis"):
        open_cam5(path)


# Names


def test_the_first_of_several_names_that_a_file_has_is_taken(write_file: WriteFile) -> None:
    temperatures = {"2m_temperature": (282.0, "K"), "t2m": (281.0, "K")}
    assert (open_era5(write_file("a.nc", temperatures))["TREFHT"] == 281.0).all()


def test_each_of_many_files_may_have_a_name_of_its_own(write_file: WriteFile) -> None:
    paths = [
        write_file("a.nc", {"t2m": (281.0, "K")}, times=["2001-01-01"]),
        write_file("b.nc", {"2m_temperature": (9.0, "degC")}, times=["2001-01-02"]),
    ]
    np.testing.assert_allclose(open_era5(paths)["TREFHT"][:, 0, 0], [281.0, 282.15])


def test_a_name_that_is_a_coordinate_is_no_field(write_file: WriteFile) -> None:
    path = write_file("a.nc", {"t2m": (281.0, "K")}, extra={"u10": 3.0})
    assert list(open_era5(path).data_vars) == ["TREFHT", "ZBOT"]


# Levels


@pytest.mark.parametrize(("units", "factor"), [("hPa", 1.0), ("mb", 1.0), ("Pa", 100.0), ("kPa", 0.1), ("bar", 1e-3)])
def test_a_level_is_taken_by_its_pressure_in_whatever_units(write_file: WriteFile, units: str, factor: float) -> None:
    levels = np.array([1000.0, 850.0, 500.0], np.float32) * np.float32(factor)
    values = np.array([1.0, 2.0, 3.0]).reshape(1, 3, 1, 1)
    extra = {"lev": ("lev", levels, {"units": units})}
    path = write_file("a.nc", {"u": (values, "m s-1", ("time", "lev", "lat", "lon"))}, extra=extra)
    assert (open_era5(path)["U850"] == 2.0).all()


def test_a_level_beside_the_wanted_one_is_not_taken(write_file: WriteFile) -> None:
    extra = {"level": ("level", [849.0, 851.0], {"units": "hPa"})}
    path = write_file("a.nc", {"u": (1.0, "m s-1", ("time", "level", "lat", "lon"))}, extra=extra)
    with pytest.raises(InputError, match=r"U850 needs u at 850 hPa\. It has: u at 849, 851 hPa\."):
        open_era5(path, channels=["U850"])


def test_a_field_whose_level_its_name_says_must_lie_on_it_where_it_has_one(write_file: WriteFile) -> None:
    for level, there in ((850.0, True), (500.0, False)):
        extra = {"level": ((), level, {"units": "hPa"})}
        path = write_file("a.nc", {"U850": (1.0, "m s-1")}, extra=extra)
        survey = Lookup(scan_files([str(path)]), built_in_table("cam5"), None)
        assert (survey.find(Field("U850")) is not None) == there


def test_a_field_without_level_is_not_taken_from_a_column(write_file: WriteFile) -> None:
    extra = {"level": ("level", [850.0, 500.0], {"units": "hPa"})}
    path = write_file("a.nc", {"TREFHT": (1.0, "K", ("time", "level", "lat", "lon"))}, extra=extra)
    with pytest.raises(InputError, match="variable TREFHT has 2 values along 'level'"):
        open_cam5(path)


# ERA5's versions


@pytest.mark.parametrize("versions", [[1, 5], [5, 1], ["0001", "0005"], ["0005", "0001"], [b"1", b"5"]])
def test_final_values_are_taken_and_preliminary_ones_where_there_is_none(
    write_file: WriteFile, versions: list[Any]
) -> None:
    final, preliminary = VALUES.copy(), VALUES + 100.0
    final[0, :4] = np.nan
    first = str(versions[0]).strip("b'").lstrip("0")
    stack = np.stack([final, preliminary] if first == "1" else [preliminary, final])[np.newaxis]
    kinds: Any = {str: object, bytes: "S1"}.get(type(versions[0]))
    path = write_file(
        "a.nc",
        {"t2m": (stack, "K", ("time", "expver", "lat", "lon"))},
        extra={"expver": np.array(versions, dtype=kinds)},
    )
    expected = VALUES.copy()
    expected[0, :4] += 100.0
    np.testing.assert_array_equal(open_era5(path)["TREFHT"][0], expected)


@pytest.mark.parametrize(("versions", "taken"), [([1], 0), ([5], 0), (["0005"], 0)])
def test_a_single_version_is_taken(write_file: WriteFile, versions: list[Any], taken: int) -> None:
    kinds: Any = object if isinstance(versions[0], str) else None
    fields = {"t2m": (VALUES[np.newaxis, np.newaxis], "K", ("time", "expver", "lat", "lon"))}
    path = write_file("a.nc", fields, extra={"expver": np.array(versions, dtype=kinds)})
    np.testing.assert_array_equal(open_era5(path)["TREFHT"][0], VALUES)


@pytest.mark.parametrize("versions", [[1, 1], [5, 7], ["0001", "xxxx"]])
def test_other_versions_are_refused(write_file: WriteFile, versions: list[Any]) -> None:
    kinds: Any = object if isinstance(versions[0], str) else None
    fields = {"t2m": (1.0, "K", ("time", "expver", "lat", "lon"))}
    path = write_file("a.nc", fields, extra={"expver": np.array(versions, dtype=kinds)})
    with pytest.raises(InputError, match=r"a\.nc: expver holds .*expected 1 \(final\) and 5 \(preliminary\)"):
        open_era5(path)


def test_a_dimension_expver_without_numbers_is_refused(write_file: WriteFile) -> None:
    fields = {"t2m": (np.ones((1, 2, 7, 8), np.float32), "K", ("time", "expver", "lat", "lon"))}
    path = write_file("a.nc", fields, extra={"expver": ("expver", [1, 5])})
    with xr.open_dataset(path) as ds:
        ds.load().drop_vars("expver").to_netcdf(path.with_name("b.nc"))
    with pytest.raises(InputError, match=r"b\.nc: expver holds no values"):
        open_era5(path.with_name("b.nc"))


# Units


def test_a_misprint_that_the_table_knows_is_read_as_meant_and_told(write_file: WriteFile) -> None:
    path = write_file("a.nc", {"IVT": (250.0, "kg kg-1 m-1 s-1"), "TQV": (30.0, "kg m-2")})
    ds = open_fields(path, source="merra2", channels=["IVT"])
    assert (ds["IVT"] == 250.0).all()
    assert ds["IVT"].attrs["comment"] == "units: 'kg kg-1 m-1 s-1' of IVT is a known misprint of 'kg m-1 s-1'"
    with pytest.raises(InputError, match="variable IVT is in 'kg kg-1 m-1 s-1', which does not convert"):
        open_cam5(path, channels=["IVT"])


def test_a_geopotential_becomes_a_height(write_file: WriteFile) -> None:
    path = write_file("a.nc", {"Z200": (98066.5, "m2 s-2"), "Z1000": (100.0, "m")})
    ds = open_cam5(path)
    np.testing.assert_allclose(ds["Z200"], 10000.0, rtol=1e-6)
    np.testing.assert_allclose(ds["Z1000"], 100.0, rtol=1e-6)


def test_labels_of_text_are_refused(write_file: WriteFile) -> None:
    labels = np.full((7, 8), "AR", dtype=object)
    path = write_file("a.nc", {"TMQ": TMQ, "LABELS": (labels, None, ("lat", "lon"))})
    with pytest.raises(InputError, match=r"a\.nc: LABELS is of type object; expected class numbers 0 to 2"):
        open_cam5(path, labels=True)


# Words for messages


def test_variables_are_described_with_their_levels(write_file: WriteFile) -> None:
    many = np.arange(1000.0, 0.0, -50.0)
    extra = {"level": ("level", [850.0, 500.0], {"units": "hPa"}), "plev": ("plev", many * 100.0, {"units": "Pa"})}
    fields = {
        "msl": (1.0, "Pa"),
        "u": (1.0, "m s-1", ("time", "level", "lat", "lon")),
        "t": (1.0, "K", ("time", "plev", "lat", "lon")),
    }
    files = scan_files([str(write_file("a.nc", fields, extra=extra))])
    assert describe_variables(files) == "msl, t at 20 levels from 100000 to 5000 Pa, u at 850, 500 hPa"
    assert list(names_in(files)) == ["msl", "u", "t"]


def test_of_very_many_variables_the_first_forty_are_described(write_file: WriteFile) -> None:
    files = scan_files([str(write_file("a.nc", {f"v{n:02d}": (1.0, "1") for n in range(43)}))])
    assert describe_variables(files).endswith("v38, v39, and 3 more")


def test_a_file_without_fields_is_described_as_such(write_file: WriteFile) -> None:
    assert describe_variables(scan_files([str(write_file("a.nc", {}))])) == "no variable"
