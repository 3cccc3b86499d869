"""Coordinates that are legal and odd: packed, missing, in other units, beyond one turn of the globe."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import pytest

from climseg.errors import InputError
from climseg.sources.open import open_fields

WriteFile = Callable[..., Path]
TMQ = (30.0, "kg m-2")


def test_packed_times_and_latitudes_are_unpacked(write_file: WriteFile) -> None:
    times = np.array(["2001-01-01T12", "2001-01-01T18"], "datetime64[ns]")
    encoding = {
        "time": {"scale_factor": 6.0, "add_offset": 12.0, "units": "hours since 2001-01-01"},
        "lat": {"scale_factor": 0.01},
    }
    path = write_file("a.nc", {"TMQ": TMQ}, times=times)
    with netCDF4.Dataset(path) as source, netCDF4.Dataset(path.with_name("b.nc"), "w") as packed:
        for name, size in (("time", 2), ("lat", 7), ("lon", 8)):
            packed.createDimension(name, size)
        for name in ("time", "lat"):
            variable = packed.createVariable(name, "i2", (name,))
            variable.setncatts(
                {k: v for k, v in encoding[name].items() if k in ("scale_factor", "add_offset", "units")}
            )
            variable[:] = np.array([12, 18]) if name == "time" else source["lat"][:]
        packed.createVariable("lon", "f8", ("lon",))[:] = source["lon"][:]
        packed.createVariable("TMQ", "f4", ("time", "lat", "lon"))[:] = 30.0
        packed["TMQ"].units = "kg m-2"
    ds = open_fields(path.with_name("b.nc"), source="cam5")
    np.testing.assert_array_equal(ds["time"], times)
    np.testing.assert_allclose(ds["lat"], np.linspace(-90, 90, 7))


@pytest.mark.parametrize(("dtype", "fill"), [("i4", -999), ("f8", -999.0), ("i4", None)])
def test_a_missing_time_is_refused_and_never_a_date(write_file: WriteFile, dtype: str, fill: Any) -> None:
    path = write_file("a.nc", {"TMQ": TMQ})
    with netCDF4.Dataset(path.with_name("b.nc"), "w") as file:
        for name, size in (("time", None), ("lat", 7), ("lon", 8)):
            file.createDimension(name, size)
        time = file.createVariable("time", dtype, ("time",))
        time.units = "hours since 1900-01-01"
        file.createVariable("lat", "f8", ("lat",))[:] = np.linspace(-90, 90, 7)
        file.createVariable("lon", "f8", ("lon",))[:] = np.arange(0, 360, 45.0)
        tmq = file.createVariable("TMQ", "f4", ("time", "lat", "lon"))
        tmq.units = "kg m-2"
        tmq[:] = np.full((2, 7, 8), 30.0)
        if fill is not None:
            time.missing_value = np.dtype(dtype).type(fill)
            time.set_auto_mask(False)
            time[:] = [fill, 0]
        else:
            time[1] = 0  # the first was never written
    with pytest.raises(InputError, match=r"b\.nc: time holds missing values"):
        open_fields(path.with_name("b.nc"), source="cam5")


def test_whole_numbers_that_were_never_written_are_missing(tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    with netCDF4.Dataset(path, "w") as file:
        for name, size in (("time", None), ("lat", 3), ("lon", 4)):
            file.createDimension(name, size)
        time = file.createVariable("time", "f8", ("time",))
        time.units = "hours since 1900-01-01"
        time[:] = [0, 1]
        file.createVariable("lat", "f8", ("lat",))[:] = [-60, 0, 60]
        file.createVariable("lon", "f8", ("lon",))[:] = [0, 90, 180, 270]
        tmq = file.createVariable("TMQ", "i2", ("time", "lat", "lon"))
        tmq.setncatts({"units": "kg m-2", "scale_factor": 0.001, "add_offset": 33.0})
        tmq[0] = np.full((3, 4), 30.0)
    ds = open_fields(path, source="cam5")
    np.testing.assert_allclose(ds["TMQ"][0], 30.0, atol=1e-3)
    with pytest.raises(InputError, match="TMQ has no value at all at 1900-01-01 01:00:00"):
        ds["TMQ"][1].load()


@pytest.mark.parametrize("lon", [np.arange(-10.0, 361.0, 10.0), np.arange(0.0, 371.0, 10.0)])
def test_columns_that_come_again_after_a_turn_are_left_out(write_file: WriteFile, lon: Any) -> None:
    ds = open_fields(write_file("a.nc", {"TMQ": (np.cos(np.radians(lon)), "kg m-2")}, lon=lon), source="cam5")
    np.testing.assert_allclose(ds["lon"], np.arange(0.0, 360.0, 10.0))
    np.testing.assert_allclose(ds["TMQ"][0, 0], np.cos(np.radians(np.arange(0, 360, 10))), atol=1e-6)


@pytest.mark.parametrize("units", ["radians", "degrees_west"])
def test_coordinates_in_other_units_than_degrees_are_refused(write_file: WriteFile, units: str) -> None:
    path = write_file("a.nc", {"TMQ": TMQ}, attributes={"lon": {"units": units}})
    with pytest.raises(InputError, match=f"a\\.nc: lon is in '{units}'; expected degrees"):
        open_fields(path, source="cam5")


@pytest.mark.parametrize(
    ("hyam", "hyam_units", "p0", "p0_units"),
    [
        ([0.2, 0.0], "1", 100000.0, "Pa"),
        ([0.2, 0.0], "1", 1000.0, "hPa"),
        ([20000.0, 0.0], "Pa", 100000.0, "Pa"),
        ([200.0, 0.0], "hPa", 100000.0, "Pa"),
    ],
)
def test_hybrid_coefficients_count_by_their_units(
    write_file: WriteFile, hyam: list[float], hyam_units: str, p0: float, p0_units: str
) -> None:
    # Levels at 200 hPa and at the surface pressure; the wind at 850 hPa linear in log(pressure) between them.
    extra = {
        "hyam": ("lev", hyam, {"units": hyam_units}),
        "hybm": ("lev", [0.0, 1.0]),
        "P0": ((), p0, {"units": p0_units}),
    }
    u = np.array([0.0, 10.0]).reshape(1, 2, 1, 1)
    fields = {"U": (u, "m s-1", ("time", "lev", "lat", "lon")), "PS": (1e5, "Pa")}
    ds = open_fields(write_file("a.nc", fields, extra=extra), source="cam5", channels=["U850", "UBOT"])
    np.testing.assert_allclose(ds["U850"], 10.0 * np.log(85 / 20) / np.log(100 / 20), rtol=1e-5)
    assert (ds["UBOT"] == 10.0).all()
