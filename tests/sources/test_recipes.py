"""Channels that files do not hold, with numbers by hand."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import pytest
import xarray as xr

from climseg.channels import CHANNELS
from climseg.errors import InputError
from climseg.sources.open import open_fields
from climseg.sources.recipes import EQUIVALENTS, INGREDIENTS, RECIPES, Field

WriteFile = Callable[..., Path]
open_cam5 = partial(open_fields, source="cam5")
open_era5 = partial(open_fields, source="era5")
GRAVITY = 9.80665
LEVEL_DIMS = ("time", "level", "lat", "lon")
HYBRID_DIMS = ("time", "lev", "lat", "lon")


def test_every_channel_has_its_own_variable_as_the_first_way() -> None:
    assert set(RECIPES) == set(CHANNELS)
    for name, ways in RECIPES.items():
        assert ways[0].needs == (Field(name),)
        assert not ways[0].comment


def test_what_is_needed_is_a_channel_or_an_ingredient() -> None:
    needs = [need for ways in RECIPES.values() for way in ways for need in way.needs]
    assert {n.name for n in needs if isinstance(n, Field)} <= {*CHANNELS, *INGREDIENTS}
    assert {n for n in needs if isinstance(n, str)} <= set(CHANNELS)
    assert set(EQUIVALENTS) <= {*CHANNELS, *INGREDIENTS}


def _only(ds: xr.Dataset, name: str) -> float:
    """The value of a channel that is the same everywhere."""
    values = ds[name].values
    np.testing.assert_allclose(values, values.flat[0], rtol=1e-6)
    return float(values.flat[0])


# Hybrid levels of CAM


@pytest.fixture
def write_hybrid(write_file: WriteFile) -> WriteFile:
    """A function that writes columns on three hybrid levels: p = hyam * P0 + hybm * PS, P0 = 1000 hPa.

    Over PS = 1000 hPa they are 300, 800 and 990 hPa; over 600 hPa they are 260, 480 and 594 hPa.
    """

    def write(fields: dict[str, tuple[Any, ...]], ps: float | None = 100000.0, order: int = 1, **options: Any) -> Path:
        columns = {
            name: (np.reshape(values, (1, 3, 1, 1))[:, ::order], units, HYBRID_DIMS)
            for name, (values, units) in fields.items()
        }
        surface = {} if ps is None else {"PS": (ps, "Pa")}
        levels = {
            "lev": ("lev", np.array([300.0, 800.0, 990.0])[::order], {"units": "hPa"}),
            "hyam": ("lev", np.array([0.2, 0.0, 0.0])[::order]),
            "hybm": ("lev", np.array([0.1, 0.8, 0.99])[::order]),
            "P0": ((), 100000.0, {"units": "Pa"}),
        }
        return write_file("hybrid.nc", columns | surface, extra=levels, **options)

    return write


@pytest.mark.parametrize("order", [1, -1])
def test_hybrid_levels_are_interpolated_linearly_in_the_logarithm_of_pressure(
    write_hybrid: WriteFile, order: int
) -> None:
    path = write_hybrid({"U": ([30.0, 8.0, 5.0], "m/s"), "T": ([220.0, 280.0, 290.0], "K")}, order=order)
    ds = open_cam5(path, channels=["U850", "T500", "UBOT"])
    # By hand: 8 - 3 * ln(850 / 800) / ln(990 / 800), and 220 + 60 * ln(500 / 300) / ln(800 / 300).
    assert _only(ds, "U850") == pytest.approx(8.0 - 3.0 * 0.0606246 / 0.2130932, rel=1e-5)
    assert _only(ds, "T500") == pytest.approx(220.0 + 60.0 * 0.5108256 / 0.9808293, rel=1e-5)
    assert ds["U850"].attrs["comment"] == (
        "derived: U on model levels, interpolated to 850 hPa linearly in log(pressure)"
    )
    # The lowest level, whichever end of the axis it is.
    assert _only(ds, "UBOT") == 5.0
    assert ds["UBOT"].attrs["comment"] == "derived: U on lowest model level"


def test_below_ground_the_lowest_hybrid_level_stands(write_hybrid: WriteFile) -> None:
    path = write_hybrid({"U": ([30.0, 8.0, 5.0], "m/s"), "Z3": ([10000.0, 5000.0, 4300.0], "m")}, ps=60000.0)
    ds = open_cam5(path, channels=["U850", "Z1000"])
    assert _only(ds, "U850") == 5.0
    assert _only(ds, "Z1000") == 4300.0


def test_the_column_over_hybrid_levels_ends_at_the_surface(write_hybrid: WriteFile) -> None:
    q, u, v = ([0.003] * 3, "kg/kg"), ([6.0] * 3, "m/s"), ([-8.0] * 3, "m/s")
    ds = open_cam5(write_hybrid({"Q": q, "U": u, "V": v}), channels=["TMQ", "IVT"])
    # By hand: from 300 hPa to the surface at 1000 hPa, 0.003 * 70000 / g; the wind is 10 m/s.
    assert _only(ds, "TMQ") == pytest.approx(0.003 * 70000.0 / GRAVITY, rel=1e-5)
    assert _only(ds, "IVT") == pytest.approx(0.03 * 70000.0 / GRAVITY, rel=1e-5)
    assert ds["TMQ"].attrs["comment"] == "derived: Q on model levels, integrated"


def test_hybrid_levels_need_the_surface_pressure(write_hybrid: WriteFile) -> None:
    path = write_hybrid({"U": ([30.0, 8.0, 5.0], "m/s")}, ps=None)
    with pytest.raises(InputError, match="U850 needs U850 or U at 850 hPa or U on model levels and PS"):
        open_cam5(path, channels=["U850"])
    assert list(open_cam5(path).data_vars) == ["UBOT"]


def test_the_surface_pressure_may_lie_in_a_file_of_its_own(write_hybrid: WriteFile, write_file: WriteFile) -> None:
    paths = [write_hybrid({"U": ([30.0, 8.0, 5.0], "m/s")}, ps=None), write_file("ps.nc", {"PS": (1000.0, "hPa")})]
    assert _only(open_cam5(paths, channels=["U850"]), "U850") == pytest.approx(7.1465, rel=1e-4)


def test_hybrid_levels_of_other_coefficients_in_another_file_are_refused(write_file: WriteFile, tmp_path: Path) -> None:
    for day, top in ((1, 0.2), (2, 0.1)):
        extra = {"hyam": ("lev", [top, 0.0]), "hybm": ("lev", [0.1, 0.99])}
        fields = {"U": (1.0, "m/s", HYBRID_DIMS), "PS": (1e5, "Pa")}
        write_file(f"{day}.nc", fields, times=[f"2001-01-0{day}"], extra=extra)
    with pytest.raises(InputError, match=r"2\.nc: the hybrid levels of U differ between files"):
        open_cam5(f"{tmp_path}/*.nc", channels=["U850"])


def test_a_variable_on_the_level_itself_is_taken_before_one_on_hybrid_levels(write_hybrid: WriteFile) -> None:
    path = write_hybrid({"U": ([30.0, 8.0, 5.0], "m/s")})
    with xr.open_dataset(path) as ds:
        both = ds.load().assign(U850=(("time", "lat", "lon"), np.full((1, 7, 8), 3.0), {"units": "m/s"}))
    both.to_netcdf(path.with_name("both.nc"))
    ds = open_cam5(path.with_name("both.nc"), channels=["U850"])
    assert _only(ds, "U850") == 3.0
    assert "comment" not in ds["U850"].attrs


# Pressure levels


@pytest.fixture
def write_column(write_file: WriteFile) -> Callable[..., list[Path]]:
    """A function that writes columns on pressure levels: in one file, or with a file for each level."""

    def write(
        fields: dict[str, tuple[Any, str]],
        levels: Sequence[float] = (1000.0, 850.0, 700.0, 500.0, 300.0),
        units: str = "hPa",
        apart: bool = False,
        **surface: float,
    ) -> list[Path]:
        stored = np.array(levels) * (100.0 if units == "Pa" else 1.0)
        paths = [write_file("sp.nc", {name: (value, "Pa") for name, value in surface.items()})] if surface else []
        if not apart:
            columns = {
                name: (np.broadcast_to(v, len(levels)).reshape(1, -1, 1, 1), u, LEVEL_DIMS)
                for name, (v, u) in fields.items()
            }
            return [*paths, write_file("levels.nc", columns, extra={"level": ("level", stored, {"units": units})})]
        for i, level in enumerate(stored):
            own = {name: (np.broadcast_to(v, len(levels))[i], u) for name, (v, u) in fields.items()}
            paths.append(write_file(f"{level:g}.nc", own, extra={"level": ((), level, {"units": units})}))
        return paths

    return write


Q = ([0.004] * 5, "kg kg-1")
HOW = [(order, units, apart) for order in (1, -1) for units in ("hPa", "Pa") for apart in (False, True)]


@pytest.mark.parametrize(("order", "units", "apart"), HOW)
def test_a_constant_humidity_weighs_q_dp_over_g_in_any_order_and_units_of_levels(
    write_column: Callable[..., list[Path]], order: int, units: str, apart: bool
) -> None:
    levels = (1000.0, 850.0, 700.0, 500.0, 300.0)[::order]
    ds = open_era5(write_column({"q": Q}, levels, units, apart), channels=["TMQ"])
    # By hand: 0.004 * 70000 Pa / 9.80665 = 28.55205 kg m-2.
    assert _only(ds, "TMQ") == pytest.approx(28.55205, rel=1e-6)
    assert ds["TMQ"].attrs["comment"] == "derived: q on pressure levels, integrated to the lowest of them"


@pytest.mark.parametrize(("order", "units", "apart"), HOW)
def test_with_the_surface_pressure_the_column_ends_at_the_ground(
    write_column: Callable[..., list[Path]], order: int, units: str, apart: bool
) -> None:
    levels = (1000.0, 850.0, 700.0, 500.0, 300.0)[::order]
    # Below ground the archive has numbers too.
    q = (np.where(np.array(levels) > 800.0, 9.0, 0.004), "kg kg-1")
    ds = open_era5(write_column({"q": q}, levels, units, apart, sp=80000.0), channels=["TMQ"])
    # By hand: 0.004 * 50000 / 9.80665.
    assert _only(ds, "TMQ") == pytest.approx(20.39432, rel=1e-6)
    assert ds["TMQ"].attrs["comment"] == "derived: q on pressure levels, integrated to the surface pressure sp"


@pytest.mark.parametrize(("order", "units", "apart"), HOW)
def test_the_transport_is_the_magnitude_of_the_two_integrals(
    write_column: Callable[..., list[Path]], order: int, units: str, apart: bool
) -> None:
    levels = (1000.0, 850.0, 700.0, 500.0, 300.0)[::order]
    # Opposite winds aloft and below cancel in v: the integral of q v dp is 0 by the trapezoidal rule.
    fields = {"q": Q, "u": ([20.0] * 5, "m s-1"), "v": (np.array([7.0, 7.0, -7.0, 0.0, 0.0])[::order], "m s-1")}
    ds = open_era5(write_column(fields, levels, units, apart), channels=["IVT"])
    # By hand, in v: 7 * 15000 + 0 * 15000 - 3.5 * 20000 = 35000; times 0.004 / g; in u: 20 * 70000.
    assert _only(ds, "IVT") == pytest.approx(0.004 / GRAVITY * np.hypot(1.4e6, 35000.0), rel=1e-6)
    assert ds["IVT"].attrs["comment"].startswith("derived: q on pressure levels with u on pressure levels and v")


def test_a_humidity_linear_in_pressure_is_integrated_exactly(write_column: Callable[..., list[Path]]) -> None:
    levels = np.array([1000.0, 850.0, 700.0, 500.0, 300.0])
    ds = open_era5(write_column({"q": (levels * 1e-5, "kg kg-1")}, levels), channels=["TMQ"])
    # q = 1e-7 p: 0.5e-7 (1e10 - 9e8) / g.
    assert _only(ds, "TMQ") == pytest.approx(455.0 / GRAVITY, rel=1e-6)


def test_columns_of_unequal_levels_are_integrated_over_those_they_share(
    write_column: Callable[..., list[Path]], write_file: WriteFile
) -> None:
    q = write_column({"q": ([9.0, *[0.004] * 5], "kg kg-1")}, (400.0, 1000.0, 850.0, 700.0, 500.0, 300.0))
    levels = [300.0, 500.0, 700.0, 850.0, 1000.0]
    extra = {"level": ("level", levels, {"units": "hPa"})}
    fields = {name: (value, "m s-1", LEVEL_DIMS) for name, value in (("u", 3.0), ("v", 4.0))}
    ds = open_era5([*q, write_file("winds.nc", fields, extra=extra)], channels=["IVT"])
    assert _only(ds, "IVT") == pytest.approx(5.0 * 28.55205, rel=1e-6)


@pytest.mark.parametrize(
    "levels", [(1000.0, 850.0, 700.0, 300.0), (850.0, 700.0, 600.0, 500.0, 300.0), (1000.0, 850.0, 700.0, 500.0, 400.0)]
)
def test_a_column_of_too_few_levels_or_too_short_gives_no_integral(
    write_column: Callable[..., list[Path]], levels: tuple[float, ...]
) -> None:
    paths = write_column({"q": ([0.004] * len(levels), "kg kg-1")}, levels)
    with pytest.raises(InputError, match="TMQ needs tcwv or q on pressure levels"):
        open_era5(paths, channels=["TMQ"])


def test_levels_that_differ_from_file_to_file_are_refused(write_file: WriteFile, tmp_path: Path) -> None:
    for day, levels in ((1, [1000.0, 850.0, 700.0, 500.0, 300.0]), (2, [1000.0, 850.0, 700.0, 500.0, 250.0])):
        extra = {"level": ("level", levels, {"units": "hPa"})}
        write_file(f"{day}.nc", {"q": (0.004, "kg kg-1", LEVEL_DIMS)}, times=[f"2001-01-0{day}"], extra=extra)
    with pytest.raises(InputError, match="the pressure levels of q on pressure levels differ between files"):
        open_era5(f"{tmp_path}/*.nc", channels=["TMQ"])


def test_levels_in_files_of_their_own_must_have_equal_times(write_file: WriteFile) -> None:
    paths = []
    for number, level in enumerate((1000.0, 850.0, 700.0, 500.0, 300.0)):
        times = ["2001-01-01", "2001-01-02"] if number != 3 else ["2001-01-01", "2001-01-03"]
        extra = {"level": ((), level, {"units": "hPa"})}
        paths.append(write_file(f"{level:g}.nc", {"q": (0.004, "kg kg-1")}, times=times, extra=extra))
    with pytest.raises(InputError, match=r"500\.nc: the levels of one variable have unequal times"):
        open_era5(paths, channels=["TMQ"])


@pytest.mark.parametrize(("channel", "wind"), [("UIVT", "u"), ("VIVT", "v")])
@pytest.mark.parametrize(("order", "units", "apart"), HOW)
def test_each_part_of_the_transport_is_the_integral_of_humidity_and_its_wind(
    write_column: Callable[..., list[Path]], channel: str, wind: str, order: int, units: str, apart: bool
) -> None:
    levels = (1000.0, 850.0, 700.0, 500.0, 300.0)[::order]
    speed = np.array([7.0, 7.0, -7.0, 0.0, 0.0])[::order] - 20.0
    ds = open_era5(write_column({"q": Q, wind: (speed, "m s-1")}, levels, units, apart), channels=[channel])
    # By hand: 0.004 / g times 35000 of the first part, and -20 * 70000 of the second.
    assert _only(ds, channel) == pytest.approx(0.004 / GRAVITY * (35000.0 - 1.4e6), rel=1e-6)
    assert ds[channel].attrs["comment"] == (
        f"derived: q on pressure levels with {wind} on pressure levels, integrated to the lowest of them"
    )


def test_with_the_surface_pressure_the_parts_of_the_transport_end_at_the_ground(
    write_column: Callable[..., list[Path]],
) -> None:
    q = ([9.0, 9.0, 0.004, 0.004, 0.004], "kg kg-1")
    fields = {"q": q, "u": ([20.0] * 5, "m s-1"), "v": ([-5.0] * 5, "m s-1")}
    ds = open_era5(write_column(fields, sp=80000.0), channels=["UIVT", "VIVT", "IVT"])
    # By hand: 0.004 * 50000 / 9.80665 = 20.39432 kg m-2 of water in all.
    assert _only(ds, "UIVT") == pytest.approx(20 * 20.39432, rel=1e-6)
    assert _only(ds, "VIVT") == pytest.approx(-5 * 20.39432, rel=1e-6)
    assert _only(ds, "IVT") == pytest.approx(np.hypot(20, 5) * 20.39432, rel=1e-6)
    assert ds["VIVT"].attrs["comment"].endswith("integrated to the surface pressure sp")


def test_of_relative_humidity_the_parts_of_the_transport_are_those_of_the_water(
    write_column: Callable[..., list[Path]],
) -> None:
    fields = {"r": ([60.0] * 5, "%"), "t": ([280.0, 275.0, 268.0, 255.0, 230.0], "K")}
    winds = {"u": ([20.0] * 5, "m s-1"), "v": ([-5.0] * 5, "m s-1")}
    ds = open_era5(write_column(fields | winds, sp=95000.0), channels=["TMQ", "UIVT", "VIVT"])
    # An even wind carries all the water at its speed.
    assert _only(ds, "UIVT") == pytest.approx(20 * _only(ds, "TMQ"), rel=1e-5)
    assert _only(ds, "VIVT") == pytest.approx(-5 * _only(ds, "TMQ"), rel=1e-5)
    assert ds["UIVT"].attrs["comment"].endswith("saturation over water, integrated to sp")


def test_over_hybrid_levels_the_parts_of_the_transport_end_at_the_surface(write_hybrid: WriteFile) -> None:
    q, u, v = ([0.003] * 3, "kg/kg"), ([6.0] * 3, "m/s"), ([-8.0] * 3, "m/s")
    ds = open_cam5(write_hybrid({"Q": q, "U": u, "V": v}), channels=["UIVT", "VIVT"])
    assert _only(ds, "UIVT") == pytest.approx(0.003 * 6.0 * 70000.0 / GRAVITY, rel=1e-5)
    assert _only(ds, "VIVT") == pytest.approx(-0.003 * 8.0 * 70000.0 / GRAVITY, rel=1e-5)
    assert ds["UIVT"].attrs["comment"] == "derived: Q on model levels with U on model levels, integrated"


# Heights of pressure levels


@pytest.mark.parametrize(("channel", "level"), [("Z300", 300), ("Z500", 500)])
@pytest.mark.parametrize(("units", "factor"), [("m**2 s**-2", GRAVITY), ("m", 1.0)])
def test_the_height_of_a_level_comes_of_the_geopotential_or_the_height(
    write_column: Callable[..., list[Path]], channel: str, level: int, units: str, factor: float
) -> None:
    heights = np.array([100.0, 1500.0, 3000.0, 5600.0, 9200.0]) * factor
    ds = open_era5(write_column({"z": (heights, units)}), channels=[channel])
    assert _only(ds, channel) == pytest.approx({300: 9200.0, 500: 5600.0}[level], rel=1e-6)


def test_the_height_of_a_level_is_interpolated_between_hybrid_levels(write_hybrid: WriteFile) -> None:
    ds = open_cam5(write_hybrid({"Z3": ([9000.0, 2000.0, 200.0], "m")}), channels=["Z500"])
    # By hand: 9000 - 7000 * ln(500 / 300) / ln(800 / 300).
    assert _only(ds, "Z500") == pytest.approx(9000.0 - 7000.0 * 0.5108256 / 0.9808293, rel=1e-5)


# Water vapour transport through the column


def test_the_flux_through_the_column_is_the_parts_of_the_transport(write_file: WriteFile) -> None:
    flux = {"viwve": (-300.0, "kg m**-1 s**-1"), "viwvn": (400.0, "kg m**-1 s**-1")}
    ds = open_era5(write_file("a.nc", flux), channels=["UIVT", "VIVT"])
    assert (_only(ds, "UIVT"), _only(ds, "VIVT")) == (-300.0, 400.0)
    assert "comment" not in ds["UIVT"].attrs


def test_the_parts_of_the_transport_under_their_own_names_give_its_magnitude(write_file: WriteFile) -> None:
    parts = {"UIVT": (-300.0, "kg m-1 s-1"), "VIVT": (400.0, "kg m-1 s-1")}
    ds = open_cam5(write_file("a.nc", parts), channels=["IVT", "UIVT"])
    assert (_only(ds, "IVT"), _only(ds, "UIVT")) == (500.0, -300.0)
    assert ds["IVT"].attrs["comment"] == "derived: magnitude of UIVT and VIVT"


def test_the_flux_through_the_column_gives_the_transport(write_file: WriteFile) -> None:
    flux = {"viwve": (-300.0, "kg m**-1 s**-1"), "viwvn": (400.0, "kg m**-1 s**-1")}
    ds = open_era5(write_file("a.nc", flux), channels=["IVT"])
    assert _only(ds, "IVT") == 500.0
    assert ds["IVT"].attrs["comment"] == "derived: magnitude of viwve and viwvn"


def test_the_flux_is_taken_before_an_integral(write_file: WriteFile, write_column: Callable[..., list[Path]]) -> None:
    columns = write_column({"q": Q, "u": ([1.0] * 5, "m s-1"), "v": ([1.0] * 5, "m s-1")})
    flux = {"viwve": (-300.0, "kg m**-1 s**-1"), "viwvn": (400.0, "kg m**-1 s**-1")}
    assert _only(open_era5([*columns, write_file("a.nc", flux)], channels=["IVT"]), "IVT") == 500.0


def test_what_is_beyond_the_sixteen_is_made_only_when_it_is_asked_for(write_file: WriteFile) -> None:
    path = write_file("a.nc", {"IVT": (250.0, "kg m-1 s-1"), "TMQ": (30.0, "kg m-2")})
    assert list(open_cam5(path).data_vars) == ["TMQ"]
    assert list(open_cam5(path, channels=["IVT", "TMQ"]).data_vars) == ["IVT", "TMQ"]
    alone = write_file("b.nc", {"IVT": (250.0, "kg m-1 s-1")})
    assert list(open_cam5(alone).data_vars) == ["IVT"]


# Wind at 850 hPa


def test_the_wind_speed_is_that_of_the_triangle(write_file: WriteFile) -> None:
    ds = open_cam5(write_file("a.nc", {"U850": (3.0, "m/s"), "V850": (-4.0, "m/s")}), channels=["WS850"])
    assert _only(ds, "WS850") == 5.0
    assert ds["WS850"].attrs["comment"] == "derived: speed of U850 and V850"


@pytest.mark.parametrize("north_first", [False, True])
def test_the_vorticity_of_a_turning_sphere_is_twice_its_rate_times_the_sine_of_latitude(
    write_file: WriteFile, north_first: bool
) -> None:
    lat, lon, rate = np.linspace(-90.0, 90.0, 91)[:: -1 if north_first else 1], np.arange(0.0, 360.0, 4.0), 7.292e-5
    u = rate * 6371229.0 * np.cos(np.radians(lat)).reshape(1, -1, 1)
    extra = {"level": ("level", [850.0], {"units": "hPa"})}
    fields = {"u": (u[:, np.newaxis], "m s-1", LEVEL_DIMS), "v": (0.0, "m s-1", LEVEL_DIMS)}
    ds = open_era5(write_file("a.nc", fields, lat=lat, lon=lon, extra=extra), channels=["VRT850"])
    exact = 2.0 * rate * np.sin(np.radians(ds["lat"].values))
    np.testing.assert_allclose(ds["VRT850"][0, :, 0], exact, atol=2e-3 * rate)
    assert ds["VRT850"].attrs["comment"] == "derived: relative vorticity of u at 850 hPa and v at 850 hPa"


# Precipitation


def test_convective_and_large_scale_precipitation_add_up(write_file: WriteFile) -> None:
    path = write_file("a.nc", {"PRECC": (1e-8, "m/s"), "PRECL": (3e-8, "m/s")})
    ds = open_cam5(path, channels=["PRECT"])
    assert _only(ds, "PRECT") == pytest.approx(4e-8, rel=1e-6)
    assert ds["PRECT"].attrs["comment"] == "derived: PRECC + PRECL"
    with pytest.raises(InputError, match="PRECT needs PRECT or PRECC and PRECL"):
        open_cam5(write_file("b.nc", {"PRECC": (1e-8, "m/s")}), channels=["PRECT"])


def test_a_mass_flux_becomes_a_depth_of_liquid_water(write_file: WriteFile) -> None:
    ds = open_cam5(write_file("a.nc", {"PRECT": (0.001, "kg m-2 s-1")}))
    assert _only(ds, "PRECT") == pytest.approx(1e-6, rel=1e-6)
    assert ds["PRECT"].attrs["comment"] == "derived: PRECT / 1000 kg m-3"


def test_bounds_of_the_times_divide_each_accumulation_by_its_own_period(write_file: WriteFile) -> None:
    times = np.array(["2001-01-01T01", "2001-01-01T07"], "datetime64[ns]")
    starts = np.array(["2001-01-01T00", "2001-01-01T01"], "datetime64[ns]")
    path = write_file(
        "a.nc",
        {"tp": (np.array([3.6, 21.6]).reshape(2, 1, 1), "mm")},
        times=times,
        extra={"time_bnds": (("time", "nv"), np.stack([starts, times], axis=1))},
        attributes={"time": {"bounds": "time_bnds"}},
        encoding={"time": {"units": "hours since 2001-01-01", "dtype": "float64"}},
    )
    np.testing.assert_allclose(open_era5(path)["PRECT"][:, 0, 0], [1e-6, 1e-6], rtol=1e-6)


def _with_bounds(path: Path, hours: int) -> Path:
    """The same file with bounds of its times: each one ends a period of some hours."""
    with netCDF4.Dataset(path, "a") as file:
        time = file["time"]
        seconds = {"days": 86400, "hours": 3600, "minutes": 60, "seconds": 1}[time.units.split()[0]]
        file.createDimension("nv", 2)
        bounds = file.createVariable("time_bnds", "f8", ("time", "nv"))
        bounds[:] = np.stack([time[:] - hours * 3600 / seconds, time[:]], axis=1)
        time.bounds = "time_bnds"
    return path


def test_what_the_file_says_of_the_period_counts_before_the_option(write_file: WriteFile) -> None:
    path = _with_bounds(write_file("a.nc", {"tp": (0.0216, "m")}), 6)
    assert _only(open_era5(path, accumulation_hours=1.0), "PRECT") == pytest.approx(1e-6, rel=1e-6)


def test_the_option_serves_the_files_that_say_nothing_beside_those_that_do(write_file: WriteFile) -> None:
    paths = [
        _with_bounds(write_file("a.nc", {"tp": (0.0216, "m")}), 6),
        write_file("b.nc", {"tp": (0.0036, "m")}, times=["2001-01-02"]),
    ]
    with pytest.raises(InputError, match=r"b\.nc: tp is accumulated over a period that the file does not say"):
        open_era5(paths)
    np.testing.assert_allclose(open_era5(paths, accumulation_hours=1.0)["PRECT"][:, 0, 0], [1e-6, 1e-6], rtol=1e-6)


def test_periods_follow_their_times_through_a_selection_and_a_sorting(write_file: WriteFile) -> None:
    # Files of 1 and of 3 hours, out of order.
    paths = []
    for name, day, hours in (("a.nc", 2, 3), ("b.nc", 1, 1)):
        times = [f"2001-01-0{day}T00", f"2001-01-0{day}T12"]
        paths.append(_with_bounds(write_file(name, {"tp": (3.6 * hours, "mm")}, times=times), hours))
    ds = open_era5(paths, period=["2001-01-01T12", "2001-01-02T00"])
    np.testing.assert_allclose(ds["PRECT"][:, 0, 0], [1e-6, 1e-6], rtol=1e-6)

    # The lowest level


def test_the_height_of_the_lowest_level_says_what_stands_in(write_file: WriteFile) -> None:
    ds = open_cam5(write_file("a.nc", {"TREFHT": (288.15, "K")}))
    # By hand: 287.0423 * 288.15 / 9.80665 * ln(1 / 0.992556).
    assert _only(ds, "ZBOT") == pytest.approx(63.019, abs=1e-3)
    assert ds["ZBOT"].attrs["comment"].startswith("approximation: ")
    assert "(TREFHT)" in ds["ZBOT"].attrs["comment"]


def test_every_channel_that_is_not_read_as_it_is_says_so(write_column: Callable[..., list[Path]]) -> None:
    wind = ([1.0] * 5, "m s-1")
    columns = {"u": wind, "v": wind, "t": ([250.0] * 5, "K"), "q": Q, "z": ([9.8] * 5, "m2 s-2")}
    ds = open_era5(write_column(columns, sp=1e5))
    said = {name: variable.attrs.get("comment") for name, variable in ds.items()}
    assert set(said) == {"TMQ", "U850", "V850", "PS", "T500", "Z1000"}
    assert [name for name, comment in said.items() if comment is None] == ["U850", "V850", "PS", "T500"]


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize(("units", "factor"), [("hPa", 1.0), ("Pa", 100.0)])
def test_the_transport_of_a_constant_profile_is_the_same_in_both_orders_and_units_of_levels(
    write_file: WriteFile, order: int, units: str, factor: float
) -> None:
    dims = ("time", "level", "lat", "lon")
    path = write_file(
        "a.nc",
        {
            "q": (0.01, "kg kg-1", dims),
            "u": (12.0, "m s-1", dims),
            "v": (-16.0, "m s-1", dims),
        },
        extra={"level": ("level", factor * np.array([300.0, 500.0, 700.0, 850.0, 1000.0])[::order], {"units": units})},
    )
    ds = open_fields(path, source="era5", channels=["IVT", "UIVT", "VIVT"])
    # By hand: 0.01 * 12 * 70000 / 9.80665 = 856.562, the other part 4/3 of it, the magnitude 5/3.
    for name, value in (("UIVT", 856.562), ("VIVT", -1142.082), ("IVT", 1427.603)):
        np.testing.assert_allclose(ds[name], value, rtol=1e-6)
