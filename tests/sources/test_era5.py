from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from climseg.errors import InputError
from climseg.sources.open import open_fields

WriteFile = Callable[..., Path]
open_era5 = partial(open_fields, source="era5")
DIMS = ("valid_time", "latitude", "longitude")
LEVEL_DIMS = ("valid_time", "pressure_level", "latitude", "longitude")
T2M = (288.15, "K")


def test_every_channel_comes_from_its_variable(write_file: WriteFile) -> None:
    levels = {"pressure_level": ("pressure_level", [1000.0, 850.0, 500.0, 200.0], {"units": "hPa"})}
    height = np.array([100.0, 1500.0, 5600.0, 12000.0]).reshape(1, 4, 1, 1)
    surface = write_file(
        "surface.nc",
        {
            "tcwv": (30.0, "kg m**-2"),
            "u10": (3.0, "m s**-1"),
            "v10": (4.0, "m s**-1"),
            "d2m": (293.15, "K"),
            "sp": (101325.0, "Pa"),
            "msl": (101400.0, "Pa"),
            "skt": (290.0, "K"),
            "sst": (np.nan, "K"),
            "t2m": T2M,
        },
        dims=DIMS,
    )
    rain = write_file("rain.nc", {"tp": (0.0036, "m")}, dims=DIMS)
    upper = write_file(
        "upper.nc",
        {
            "u": (height, "m s**-1", LEVEL_DIMS),
            "v": (-height, "m s**-1", LEVEL_DIMS),
            "t": (height, "K", LEVEL_DIMS),
            "z": (height * 9.80665, "m**2 s**-2", LEVEL_DIMS),
        },
        dims=DIMS,
        extra=levels,
    )
    ds = open_era5([surface, rain, upper], accumulation_hours=1.0)
    expected = {
        "TMQ": 30.0, "U850": 1500.0, "V850": -1500.0, "UBOT": 3.0, "VBOT": 4.0, "QREFHT": 0.01446452, "PS": 101325.0,
        "PSL": 101400.0, "T200": 12000.0, "T500": 5600.0, "PRECT": 1e-6, "TS": 290.0, "TREFHT": 288.15,
        "Z1000": 100.0, "Z200": 12000.0, "ZBOT": 63.019,
    }  # fmt: skip
    assert list(ds.data_vars) == list(expected)
    for name, value in expected.items():
        np.testing.assert_allclose(ds[name].values, value, rtol=2e-6, err_msg=name)
    comments = {name: variable.attrs.get("comment", "").split(":")[0] for name, variable in ds.data_vars.items()}
    assert {n for n, c in comments.items() if c == "approximation"} == {"UBOT", "VBOT", "ZBOT"}
    assert {n for n, c in comments.items() if c == "derived"} == {"QREFHT", "PRECT", "Z1000", "Z200"}
    assert ds.attrs == {"source": "netCDF with names of ERA5"}


@pytest.mark.parametrize(
    ("axis", "units", "levels"),
    [
        ("pressure_level", "hPa", [1000.0, 850.0, 500.0]),
        ("level", "millibars", [500, 850, 1000]),
        ("isobaricInhPa", "hPa", [1000.0, 850.0, 500.0]),
        ("plev", "Pa", [50000.0, 85000.0, 100000.0]),
        ("plev", "Pa", [100000.0, 85000.0, 50000.0]),
    ],
)
def test_a_level_is_chosen_by_the_units_of_its_axis_in_either_order(
    write_file: WriteFile, axis: str, units: str, levels: list[float]
) -> None:
    field = np.array(levels).reshape(1, 3, 1, 1)
    dims = (DIMS[0], axis, *DIMS[1:])
    path = write_file("a.nc", {"u": (field, "m s-1", dims)}, dims=DIMS, extra={axis: (axis, levels, {"units": units})})
    assert (open_era5(path)["U850"] == (85000.0 if units == "Pa" else 850.0)).all()


def test_files_of_one_level_each_combine(write_file: WriteFile) -> None:
    paths = []
    for level, name in ((850, "u"), (500, "t")):
        extra = {"level": ((), level, {"units": "millibars"})}
        paths.append(write_file(f"{name}.nc", {name: (level, {"u": "m s-1", "t": "K"}[name])}, dims=DIMS, extra=extra))
    ds = open_era5(paths)
    assert {name: float(v[0, 0, 0]) for name, v in ds.items()} == {"U850": 850.0, "T500": 500.0}


def test_a_level_axis_without_units_is_refused(write_file: WriteFile) -> None:
    path = write_file("a.nc", {"u": (1.0, "m s-1", LEVEL_DIMS)}, dims=DIMS, extra={"pressure_level": [850, 500]})
    with pytest.raises(InputError, match=r"a\.nc: variable pressure_level has no units attribute"):
        open_era5(path)


@pytest.mark.parametrize(("units", "value"), [("m**2 s**-2", 9806.65), ("m", 1000.0), ("gpm", 1000.0), ("dam", 100.0)])
def test_geopotential_and_its_height_are_told_apart_by_units(write_file: WriteFile, units: str, value: float) -> None:
    extra = {"pressure_level": ("pressure_level", [200.0], {"units": "hPa"})}
    path = write_file("a.nc", {"z": (value, units, LEVEL_DIMS)}, dims=DIMS, extra=extra)
    np.testing.assert_allclose(open_era5(path)["Z200"], 1000.0, rtol=1e-6)


def test_the_geopotential_of_the_surface_is_never_taken_for_that_of_a_level(write_file: WriteFile) -> None:
    path = write_file("a.nc", {"z": (1.0, "m**2 s**-2"), "t2m": T2M}, dims=DIMS)
    assert list(open_era5(path).data_vars) == ["TREFHT", "ZBOT"]
    with pytest.raises(InputError, match="Z1000 needs z at 1000 hPa"):
        open_era5(path, channels=["Z1000"])


def test_surface_and_level_geopotential_in_two_files_give_the_one_of_the_level(write_file: WriteFile) -> None:
    surface = write_file("surface.nc", {"z": (1.0, "m**2 s**-2")}, dims=DIMS)
    extra = {"pressure_level": ("pressure_level", [1000.0], {"units": "hPa"})}
    level = write_file("level.nc", {"z": (980.665, "m**2 s**-2", LEVEL_DIMS)}, dims=DIMS, extra=extra)
    np.testing.assert_allclose(open_era5([surface, level])["Z1000"], 100.0, rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "value", "units", "hours"),
    [
        ("tp", 0.0036, "m", 1.0),
        ("tp", 3.6, "mm", 1.0),
        ("tp", 0.0108, "m", 3.0),
        ("mtpr", 0.001, "kg m**-2 s**-1", 1.0),
        ("avg_tprate", 0.001, "kg m-2 s-1", 3.0),
    ],
)
def test_precipitation_becomes_a_rate_in_metres_per_second(
    write_file: WriteFile, name: str, value: float, units: str, hours: float
) -> None:
    ds = open_era5(write_file("a.nc", {name: (value, units)}, dims=DIMS), accumulation_hours=hours)
    np.testing.assert_allclose(ds["PRECT"], 1e-6, rtol=1e-6)


def test_precipitation_of_an_unknown_period_is_left_out_with_a_word_or_refused(
    write_file: WriteFile, caplog: pytest.LogCaptureFixture
) -> None:
    said = "tp is accumulated over a period that the file does not say; give it with source.accumulation_hours"
    path = write_file("a.nc", {"tp": (0.0036, "m"), "msl": (101300.0, "Pa")}, dims=DIMS)
    assert list(open_era5(path).data_vars) == ["PSL"]
    assert said in caplog.text
    for refused in (lambda: open_era5(path, channels=["PRECT"]), lambda: open_era5(path, channels=["PSL", "PRECT"])):
        with pytest.raises(InputError, match=said):
            refused()
    with pytest.raises(InputError, match=said):
        open_era5(write_file("rain.nc", {"tp": (0.0036, "m")}, dims=DIMS))


def test_a_rate_is_taken_before_an_amount_whose_period_must_be_believed(write_file: WriteFile) -> None:
    path = write_file("a.nc", {"tp": (0.0036, "m"), "mtpr": (0.002, "kg m-2 s-1")}, dims=DIMS)
    np.testing.assert_allclose(open_era5(path)["PRECT"], 2e-6, rtol=1e-6)


def test_a_period_of_accumulation_of_nothing_is_refused(write_file: WriteFile) -> None:
    with pytest.raises(InputError, match="accumulation_hours is 0"):
        open_era5(write_file("a.nc", {"tp": (1.0, "m")}, dims=DIMS), accumulation_hours=0)


@pytest.mark.parametrize("versions", [[1, 5], [5, 1], ["0001", "0005"]])
def test_final_values_win_over_preliminary_ones_and_are_never_added(write_file: WriteFile, versions: list[Any]) -> None:
    final, preliminary = np.array([280.0, 281.0, np.nan]), np.array([np.nan, 290.0, 292.0])
    stack = np.stack([final if int(v) == 1 else preliminary for v in versions])  # (expver, time)
    field = stack.T.reshape(3, 2, 1, 1)
    dims = ("time", "expver", "latitude", "longitude")
    path = write_file(
        "a.nc",
        {"t2m": (field, "K", dims)},
        times=["2024-01-01", "2024-01-02", "2024-01-03"],
        dims=("time", "latitude", "longitude"),
        extra={"expver": np.array(versions, dtype=object if isinstance(versions[0], str) else None)},
    )
    np.testing.assert_array_equal(open_era5(path)["TREFHT"][:, 0, 0], np.float32([280.0, 281.0, 292.0]))


def test_an_unknown_version_of_the_experiment_is_refused(write_file: WriteFile) -> None:
    path = write_file("a.nc", {"t2m": (280.0, "K", ("expver", *DIMS))}, dims=DIMS, extra={"expver": [1, 7]})
    with pytest.raises(InputError, match=r"a\.nc: expver holds 1, 7"):
        open_era5(path)


def test_a_scalar_member_and_a_version_per_time_are_no_obstacle(write_file: WriteFile) -> None:
    extra = {"number": 0, "expver": ("valid_time", np.array(["0001", "0005"], dtype=object))}
    path = write_file("a.nc", {"t2m": T2M}, times=["2024-01-01", "2024-01-02"], dims=DIMS, extra=extra)
    ds = open_era5(path)
    assert set(ds.coords) == {"time", "lat", "lon"}
    assert ds.sizes["time"] == 2


def test_an_ensemble_is_refused_with_the_way_to_choose_a_member(write_file: WriteFile) -> None:
    path = write_file("a.nc", {"t2m": (*T2M, ("number", *DIMS))}, dims=DIMS, extra={"number": range(10)})
    with pytest.raises(InputError, match=r"a\.nc: variable t2m has 10 values along 'number'.*ncks -d number,0"):
        open_era5(path)


def test_a_variable_without_units_is_refused(write_file: WriteFile) -> None:
    with pytest.raises(InputError, match=r"a\.nc: variable msl has no units attribute"):
        open_era5(write_file("a.nc", {"msl": (101300.0, None), "t2m": T2M}, dims=DIMS))


@pytest.mark.parametrize(
    ("fields", "channels", "said"),
    [
        ({"t2m": T2M}, ["T500"], "T500 needs t at 500 hPa. It has: t2m."),
        ({"d2m": T2M}, ["QREFHT"], "QREFHT needs d2m and sp. It has: d2m."),
        (
            {"t2m": T2M},
            ["PRECT", "TMQ"],
            "PRECT needs mtpr or tp; TMQ needs tcwv or q on pressure levels or r on ",
        ),
        ({"sst": T2M}, None, "no channel can be had from it by the names of ERA5. It has: sst."),
        ({"PSL": T2M}, None, "It has: PSL. These are names of CAM5: try source=cam5."),
        ({"t2m": T2M}, ["T2M"], "'T2M' is not a channel"),
    ],
)
def test_a_missing_channel_is_refused_with_the_variables_that_would_give_it(
    write_file: WriteFile, fields: dict[str, Any], channels: list[str] | None, said: str
) -> None:
    with pytest.raises(InputError) as error:
        open_era5(write_file("a.nc", fields, dims=DIMS), channels=channels)
    assert said in str(error.value)


def test_the_levels_that_a_file_has_are_listed_when_the_wanted_one_is_missing(write_file: WriteFile) -> None:
    extra = {"pressure_level": ("pressure_level", [1000.0, 850.0], {"units": "hPa"})}
    path = write_file("a.nc", {"t": (1.0, "K", LEVEL_DIMS)}, dims=DIMS, extra=extra)
    with pytest.raises(InputError, match=r"T500 needs t at 500 hPa\. It has: t at 1000, 850 hPa\."):
        open_era5(path, channels=["T500"])


def test_only_the_asked_for_channels_must_have_units_and_equal_times(write_file: WriteFile, tmp_path: Path) -> None:
    write_file("a.nc", {"t2m": T2M, "msl": (1.0, None)}, dims=DIMS)
    write_file("b.nc", {"skt": T2M}, times=["2001-01-02"], dims=DIMS)
    assert list(open_era5(f"{tmp_path}/*.nc", channels=["TREFHT"]).data_vars) == ["TREFHT"]


def test_the_time_option_serves_a_single_file_only(write_file: WriteFile) -> None:
    paths = [write_file(f"{n}.nc", {"t2m": T2M}, times=None, dims=DIMS) for n in "ab"]
    assert open_era5(paths[0], time="2011-10-11").sizes["time"] == 1
    with pytest.raises(InputError, match="the input has 2 files"):
        open_era5(paths, time="2011-10-11")


def test_labels_of_era5_are_refused_with_the_mend() -> None:
    with pytest.raises(InputError, match="carry no labels; make them with a heuristic"):
        open_era5("absent.nc", labels=True)
