from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest
import xarray as xr

from climseg.grid import EARTH_RADIUS, GRAVITY
from climseg.sources.derive import (
    LOWEST_LEVEL,
    column_water_vapour,
    hybrid_pressure,
    integrated_vapour_transport,
    liquid_water_rate,
    lowest_level_height,
    rate_from_accumulation,
    specific_humidity,
    specific_humidity_from_relative,
    to_pressure_level,
    transport_magnitude,
    vorticity,
    wind_speed,
)

FIELD = ("time", "lat", "lon")
COLUMN = ("time", "lev", "lat", "lon")
TIMES, LAT, LON = 4, np.linspace(-90.0, 90.0, 7), np.arange(0.0, 360.0, 45.0)
# CAM5's: of a level near 200 hPa, of three between, of the lowest.
HYAM = xr.DataArray([0.19, 0.12, 0.05, 0.01, 0.0], dims="lev")
HYBM = xr.DataArray([0.01, 0.25, 0.65, 0.90, LOWEST_LEVEL], dims="lev")


def field(value: Any) -> xr.DataArray:
    """A field of one cell, float32."""
    return xr.DataArray(np.full((1, 1, 1), value, dtype=np.float32), dims=FIELD)


def column(values: Any) -> xr.DataArray:
    """A column of one cell, float32."""
    return xr.DataArray(np.asarray(values, dtype=np.float32).reshape(1, -1, 1, 1), dims=COLUMN)


def hpa(*levels: float) -> np.ndarray:
    return np.array(levels) * 100.0


@pytest.fixture(scope="module")
def made() -> xr.Dataset:
    """Fields and columns of four times, with values of the right size and no shape."""
    rng = np.random.default_rng(5)
    coordinates = {"time": np.arange(TIMES), "lat": LAT, "lon": LON}

    def random(dims: tuple[str, ...], low: float, high: float) -> tuple[tuple[str, ...], np.ndarray]:
        shape = (TIMES, 5, 7, 8) if dims == COLUMN else (TIMES, 7, 8)
        return dims, rng.uniform(low, high, shape).astype(np.float32)

    return xr.Dataset(
        {
            "q": random(COLUMN, 0.0, 0.02),
            "r": random(COLUMN, 0.0, 100.0),
            "t": random(COLUMN, 220.0, 300.0),
            "u": random(COLUMN, -30.0, 30.0),
            "v": random(COLUMN, -30.0, 30.0),
            "ps": random(FIELD, 6e4, 1.03e5),
            "tp": random(FIELD, 0.0, 0.01),
            "east": random(FIELD, -30.0, 30.0),
            "north": random(FIELD, -30.0, 30.0),
        },
        coordinates,
    )


LEVELS = hpa(200, 400, 600, 850, 1000)


def hybrid(ds: xr.Dataset) -> xr.DataArray:
    return hybrid_pressure(HYAM, HYBM, 1e5, ds["ps"])


EVERY_FORMULA: dict[str, Callable[[xr.Dataset], xr.DataArray]] = {
    "specific humidity": lambda ds: specific_humidity(ds["t"].isel(lev=0), ds["ps"]),
    "lowest level height": lambda ds: lowest_level_height(ds["t"].isel(lev=0)),
    "specific humidity from relative": lambda ds: specific_humidity_from_relative(ds["r"], ds["t"], LEVELS),
    "the same on hybrid levels": lambda ds: specific_humidity_from_relative(ds["r"], ds["t"], hybrid(ds)),
    "column": lambda ds: column_water_vapour(ds["q"], LEVELS),
    "column to the surface": lambda ds: column_water_vapour(ds["q"], LEVELS, ds["ps"]),
    "column of hybrid levels": lambda ds: column_water_vapour(ds["q"], hybrid(ds), ds["ps"]),
    "transport": lambda ds: integrated_vapour_transport(ds["q"], ds["u"], ds["v"], LEVELS, ds["ps"]),
    "transport of hybrid levels": lambda ds: integrated_vapour_transport(ds["q"], ds["u"], ds["v"], hybrid(ds)),
    "transport magnitude": lambda ds: transport_magnitude(ds["east"], ds["north"]),
    "wind speed": lambda ds: wind_speed(ds["east"], ds["north"]),
    "vorticity": lambda ds: vorticity(ds["east"], ds["north"]),
    "hybrid pressure": hybrid,
    "pressure level of hybrid levels": lambda ds: to_pressure_level(ds["u"], hybrid(ds), 85000.0),
    "pressure level of pressure levels": lambda ds: to_pressure_level(ds["u"], LEVELS, 70000.0),
    "liquid water": lambda ds: liquid_water_rate(ds["tp"]),
    "rate": lambda ds: rate_from_accumulation(ds["tp"], 3600.0),
    "rate of unequal periods": lambda ds: rate_from_accumulation(ds["tp"], np.arange(1.0, TIMES + 1.0)),
}


def refuse(*_: Any, **__: Any) -> None:
    raise AssertionError("something was computed")


@pytest.mark.parametrize("formula", EVERY_FORMULA.values(), ids=EVERY_FORMULA)
def test_every_formula_stays_lazy_and_float32_and_gives_by_chunks_what_it_gives_at_once(
    made: xr.Dataset, formula: Callable[[xr.Dataset], xr.DataArray]
) -> None:
    whole = formula(made)
    with dask.config.set(scheduler=refuse):
        lazy = formula(made.chunk({"time": 1, "lev": 2, "lat": 3}))
    assert lazy.chunksizes["time"] == (1,) * TIMES
    assert whole.dtype == lazy.dtype == np.float32
    assert whole.dims == lazy.dims == (COLUMN if "lev" in whole.dims else FIELD)
    assert {"lat", "lon", "time"} <= set(lazy.coords)
    computed = lazy.compute(scheduler="sync")
    assert computed.dtype == np.float32
    np.testing.assert_array_equal(computed, whole)
    assert np.isfinite(whole).all()


@pytest.mark.parametrize("name", [n for n in EVERY_FORMULA if n != "vorticity"])
def test_a_missing_value_makes_its_own_cell_missing_and_no_other(made: xr.Dataset, name: str) -> None:
    whole = EVERY_FORMULA[name](made)
    missing = made.copy()
    for variable in made.data_vars:
        missing[variable] = made[variable].where((made["lat"] != 0.0) | (made["lon"] != 90.0) | (made["time"] != 2))
    result = EVERY_FORMULA[name](missing)
    here = {"time": 2, "lat": 3, "lon": 2}
    assert np.isnan(result.isel(here)).all()
    assert (result.isnull().sum() == result.isel(here).size).all()
    assert (np.isnan(result) | (result == whole)).all()


# Humidity


def test_specific_humidity_of_saturated_air_at_20_degrees() -> None:
    # By hand: 17.502 * (293.15 - 273.16) / (293.15 - 32.19) = 1.340684; e = 611.21 * exp(1.340684) = 2335.8355 Pa
    # (the CRC Handbook has 2339 Pa); q = 0.621981 * 2335.8355 / (101325 - 0.378019 * 2335.8355) = 0.01446452.
    q = specific_humidity(xr.DataArray(293.15), xr.DataArray(101325.0))
    assert float(q) == pytest.approx(0.01446452, rel=1e-6)


def test_the_lowest_level_lies_63_metres_up_in_the_standard_atmosphere() -> None:
    # By hand: 287.0423 * 288.15 / 9.80665 = 8434.2 m, times ln(1 / 0.992556) = 0.00747184.
    assert float(lowest_level_height(xr.DataArray(288.15))) == pytest.approx(63.019, abs=0.001)


def test_saturated_air_has_the_specific_humidity_of_its_temperature_as_dew_point() -> None:
    q = specific_humidity_from_relative(field(100.0), field(293.15), field(101325.0))
    assert q.item() == pytest.approx(0.01446452, rel=1e-5)


def test_specific_humidity_at_half_saturation() -> None:
    # By hand, with e_s of above: e = 1167.9178 Pa; 0.621981 e / (85000 - 0.378019 e) = 726.4227 / 84558.5 = 0.00859077
    q = specific_humidity_from_relative(column([50.0, 50.0]), column([293.15, 293.15]), hpa(850, 700))
    assert q[0, 0].item() == pytest.approx(0.00859077, rel=1e-5)
    assert q[0, 1].item() > q[0, 0].item()


@pytest.mark.filterwarnings("error")
def test_perfectly_dry_air_has_no_vapour() -> None:
    q = specific_humidity_from_relative(field(0.0), field(220.0), field(1e4))
    assert q.item() == 0.0


# Integrals over the column


@pytest.mark.parametrize("levels", [(1000, 850, 500, 200), (200, 500, 850, 1000), (500, 1000, 200, 850)])
def test_a_constant_humidity_weighs_q_times_dp_over_g(levels: tuple[float, ...]) -> None:
    # By hand: 0.005 * 80000 / 9.80665 = 40.78865
    assert column_water_vapour(column([0.005] * 4), hpa(*levels)).item() == pytest.approx(40.78865, rel=1e-6)


@pytest.mark.parametrize("order", [1, -1])
def test_a_humidity_linear_in_pressure_is_integrated_exactly(order: int) -> None:
    p = hpa(200, 300, 550, 900, 1000)[::order]
    # q = 2e-7 p: the integral is 1e-7 (p1^2 - p0^2) / g, up to the lowest level.
    exact = 1e-7 * (1e5**2 - 2e4**2) / GRAVITY
    assert column_water_vapour(column(2e-7 * p), p).item() == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("below", [99.0, np.nan])
def test_levels_below_ground_do_not_count_and_the_lowest_one_above_reaches_to_the_surface(
    order: int, below: float
) -> None:
    p, q = hpa(300, 500, 700, 850, 1000)[::order], column([0.001, 0.003, 0.005, below, below][::order])
    # By hand, to 800 hPa: 0.002 * 20000 + 0.004 * 20000 + 0.005 * 10000 = 170 Pa.
    assert column_water_vapour(q, p, field(80000.0)).item() == pytest.approx(170.0 / GRAVITY, rel=1e-6)
    # A level on the surface counts: to 700 hPa, 120 Pa.
    assert column_water_vapour(q, p, field(70000.0)).item() == pytest.approx(120.0 / GRAVITY, rel=1e-6)


def test_a_surface_below_the_lowest_level_extends_that_level() -> None:
    # By hand: 0.004 * 50000 + 0.005 * 1300 = 206.5 Pa.
    total = column_water_vapour(column([0.005, 0.003]), hpa(1000, 500), field(101300.0))
    assert total.item() == pytest.approx(206.5 / GRAVITY, rel=1e-6)


def test_without_a_surface_levels_below_ground_count_like_others() -> None:
    q = column([0.004, 0.004, np.nan])
    assert np.isnan(column_water_vapour(q, hpa(500, 850, 1000)).item())
    assert column_water_vapour(q, hpa(500, 850, 1000), field(9e4)).item() == pytest.approx(160.0 / GRAVITY, rel=1e-6)


@pytest.mark.parametrize("below", [0.004, np.nan])
def test_a_column_wholly_below_ground_is_missing(below: float) -> None:
    assert np.isnan(column_water_vapour(column([below] * 2), hpa(850, 1000), field(60000.0)).item())


def test_a_level_missing_above_ground_makes_the_column_missing() -> None:
    for gap in range(3):
        q = column(np.where(np.arange(4) == gap, np.nan, 0.004))
        assert np.isnan(column_water_vapour(q, hpa(300, 500, 850, 1000), field(90000.0)).item()), gap


def test_each_cell_has_its_own_surface() -> None:
    q = xr.DataArray(np.full((1, 2, 1, 2), 0.005, np.float32), dims=COLUMN)
    surface = xr.DataArray(np.array([[[100000.0, 60000.0]]], np.float32), dims=FIELD)
    total = column_water_vapour(q, hpa(200, 900), surface)
    np.testing.assert_allclose(total[0, 0], 0.005 * np.array([80000.0, 40000.0]) / GRAVITY, rtol=1e-6)


@pytest.mark.parametrize("order", [1, -1])
def test_hybrid_levels_integrate_to_the_surface_of_each_cell(made: xr.Dataset, order: int) -> None:
    pressure = hybrid(made).isel(lev=slice(None, None, order))
    total = column_water_vapour(xr.full_like(pressure, 0.005), pressure, made["ps"])
    np.testing.assert_allclose(total, 0.005 * (made["ps"] - hybrid(made).isel(lev=0)) / GRAVITY, rtol=1e-5)


@pytest.mark.parametrize("order", [1, -1])
def test_a_uniform_wind_transports_the_column_with_its_speed(order: int) -> None:
    p, q = hpa(300, 500, 850, 1000)[::order], column([0.001, 0.002, 0.007, 0.012][::order])
    transport = integrated_vapour_transport(q, column([-3.0] * 4), column([4.0] * 4), p, field(95000.0))
    assert transport.item() == pytest.approx(5.0 * column_water_vapour(q, p, field(95000.0)).item(), rel=1e-6)


def test_opposite_winds_cancel_in_the_transport() -> None:
    q, u = column([0.005, 0.005, 0.005]), column([10.0, 0.0, -10.0])
    assert integrated_vapour_transport(q, u, column([0.0] * 3), hpa(400, 600, 800)).item() == 0.0


def test_transport_of_a_constant_flux() -> None:
    # By hand: 0.01 * 20 * 70000 / 9.80665 = 1427.603
    q, u = column([0.01, 0.01]), column([20.0, 20.0])
    assert integrated_vapour_transport(q, u, u * 0.0, hpa(1000, 300)).item() == pytest.approx(1427.603, rel=1e-6)


def test_magnitudes_are_those_of_the_triangle_3_4_5() -> None:
    assert transport_magnitude(field(-300.0), field(400.0)).item() == 500.0
    assert wind_speed(field(3.0), field(-4.0)).item() == 5.0


# Vorticity


@pytest.mark.parametrize("order", [1, -1])
def test_vorticity_of_a_turning_sphere_is_twice_its_rate_times_the_sine_of_latitude(order: int) -> None:
    lat, lon, rate = np.linspace(-90.0, 90.0, 181)[::order], np.arange(0.0, 360.0, 2.0), 7.292e-5
    eastward = np.broadcast_to(rate * EARTH_RADIUS * np.cos(np.radians(lat))[None, :, None], (2, 181, 180))
    u = xr.DataArray(eastward.astype(np.float32), dims=FIELD, coords={"lat": lat, "lon": lon})
    zeta = vorticity(u, u * 0.0)
    exact = 2.0 * rate * np.sin(np.radians(lat))[None, :, None] + 0.0 * eastward
    np.testing.assert_allclose(zeta, exact, atol=2e-3 * rate)


# Hybrid levels


def test_the_lowest_level_of_cam5_is_0_7_percent_above_the_ground() -> None:
    # By hand: 0.992556 * 101325 = 100570.74; and 0.19 * 100000 + 0.01 * 101325 = 20013.25.
    pressure = hybrid_pressure(HYAM, HYBM, 1e5, field(101325.0))
    assert pressure.dims == COLUMN
    assert pressure.isel(lev=-1).item() == pytest.approx(100570.74, abs=0.01)
    assert pressure.isel(lev=0).item() == pytest.approx(20013.25, abs=0.01)


@pytest.mark.parametrize("order", [1, -1])
def test_a_field_linear_in_the_logarithm_of_pressure_is_interpolated_exactly(made: xr.Dataset, order: int) -> None:
    pressure = hybrid(made).isel(lev=slice(None, None, order))
    values = (30.0 - 7.5 * xr.ufuncs.log(pressure / 1e5)).astype(np.float32)
    for level in (50000.0, 40000.0):
        np.testing.assert_allclose(
            to_pressure_level(values, pressure, level), 30.0 - 7.5 * np.log(level / 1e5), rtol=1e-6
        )


def test_the_geometric_mean_of_two_pressures_has_the_mean_of_their_values() -> None:
    middle = to_pressure_level(column([2.0, 8.0, 100.0]), hpa(400, 900, 1000), 60000.0)
    assert middle.item() == pytest.approx(5.0, rel=1e-6)


@pytest.mark.parametrize("levels", [(300, 850, 950), (950, 850, 300)])
def test_below_ground_the_lowest_level_stands_and_above_the_top_nothing(levels: tuple[float, ...]) -> None:
    values = column([float(level) for level in levels])
    assert to_pressure_level(values, hpa(*levels), 100000.0).item() == 950.0
    assert np.isnan(to_pressure_level(values, hpa(*levels), 20000.0).item())


def test_heights_are_clipped_at_the_terrain() -> None:
    # A plateau at 600 hPa: Z1000 and Z850 are the height of CAM5's lowest level over it.
    pressure = hybrid_pressure(HYAM, HYBM, 1e5, field(60000.0))
    heights = column([12000.0, 9000.0, 6500.0, 4900.0, 4300.0])
    for level in (100000.0, 85000.0):
        assert to_pressure_level(heights, pressure, level).item() == 4300.0


@pytest.mark.parametrize("levels", [(300, 850, 950), (950, 850, 300)])
def test_a_level_that_the_column_has_is_taken_as_it_is(levels: tuple[float, ...]) -> None:
    for missing in (300.0, 950.0):
        values = column([np.nan if level == missing else level for level in levels])
        assert to_pressure_level(values, hpa(*levels), 85000.0).item() == 850.0


def test_a_missing_level_makes_what_lies_between_it_and_the_next_missing() -> None:
    values = column([1.0, 2.0, np.nan])
    assert np.isnan(to_pressure_level(values, hpa(300, 850, 1000), 90000.0).item())
    assert np.isnan(to_pressure_level(values, hpa(300, 850, 1000), 101000.0).item())
    assert to_pressure_level(values, hpa(300, 850, 1000), 50000.0).item() < 2.0


# Precipitation


def test_3_6_millimetres_in_an_hour_are_a_millionth_of_a_metre_per_second() -> None:
    assert liquid_water_rate(field(0.001)).item() == pytest.approx(1e-6, rel=1e-6)
    assert rate_from_accumulation(field(0.0036), 3600.0).item() == pytest.approx(1e-6, rel=1e-6)


@pytest.mark.parametrize("kind", [np.asarray, lambda seconds: xr.DataArray(seconds, dims="time")])
def test_each_time_has_its_own_period(kind: Any) -> None:
    depth = xr.DataArray(np.full((2, 1, 1), 0.0108, np.float32), dims=FIELD)
    rate = rate_from_accumulation(depth, kind([10800.0, 21600.0]))
    np.testing.assert_allclose(rate[:, 0, 0], [1e-6, 5e-7], rtol=1e-6)


def test_results_do_not_carry_the_units_of_their_arguments() -> None:
    rain = field(0.001).assign_attrs(units="kg m-2 s-1")
    assert not liquid_water_rate(rain).attrs
    kelvin = field(293.15).assign_attrs(units="K")
    assert not specific_humidity_from_relative(field(50.0), kelvin, field(1e5)).attrs


# A forecast of GFS: levels of relative humidity and wind, and what the model itself says of the column


@pytest.fixture(scope="module")
def forecast(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[xr.Dataset, xr.Dataset]:
    """Columns of 25 levels with the surface pressure, and the column's water and transport as published."""
    eccodes = pytest.importorskip("eccodes")
    folder: Path = tmp_path_factory.mktemp("forecast")
    with (shared / "gfs" / "gfs_20111011T00_2p5deg.grb2").open("rb") as whole:
        while (message := eccodes.codes_grib_new_from_file(whole)) is not None:
            name, kind = (eccodes.codes_get(message, key) for key in ("shortName", "typeOfLevel"))
            if (name, kind) in ((n, "isobaricInhPa") for n in "rtu") or (name, kind) == ("sp", "surface"):
                with (folder / name).open("ab") as part:
                    eccodes.codes_write(message, part)
            eccodes.codes_release(message)

    def read(name: str, message: str) -> xr.DataArray:
        ds = xr.open_dataset(
            folder / message, engine="cfgrib", backend_kwargs={"indexpath": ""}, decode_timedelta=False
        )
        variable = ds[name]
        names = {"latitude": "lat", "longitude": "lon", "isobaricInhPa": "lev"}
        named = variable.rename({old: new for old, new in names.items() if old in variable.dims})
        return named.reset_coords(drop=True).expand_dims("time").sortby("lat")

    r = read("r", "r")
    # u and v share their messages.
    columns = {name: read(name, message).sel(lev=r["lev"]) for name, message in (("t", "t"), ("u", "u"), ("v", "u"))}
    ours = xr.Dataset({"r": r, "sp": read("sp", "sp")} | columns)
    ours["q"] = specific_humidity_from_relative(ours["r"], ours["t"], ours["lev"].values * 100.0)
    return ours, xr.open_dataset(shared / "gfs" / "gfs_20111011T00_2p5deg.nc").drop_vars("time")


def agreement(ours: xr.DataArray, theirs: xr.DataArray) -> tuple[float, float]:
    """Correlation, and the mean difference over the mean, of all cells by their area."""
    area = np.cos(np.radians(theirs["lat"]))
    correlation = xr.corr(ours, theirs, weights=area.broadcast_like(theirs))
    difference = abs(ours - theirs).weighted(area).mean() / theirs.weighted(area).mean()
    return float(correlation), float(difference)


def test_water_of_the_column_is_that_of_gfs(forecast: tuple[xr.Dataset, xr.Dataset]) -> None:
    ours, theirs = forecast
    levels = ours["lev"].values * 100.0
    correlation, difference = agreement(column_water_vapour(ours["q"], levels, ours["sp"]), theirs["TMQ"])
    assert correlation > 0.999
    assert difference < 0.03
    # Levels below ground are no vapour: counting them costs most of the agreement.
    _, careless = agreement(column_water_vapour(ours["q"], levels), theirs["TMQ"])
    assert careless > 3.0 * difference


def test_transport_is_that_of_another_program_on_the_same_levels(forecast: tuple[xr.Dataset, xr.Dataset]) -> None:
    ours, theirs = forecast
    low = ours.sel(lev=ours["lev"] >= 300.0)  # what the file was made from, the ground left out of account
    transport = integrated_vapour_transport(low["q"], low["u"], low["v"], low["lev"].values * 100.0)
    correlation, difference = agreement(transport, theirs["IVT"])
    assert correlation > 0.9999
    assert difference < 0.005
    to_surface = integrated_vapour_transport(ours["q"], ours["u"], ours["v"], ours["lev"].values * 100.0, ours["sp"])
    assert agreement(to_surface, theirs["IVT"])[0] > 0.98
