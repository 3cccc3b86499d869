"""The small real files, one by one: what is known to be in them, or why they are refused."""

from collections.abc import Callable
from pathlib import Path

import cftime
import numpy as np
import pytest
import xarray as xr

from climseg.channels import CAM5_CHANNELS, CHANNELS
from climseg.errors import InputError
from climseg.sources import grib
from climseg.sources.open import open_fields

WriteTable = Callable[..., Path]


@pytest.fixture(scope="module")
def gfs_grib(shared: Path) -> xr.Dataset:
    return open_fields(shared / "gfs" / "gfs_20111011T00_2p5deg.grb2").load()


@pytest.fixture(scope="module")
def gfs_netcdf(shared: Path) -> xr.Dataset:
    return open_fields(shared / "gfs" / "gfs_20111011T00_2p5deg.nc").load()


def _mean(field: xr.DataArray) -> float:
    """Over the area of the globe."""
    return float(field.weighted(np.cos(np.radians(field["lat"]))).mean())


# gfs/


def test_gfs_grib_has_all_sixteen_channels(gfs_grib: xr.Dataset) -> None:
    assert tuple(gfs_grib.data_vars) == CAM5_CHANNELS
    assert gfs_grib.attrs == {"source": "GFS GRIB"}
    assert list(gfs_grib.indexes["time"]) == [np.datetime64("2011-10-11T00")]
    assert dict(gfs_grib.sizes) == {"time": 1, "lat": 73, "lon": 144}


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("gfs_20111011T00_2p5deg.nc", set(CAM5_CHANNELS) - {"ZBOT"}),
        ("gfs_20041212T12_2p5deg.nc", set(CAM5_CHANNELS) - {"UBOT", "VBOT", "ZBOT"}),
    ],
)
def test_gfs_netcdf_with_names_of_cam5_gives_its_channels_and_the_height_of_the_lowest_level(
    shared: Path, name: str, given: set[str]
) -> None:
    ds = open_fields(shared / "gfs" / name).load()
    assert set(ds.data_vars) == given | {"ZBOT"}
    assert ds.attrs == {"source": "netCDF with names of CAM5"}
    assert {n for n, v in ds.items() if "comment" in v.attrs} == {"ZBOT"}
    assert dict(ds.sizes) == {"time": 1, "lat": 73, "lon": 144}
    # The mass of the atmosphere is known: its mean surface pressure is 985.5 hPa (Trenberth and Smith 2005).
    assert _mean(ds["PS"][0]) == pytest.approx(98550.0, rel=0.005)
    assert open_fields(shared / "gfs" / name, channels=["IVT"])["IVT"].attrs["units"] == "kg m-1 s-1"


@pytest.mark.parametrize("channel", CAM5_CHANNELS)
def test_gfs_in_grib_and_in_netcdf_agree(gfs_grib: xr.Dataset, gfs_netcdf: xr.Dataset, channel: str) -> None:
    here, there = gfs_grib[channel], gfs_netcdf[channel]
    # To float32: the netCDF file was made from this one.
    np.testing.assert_allclose(here, there, rtol=2e-7, atol=1e-7 * float(abs(there).max()))


@pytest.fixture(scope="module")
def gfs_rain(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The messages of precipitation of that file."""
    eccodes = pytest.importorskip("eccodes")
    path: Path = tmp_path_factory.mktemp("rain") / "rain.grb2"
    with (shared / "gfs" / "gfs_20111011T00_2p5deg.grb2").open("rb") as whole, path.open("wb") as part:
        while (message := eccodes.codes_grib_new_from_file(whole)) is not None:
            if eccodes.codes_get(message, "shortName") in ("tp", "prate"):
                eccodes.codes_write(message, part)
            eccodes.codes_release(message)
    return path


def test_an_accumulation_of_gfs_is_divided_by_its_six_hours(gfs_rain: Path, gfs_grib: xr.Dataset) -> None:
    rain, rate = sorted(grib.scan(str(gfs_rain)), key=lambda part: "prate:avg" in part.layout.variables)
    assert rain.seconds is not None
    assert rain.seconds.tolist() == [6 * 3600.0]  # steps 66 to 72
    assert rate.seconds is None  # a mean is no accumulation
    # ERA5's table knows tp and not GFS's prate.
    accumulated = open_fields(gfs_rain, source="era5", channels=["PRECT"])["PRECT"]
    assert accumulated.attrs["comment"].startswith("derived: tp, accumulated")
    # They differ by the steps of their packing: 0.1 kg m-2 in 6 hours, and 1e-5 kg m-2 s-1.
    np.testing.assert_allclose(accumulated, gfs_grib["PRECT"], atol=1e-4 / 21600.0 + 1e-8)


@pytest.mark.parametrize(
    ("lat", "lon", "deepest", "pressure"),
    [
        # IBTrACS has Irwin at 15.1 N 116.5 W and Jova at 16.8 N 106.2 W.
        (slice(10, 22), slice(238, 250), (17.5, 242.5), 99600.0),
        (slice(10, 22), slice(250, 262), (17.5, 255.0), 99000.0),
    ],
    ids=["Irwin", "Jova"],
)
@pytest.mark.parametrize("kind", ["gfs_grib", "gfs_netcdf"])
def test_hurricanes_lie_where_the_forecast_has_them(
    request: pytest.FixtureRequest, kind: str, lat: slice, lon: slice, deepest: tuple[float, float], pressure: float
) -> None:
    box = request.getfixturevalue(kind)["PSL"].isel(time=0).sel(lat=lat, lon=lon)
    lowest = box[box.argmin(...)]
    assert (float(lowest["lat"]), float(lowest["lon"])) == deepest
    assert float(lowest) == pytest.approx(pressure, abs=200.0)


def test_the_atlantic_river_of_2004_is_in_the_transport(shared: Path) -> None:
    transport = open_fields(shared / "gfs" / "gfs_20041212T12_2p5deg.nc", channels=["IVT"])["IVT"][0].load()
    river = transport.sel(lat=slice(25, 45), lon=slice(360 - 72, 360 - 37))
    assert float(river.max()) > 500.0
    assert float(river.mean()) > 2.0 * _mean(transport)


# merra/


def test_merra_gives_water_and_transport_from_greenwich_on(shared: Path) -> None:
    ds = open_fields(shared / "merra" / "IWV_IVT_MERRA_20170228_00.nc", channels=["TMQ", "IVT"]).load()
    assert ds.attrs == {"source": "netCDF with names of MERRA-2"}
    assert dict(ds.sizes) == {"time": 1, "lat": 361, "lon": 576}
    assert (float(ds["lon"][0]), float(ds["lon"][-1])) == (0.0, 359.375)
    assert list(ds.indexes["time"]) == [np.datetime64("2017-02-28T00")]
    # The river into Chile.
    chile = ds["IVT"][0].sel(lat=slice(-61, -32), lon=slice(360 - 106, 360 - 68))
    assert float(chile.max()) == pytest.approx(1596.0, abs=1.0)
    assert "known misprint" in ds["IVT"].attrs["comment"]
    # The columns of the file begin at 180 W.
    with xr.open_dataset(shared / "merra" / "IWV_IVT_MERRA_20170228_00.nc") as raw:
        np.testing.assert_array_equal(ds["TMQ"][0, :, 0], raw["IWV"][0, :, 288])


# era5_cds_new/


def test_era5_of_the_new_store_opens_instant_and_accumulated_files_together(shared: Path) -> None:
    ds = open_fields(f"{shared}/era5_cds_new/*.nc", accumulation_hours=1.0).load()
    assert list(ds.data_vars) == ["UBOT", "VBOT", "PSL", "PRECT"]
    assert ds.attrs == {"source": "ERA5 netCDF"}
    assert list(ds.indexes["time"]) == [np.datetime64("2025-10-22T00")]
    with xr.open_dataset(shared / "era5_cds_new" / "sample_era5_accum.nc") as raw:
        np.testing.assert_allclose(ds["PRECT"][0, ::-1], raw["tp"][0] / 3600.0, rtol=1e-6)


def test_era5_of_the_new_store_does_not_say_the_period_of_precipitation(
    shared: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert list(open_fields(f"{shared}/era5_cds_new/*.nc").data_vars) == ["UBOT", "VBOT", "PSL"]
    assert "PRECT is left out: " in caplog.text
    with pytest.raises(InputError, match=r"tp is accumulated over a period .*source\.accumulation_hours"):
        open_fields(shared / "era5_cds_new" / "sample_era5_accum.nc")


def test_temperature_of_the_sea_surface_alone_is_no_channel(shared: Path) -> None:
    path = shared / "era5_cds_new" / "sample_era5_instant.nc"
    with pytest.raises(InputError, match=r"TS needs skt\. It has: msl, sst, u10, v10, z\."):
        open_fields(path, channels=["TS"])
    # z is the geopotential of the surface.
    with pytest.raises(InputError, match="Z1000 needs z at 1000 hPa"):
        open_fields(path, channels=["Z1000"])


def test_missing_values_over_land_stay_missing(shared: Path, write_table: WriteTable) -> None:
    path = shared / "era5_cds_new" / "sample_era5_instant.nc"
    sea = open_fields(path, source="generic", table=write_table({"TS": "sst"}))["TS"].load()
    with xr.open_dataset(path) as raw:
        np.testing.assert_array_equal(np.isnan(sea[0, ::-1]), np.isnan(raw["sst"][0]))
    assert 0 < int(np.isnan(sea).sum()) < sea.size


# era5_packed/


def test_a_packed_file_with_a_scalar_time_gives_six_channels(shared: Path) -> None:
    path = shared / "era5_packed" / "era5_1995-07-14T12.nc"
    ds = open_fields(path).load()
    assert list(ds.data_vars) == ["UBOT", "VBOT", "QREFHT", "PS", "TREFHT", "ZBOT"]
    assert list(ds.indexes["time"]) == [np.datetime64("1995-07-14T12")]
    with xr.open_dataset(path) as raw:
        for name, stored in (("TREFHT", "t2m"), ("PS", "sp"), ("UBOT", "u10"), ("VBOT", "v10")):
            np.testing.assert_allclose(ds[name][0, ::-1], raw[stored], rtol=1e-6, atol=1e-6)
    # Air holds no more water than saturated air: at 2 m the dew point does not exceed the temperature.
    assert float(ds["QREFHT"].max()) < 0.03
    assert 45.0 < float(ds["ZBOT"].min()) < float(ds["ZBOT"].max()) < 70.0


# era5_zip/


def test_an_archive_of_netcdf_files_gives_all_their_times(shared: Path) -> None:
    ds = open_fields(shared / "era5_zip" / "ERA5_t2m_UK_multi_netcdf.zip").load()
    assert list(ds.indexes["time"].hour) == [0, 1, 2, 3]
    assert dict(ds.sizes) == {"time": 4, "lat": 81, "lon": 81}
    assert 270.0 < float(ds["TREFHT"].min()) < float(ds["TREFHT"].max()) < 290.0  # Britain in December


def test_archives_of_netcdf_and_of_grib_agree(shared: Path) -> None:
    folder = shared / "era5_zip"
    here = open_fields(folder / "ERA5_t2m_UK_multi_netcdf.zip").load()
    there = open_fields(folder / "ERA5_t2m_UK_multi_grib.zip").load()
    assert here["time"].equals(there["time"])
    np.testing.assert_allclose(here["lat"], there["lat"], atol=1e-5)
    np.testing.assert_allclose(here["lon"], there["lon"], atol=1e-5)
    # The netCDF files are int16 of a range of 13 K.
    np.testing.assert_allclose(here["TREFHT"], there["TREFHT"], atol=13.0 / 2**16)


def test_an_archive_of_two_variables_gives_both(shared: Path) -> None:
    path = shared / "era5_zip" / "ERA5_UK_mixed_multi_netcdf.zip"
    ds = open_fields(path, accumulation_hours=1.0).load()
    assert list(ds.data_vars) == ["PRECT", "TREFHT", "ZBOT"]
    assert ds.sizes["time"] == 4


# grib/


def test_four_scanning_orders_of_one_grid_give_four_equal_datasets(shared: Path, write_table: WriteTable) -> None:
    table = write_table({"TREFHT": "avg_t"})
    orders = ("ineg_jneg", "ineg_jpos", "ipos_jneg", "ipos_jpos")
    first, *others = (
        open_fields(shared / "grib" / f"{order}.grib2", source="generic", table=table).load() for order in orders
    )
    assert dict(first.sizes) == {"time": 1, "lat": 73, "lon": 96}
    assert float(first["TREFHT"].std()) > 10.0
    for other in others:
        # The headers differ in the sixth decimal of a degree.
        np.testing.assert_allclose(first["lat"], other["lat"], atol=1e-4)
        np.testing.assert_allclose(first["lon"], other["lon"], atol=1e-4)
        np.testing.assert_array_equal(first["TREFHT"], other["TREFHT"])
        assert first["time"].equals(other["time"])


def test_winds_on_different_levels_are_all_there(shared: Path) -> None:
    path = shared / "grib" / "uv_on_different_levels.grib"
    ds = open_fields(path).load()
    # u on 850 hPa, v on 1000, 700 and 500 hPa alone.
    assert list(ds.data_vars) == ["U850"]
    assert list(ds.indexes["time"]) == [np.datetime64("2017-10-18T18"), np.datetime64("2017-10-19T00")]
    assert float(ds["U850"].std()) > 3.0
    with pytest.raises(InputError) as error:
        open_fields(path, channels=["V850"])
    said = "V850 needs v at 850 hPa. It has: u at 1000, 850, 700, 500, 400 hPa, v at 1000, 700, 500 hPa."
    assert said in str(error.value)


def test_a_grib_message_with_a_scalar_time_is_one_step(shared: Path) -> None:
    ds = open_fields(shared / "grib" / "era5-single-level-scalar-time.grib").load()
    assert list(ds.indexes["time"]) == [np.datetime64("2017-01-01T12")]
    assert dict(ds.sizes) == {"time": 1, "lat": 121, "lon": 201}
    assert 260.0 < float(ds["TREFHT"].min()) < float(ds["TREFHT"].max()) < 300.0


def test_a_forecast_is_dated_by_its_valid_time(shared: Path) -> None:
    ds = open_fields(shared / "grib" / "regular_ll_msl.grib").load()
    assert list(ds.data_vars) == ["PSL"]
    assert list(ds.indexes["time"]) == [np.datetime64("2006-10-07")]  # 72 hours from 4 October
    assert _mean(ds["PSL"][0]) == pytest.approx(101325.0, rel=0.01)


# calendars/


def test_dates_of_the_360_day_calendar_stay_so(shared: Path, write_table: WriteTable) -> None:
    path, table = shared / "calendars" / "A1B_north_america.nc", write_table({"TREFHT": "air_temperature"})
    ds = open_fields(path, source="generic", table=table, channels=["TREFHT"])
    times = ds["time"].values
    assert isinstance(times[0], cftime.Datetime360Day)
    assert ds.sizes["time"] == 240
    # Means of years that begin in December: their middle is the first of June.
    assert {(time.month, time.day) for time in times} == {(6, 1)}
    assert set(np.diff([time.year for time in times])) == {1}
    with xr.open_dataset(path, decode_times=False) as raw:
        np.testing.assert_array_equal(ds["TREFHT"][-1], raw["air_temperature"][-1])
    period = [f"{times[0].year}-02-30", f"{times[0].year + 1}-06-01"]
    assert open_fields(path, source="generic", table=table, channels=["TREFHT"], period=period).sizes["time"] == 2


def test_dates_of_the_noleap_calendar_stay_so(shared: Path, tmp_path: Path) -> None:
    # A single point with members: one of them, on a grid of four such points. (Others lack the first step.)
    path = shared / "calendars" / "atm.20C.hourly6-1990-1995-TS.nc"
    with xr.open_dataset(path, decode_times=False) as raw:
        point = raw["TS"].isel(member_id=-1).drop_vars("member_id").load()
    grid = point.drop_vars(["lat", "lon"]).expand_dims(lat=[0.0, 1.0], lon=[0.0, 1.0]).transpose("time", "lat", "lon")
    grid.to_dataset().to_netcdf(tmp_path / "ts.nc")
    ds = open_fields(tmp_path / "ts.nc", channels=["TS"])
    times = ds["time"].values
    assert isinstance(times[0], cftime.DatetimeNoLeap)
    # Six years of 365 days in steps of six hours, and 1992 has no 29 February.
    assert ds.sizes["time"] == point.size == 6 * 365 * 4 + 1
    assert not [time for time in times if (time.month, time.day) == (2, 29)]
    np.testing.assert_array_equal(ds["TS"][:8, 0, 0], point[:8])


# cfsr/


def test_katrina_turns_where_it_was(shared: Path) -> None:
    ds = open_fields(shared / "cfsr" / "katrina_cfsr_20050828T23.nc").load()
    assert list(ds.data_vars) == ["UBOT", "VBOT"]
    assert ds["UBOT"].attrs["comment"].startswith("approximation: u10 (wind at 10 m)")
    assert list(ds.indexes["time"]) == [np.datetime64("2005-08-28T23")]
    wind = np.hypot(ds["UBOT"], ds["VBOT"])[0]
    assert float(wind.max()) == pytest.approx(39.5, abs=0.1)
    # Relative vorticity by centred differences: its maximum is the centre of the storm.
    metres = np.radians(1.0) * 6371229.0
    dvdx = ds["VBOT"][0].differentiate("lon") / (metres * np.cos(np.radians(ds["lat"])))
    dudy = ds["UBOT"][0].differentiate("lat") / metres
    centre = (dvdx - dudy)[(dvdx - dudy).argmax(...)]
    assert float(centre["lat"]) == pytest.approx(27.4, abs=0.35)
    assert float(centre["lon"]) == pytest.approx(360.0 - 89.5, abs=0.35)


# What is refused


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("refuse/ne120_TCsubset.nc", "has an unstructured grid"),
        ("refuse/small_rotPole_precipitation.nc", "has a rotated pole"),
        ("refuse/tiny.nc", "has no latitude and longitude coordinate"),
        ("refuse/silent_nan.zarr", "variable d2m has no value at all from 1959-01-01 00:00:00 to 1959-01-01 23:00:00"),
        ("era5_packed/eraint_uvz.nc", r"has no time coordinate .*the 2 values along 'month' carry no times"),
        (
            "era5_zip/ERA5_incompatible_mixed_multi_netcdf.zip",
            r"t2m_EUR_00:00\.nc and .*t2m_UK_00:00\.nc have unequal grids: lat is 30 to 70 in 161 points in the first",
        ),
        ("era5_zip/ERA5_t2m_UK_multi_netcdf_no_time_dim.zip", r":t2m_UK_00:00_no_time\.nc: has no time coordinate"),
        ("grib/era5-levels-corrupted.grib", "cannot be read as GRIB .*truncated or damaged"),
        ("deepcam/stats.h5", "holds DeepCAM's statistics, no fields; give samples"),
        ("calendars/atm.20C.hourly6-1990-1995-TS.nc", "lat is a single value"),
        ("calendars/A1B_north_america.nc", "none of its variables has a name of CAM5, ERA5, MERRA-2 or GFS"),
        ("climatenet/expert_points_train.csv.zip", "is a text file that begins with"),
        ("climatenet/cgnet_lr_schedule/config.json", "is a text file that begins with"),
        # A zip archive by its first bytes, of PyTorch.
        ("climatenet/cgnet_lr_schedule/weights.pth", "expected netCDF, HDF5, GRIB, Zarr or a zip of them"),
        ("refuse", r"is a folder; give the files in it, for example '.*/refuse/\*\.nc'"),
    ],
)
def test_files_that_cannot_be_used_are_refused_with_the_reason(shared: Path, path: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        open_fields(shared / path)


@pytest.mark.parametrize("source", ["cam5", "climatenet", "era5", "merra2", "gfs", "deepcam"])
@pytest.mark.parametrize(
    "path",
    [
        "refuse/ne120_TCsubset.nc",
        "refuse/small_rotPole_precipitation.nc",
        "refuse/tiny.nc",
        "refuse/silent_nan.zarr",
        "era5_packed/eraint_uvz.nc",
        "grib/era5-levels-corrupted.grib",
    ],
)
def test_they_are_refused_whatever_source_is_named(shared: Path, path: str, source: str) -> None:
    with pytest.raises(InputError, match=Path(path).name):
        open_fields(shared / path, source=source)


@pytest.mark.parametrize(
    ("path", "source", "said"),
    [
        ("gfs/gfs_20111011T00_2p5deg.nc", "era5", "These are names of CAM5: try source=cam5."),
        ("era5_packed/era5_1995-07-14T12.nc", "cam5", "These are names of ERA5: try source=era5."),
        ("grib/regular_ll_msl.grib", "cam5", "These are names of GFS: try source=gfs."),
    ],
)
def test_the_wrong_source_is_told_the_right_one(shared: Path, path: str, source: str, said: str) -> None:
    with pytest.raises(InputError) as error:
        open_fields(shared / path, source=source)
    assert said in str(error.value)


@pytest.mark.parametrize("channel", CAM5_CHANNELS)
def test_values_of_gfs_are_ones_that_their_units_can_give(gfs_grib: xr.Dataset, channel: str) -> None:
    lowest, highest = CHANNELS[channel].plausible
    values = gfs_grib[channel].values
    assert np.isfinite(values).all()
    assert lowest <= values.min() < values.max() <= highest
