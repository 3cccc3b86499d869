"""The unit that values look like: on real fields that are scaled as the usual mistakes scale them."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from climseg.canonical import check_range
from climseg.channels import CHANNELS
from climseg.errors import InputError
from climseg.likely_units import likely_units, looks_too_small
from climseg.sources.open import open_fields

FILES = ["gfs_20111011T00_2p5deg.nc", "gfs_20041212T12_2p5deg.nc"]
Mistake = Callable[[np.ndarray], np.ndarray]

MISTAKES: list[tuple[str, str, Mistake]] = [
    ("PSL", "hPa labelled Pa", lambda v: v / 100),
    ("PS", "hPa labelled Pa", lambda v: v / 100),
    ("PS", "kPa labelled Pa", lambda v: v / 1000),
    ("PSL", "Pa labelled hPa", lambda v: v * 100),
    ("T200", "degC labelled K", lambda v: v - 273.15),
    ("T500", "degC labelled K", lambda v: v - 273.15),
    ("TS", "degC labelled K", lambda v: v - 273.15),
    ("TREFHT", "degC labelled K", lambda v: v - 273.15),
    ("TREFHT", "K labelled degC", lambda v: v + 273.15),
    ("QREFHT", "g kg-1 labelled kg kg-1", lambda v: v * 1000),
    ("TMQ", "g m-2 labelled kg m-2", lambda v: v * 1000),
    ("PRECT", "kg m-2 s-1 labelled m s-1", lambda v: v * 1000),
    ("Z1000", "m2 s-2 labelled m", lambda v: v * 9.80665),
    ("Z200", "m2 s-2 labelled m", lambda v: v * 9.80665),
    ("Z200", "m labelled m2 s-2", lambda v: v / 9.80665),
    ("Z200", "km labelled m", lambda v: v / 1000),
]


@pytest.fixture(scope="module", params=FILES)
def fields(request: pytest.FixtureRequest, shared: Path) -> xr.Dataset:
    return open_fields(shared / "gfs" / request.param).compute()


def test_real_fields_pass(fields: xr.Dataset) -> None:
    for name, field in fields.data_vars.items():
        check_range(str(name), field.values[0], "now", "a.nc")


@pytest.mark.parametrize(("channel", "mistake", "mistaken"), MISTAKES)
def test_each_mistake_is_caught_on_real_fields_and_named(
    fields: xr.Dataset, channel: str, mistake: str, mistaken: Mistake
) -> None:
    wrong = mistaken(fields[channel].values[0])
    with pytest.raises(InputError, match=f"look like {mistake}: correct the units attribute"):
        check_range(channel, wrong, "now", "a.nc")


@pytest.mark.parametrize(("per_second", "unit"), [(3.6e6, "mm h-1"), (8.64e7, "mm day-1")])
def test_rain_per_hour_and_per_day_are_named_though_they_may_not_be_told_apart(
    fields: xr.Dataset, per_second: float, unit: str
) -> None:
    mistake = likely_units("PRECT", fields["PRECT"].values * per_second)
    assert unit in mistake
    assert mistake.endswith(" labelled m s-1")
    assert "kg m-2 s-1" not in mistake


@pytest.mark.parametrize("channel", ["U850", "V850"])
def test_wind_in_km_per_hour_is_named_where_it_leaves_the_range(channel: str) -> None:
    assert likely_units(channel, np.array([-130.0, 150.0])) == "km h-1 or knots labelled m s-1"


def test_fill_values_among_right_ones_look_like_no_unit() -> None:
    values = np.array([101_300.0, 100_000.0, -9999.0], np.float32)
    assert likely_units("PSL", values) == ""
    with pytest.raises(InputError, match=r"1 of 3 values lie outside: .* mark fill values as missing"):
        check_range("PSL", values, "now", "a.nc")


def test_missing_values_do_not_hide_the_unit() -> None:
    assert likely_units("PSL", np.array([np.nan, 990.0, 1030.0])) == "hPa labelled Pa"
    assert likely_units("PSL", np.array([np.nan])) == ""


@pytest.mark.parametrize("channel", list(CHANNELS))
def test_every_channel_can_be_asked_about(channel: str) -> None:
    assert isinstance(likely_units(channel, np.array([-1e9, 1e9])), str)


def test_a_globe_in_the_unit_a_thousand_times_too_large_is_seen_by_its_small_values(fields: xr.Dataset) -> None:
    for name, factor in (("QREFHT", 1e-3), ("TMQ", 1e-3), ("PRECT", 1e-3)):
        field = fields[name]
        smallest, largest = float(field.min()), float(field.max())
        assert not looks_too_small(name, smallest, largest)
        assert looks_too_small(name, factor * smallest, factor * largest)
    assert not looks_too_small("PSL", 1.0, 2.0)  # that is below its range, and refused


@pytest.mark.parametrize(
    ("channel", "height"), [("Z1000", 100.0), ("Z500", 5600.0), ("Z300", 9200.0), ("Z200", 11800.0)]
)
def test_a_geopotential_for_a_height_is_named_on_every_level(channel: str, height: float) -> None:
    field = height + np.linspace(-80.0, 400.0, 7)
    assert likely_units(channel, field * 9.80665) == "m2 s-2 labelled m"
    assert "m labelled m2 s-2" in likely_units(channel, field / 9.80665)
