"""Strong, long, coherent, poleward transport: bands that pass every criterion, and each criterion alone failing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

from climseg import open_fields
from climseg.errors import InputError
from climseg.grid import great_circle_distance
from climseg.labels.needs import Needs, needs_of
from climseg.labels.rivers_guan_waliser import atmospheric_rivers, monthly_percentile
from climseg.labels.step import Rivers, Step

R = 6_371_220.0
LAT, LON = np.arange(-89.5, 90.0), np.arange(0.5, 360.0)
Climatology = Callable[..., str]


@pytest.fixture
def climatology(tmp_path: Path) -> Climatology:
    """A function that writes a climatology: one value everywhere, or (12, lat, lon); returns the path."""

    def write(
        values: Any = 200.0,
        lat: np.ndarray = LAT,
        lon: np.ndarray = LON,
        *,
        name: str = "ivt_percentile",
        months: Any = range(1, 13),
        axes: tuple[str, ...] = ("month", "lat", "lon"),
    ) -> str:
        path = tmp_path / "climatology.nc"
        with netCDF4.Dataset(path, "w") as file:
            for axis, at in (("month", np.array(list(months))), ("lat", lat), ("lon", lon)):
                file.createDimension(axis, len(at))
                file.createVariable(axis, at.dtype, (axis,))[:] = at
            file.createVariable(name, "f4", axes, fill_value=np.float32(1e20))[:] = values
        return str(path)

    return write


def band(south: float, north: float, west: float, east: float) -> np.ndarray:
    inside = (LON - west) % 360 < east - west
    return ((south < LAT) & (north > LAT))[:, None] & inside[None, :]


def step_of(mask: np.ndarray, u: Any, v: Any, month: int = 1) -> Step:
    fields = {"UIVT": np.where(mask, u, 20.0), "VIVT": np.where(mask, v, 0.0)}
    return Step({name: values.astype(np.float32) for name, values in fields.items()}, LAT, LON, month)


def judged(found: Rivers) -> list[str]:
    """What rejects the one region."""
    assert found.regions.kept.size == 1
    return [name for name, failed in found.regions.failed.items() if failed[0]]


NORTHWARD = band(25, 55, 200, 206)  # 3336 km long, 460 km wide


def test_it_needs_the_two_parts_of_the_transport() -> None:
    assert needs_of(atmospheric_rivers) == Needs(("UIVT", "VIVT"))


@pytest.mark.parametrize("west", [200.0, 357.0])
@pytest.mark.parametrize("south", [25.0, -55.0])
def test_a_band_of_poleward_transport_is_a_river_in_both_hemispheres_and_over_the_seam(
    climatology: Climatology, west: float, south: float
) -> None:
    mask = band(south, south + 30, west, west + 6)
    found = atmospheric_rivers(step_of(mask, 0.0, np.sign(south) * 500.0), climatology=climatology())
    np.testing.assert_array_equal(found.mask, mask)
    assert judged(found) == []
    assert not found.untold.any()
    measures = {name: values[0] for name, values in found.regions.measures.items()}
    assert measures["length_km"] == pytest.approx(R / 1e3 * np.radians(30), rel=0.05)
    area = (R / 1e3) ** 2 * np.radians(6) * (np.sin(np.radians(55)) - np.sin(np.radians(25)))
    assert measures["area_km2"] == pytest.approx(area)
    assert measures["width_km"] == pytest.approx(area / measures["length_km"])
    assert measures["coherent_share"] == 1.0
    assert measures["poleward_ivt_kg_per_m_s"] == pytest.approx(500.0)
    assert measures["ivt_direction_degrees"] == pytest.approx(0.0 if south > 0 else 180.0)
    assert abs((measures["axis_bearing_degrees"] + 90) % 180 - 90) < 3
    assert abs((measures["lon"] - west - 3 + 180) % 360 - 180) < 1e-6


@pytest.mark.parametrize(
    ("mask", "u", "v", "rejected_by"),
    [
        (NORTHWARD, 0.0, 500.0, []),
        (NORTHWARD, 0.0, -500.0, ["poleward"]),
        (NORTHWARD, 500.0, 40.0, ["axis", "poleward"]),
        (NORTHWARD, 500.0, 60.0, ["axis"]),
        (NORTHWARD, 500.0, 520.0, []),  # 44 degrees from north
        (NORTHWARD, 500.0, 470.0, ["axis"]),  # 47 degrees
        (band(25, 41, 200, 205), 0.0, 500.0, ["length"]),  # 1779 km
        (band(25, 44, 200, 205), 0.0, 500.0, []),  # 2113 km
        # Half of the cells to the north-east, half to the north-west: 50 degrees either side of the mean.
        (NORTHWARD, np.where(np.arange(360) % 2, 600.0, -600.0), 503.0, ["coherence"]),
        (NORTHWARD, np.where(np.arange(360) % 2, 500.0, -500.0), 503.0, []),  # 44.8 degrees
        # A plume of 6 x 6 degrees, and a zonal stream that hardly flows poleward.
        (band(30, 36, 200, 206), 0.0, 500.0, ["length", "elongation"]),
        (band(30, 36, 200, 250), 500.0, 40.0, ["poleward"]),
        (band(30, 36, 200, 250), 500.0, 60.0, []),
    ],
)
def test_each_criterion_decides_and_is_named(
    climatology: Climatology, mask: np.ndarray, u: Any, v: Any, rejected_by: list[str]
) -> None:
    found = atmospheric_rivers(step_of(mask, u, v), climatology=climatology())
    assert judged(found) == rejected_by
    np.testing.assert_array_equal(found.mask, mask & (not rejected_by))


def test_a_round_region_of_2600_km_is_long_enough_but_too_wide(climatology: Climatology) -> None:
    disc = great_circle_distance(40.5, 200.5, LAT[:, None], LON) < 1.3e6
    found = atmospheric_rivers(step_of(disc, 400.0, 400.0), climatology=climatology())
    assert not found.mask.any()
    assert "elongation" in judged(found)
    assert "length" not in judged(found)
    assert found.regions.measures["width_km"][0] == pytest.approx(found.regions.measures["length_km"][0], rel=0.25)


def test_the_stream_along_the_equator_is_no_river(climatology: Climatology) -> None:
    found = atmospheric_rivers(step_of(band(-4, 4, 100, 200), -600.0, 30.0), climatology=climatology())
    assert judged(found) == ["poleward"]


def test_a_region_of_a_few_cells_is_too_short_without_an_axis(climatology: Climatology) -> None:
    found = atmospheric_rivers(step_of(band(30, 33, 200, 203), 0.0, 500.0), climatology=climatology())
    assert judged(found) == ["length"]
    assert np.isnan(found.regions.measures["length_km"][0])


def test_both_the_percentile_and_the_floor_must_be_exceeded(climatology: Climatology) -> None:
    step = step_of(NORTHWARD, 0.0, 150.0)
    assert atmospheric_rivers(step, climatology=climatology(149.0)).mask.any()
    assert not atmospheric_rivers(step, climatology=climatology(151.0)).mask.any()
    assert atmospheric_rivers(step, climatology=climatology(10.0), min_ivt=150.0).mask.any()
    assert not atmospheric_rivers(step, climatology=climatology(10.0), min_ivt=151.0).mask.any()


def test_each_month_has_its_own_percentile(climatology: Climatology) -> None:
    values = np.full((12, 180, 360), 200.0)
    values[6] = 600.0
    path = climatology(values)
    marked = [
        atmospheric_rivers(step_of(NORTHWARD, 0.0, 500.0, month), climatology=path).mask.any() for month in range(1, 13)
    ]
    assert marked == [month != 7 for month in range(1, 13)]


def test_missing_values_of_field_and_climatology_are_untold(climatology: Climatology) -> None:
    values = np.full((12, 180, 360), 200.0)
    values[:, 120, 203] = 1e20
    step = step_of(NORTHWARD, 0.0, 500.0)
    step.fields["UIVT"][130, 202] = np.nan
    step.fields["VIVT"][10, 10] = np.nan
    found = atmospheric_rivers(step, climatology=climatology(values))
    expected = np.zeros((180, 360), dtype=bool)
    expected[[120, 130, 10], [203, 202, 10]] = True
    np.testing.assert_array_equal(found.untold, expected)
    np.testing.assert_array_equal(found.mask, NORTHWARD & ~expected)
    nothing = atmospheric_rivers(step_of(NORTHWARD, np.nan, np.nan), climatology=climatology())
    assert not nothing.mask.any()
    assert nothing.untold.sum() == NORTHWARD.sum()
    assert nothing.regions.kept.shape == (0,)


def test_strong_transport_everywhere_is_one_region_and_no_river(climatology: Climatology) -> None:
    lat, lon = np.linspace(-90, 90, 37), np.arange(72) * 5.0
    fields = {"UIVT": np.full((37, 72), 500.0, np.float32), "VIVT": np.zeros((37, 72), np.float32)}
    found = atmospheric_rivers(Step(fields, lat, lon), climatology=climatology(200.0, lat, lon))
    assert not found.mask.any()
    assert found.regions.measures["area_km2"][0] == pytest.approx(4 * np.pi * R**2 / 1e6)


@settings(max_examples=10, deadline=None)
@given(shift=st.integers(1, 89), seed=st.integers(0, 1000))
def test_a_roll_of_the_longitudes_rolls_the_rivers(
    tmp_path_factory: pytest.TempPathFactory, shift: int, seed: int
) -> None:
    lat, lon = np.linspace(-90, 90, 46), np.arange(90) * 4.0
    path = str(tmp_path_factory.mktemp("roll") / "c.nc")
    with netCDF4.Dataset(path, "w") as file:
        for axis, at in (("month", np.arange(1, 13)), ("lat", lat), ("lon", lon)):
            file.createDimension(axis, len(at))
            file.createVariable(axis, at.dtype, (axis,))[:] = at
        file.createVariable("ivt_percentile", "f4", ("month", "lat", "lon"))[:] = 200.0
    noise = np.random.default_rng(seed).standard_normal((2, 46, 90))
    smooth = 900 * ndimage.gaussian_filter(noise, (0, 2, 2), mode=("nearest", "nearest", "wrap"))
    u, v = (smooth + np.array([150.0, 100.0])[:, None, None]).astype(np.float32)
    found = atmospheric_rivers(Step({"UIVT": u, "VIVT": v}, lat, lon), climatology=path)
    there = {"UIVT": np.roll(u, shift, axis=1), "VIVT": np.roll(v, shift, axis=1)}
    rolled = atmospheric_rivers(Step(there, lat, lon), climatology=path)
    np.testing.assert_array_equal(rolled.mask, np.roll(found.mask, shift, axis=1))


# The file of the climatology


def test_a_climatology_in_another_order_of_rows_and_columns_is_put_in_order(climatology: Climatology) -> None:
    values = np.arange(180 * 360, dtype=np.float32).reshape(180, 360) * np.ones((12, 1, 1))
    path = climatology(np.roll(values[:, ::-1], 180, axis=2), LAT[::-1], np.arange(-179.5, 180.0))
    np.testing.assert_array_equal(monthly_percentile(path, step_of(NORTHWARD, 0.0, 0.0)), values[0])


def test_without_a_climatology_the_message_names_the_option() -> None:
    with pytest.raises(InputError, match="need a climatology of the transport: give the path"):
        atmospheric_rivers(step_of(NORTHWARD, 0.0, 500.0))


def test_an_absent_and_a_damaged_file_are_refused(tmp_path: Path) -> None:
    step = step_of(NORTHWARD, 0.0, 500.0)
    with pytest.raises(InputError, match=r"none\.nc: there is no such file"):
        atmospheric_rivers(step, climatology=str(tmp_path / "none.nc"))
    (tmp_path / "bad.nc").write_bytes(b"not netCDF at all")
    with pytest.raises(InputError, match=r"bad\.nc: the climatology cannot be read"):
        atmospheric_rivers(step, climatology=str(tmp_path / "bad.nc"))


def test_another_grid_is_refused_naming_both(climatology: Climatology) -> None:
    path = climatology(200.0, np.linspace(-90, 90, 181), np.arange(360.0))
    with pytest.raises(InputError, match="181 x 360, latitude -90 to 90, longitude 0 to 359 degrees") as raised:
        atmospheric_rivers(step_of(NORTHWARD, 0.0, 500.0), climatology=path)
    assert "180 x 360, latitude -89.5 to 89.5, longitude 0.5 to 359.5 degrees" in str(raised.value)


def test_a_file_without_the_variable_the_month_or_the_axes_is_refused(climatology: Climatology) -> None:
    step = step_of(NORTHWARD, 0.0, 500.0, month=12)
    with pytest.raises(InputError, match="no variable 'ivt_percentile'; did you mean 'ivt_percentiles'"):
        atmospheric_rivers(step, climatology=climatology(name="ivt_percentiles"))
    with pytest.raises(InputError, match=r"has the months \[1, 2, 3\]; 12 is missing"):
        atmospheric_rivers(step, climatology=climatology(months=range(1, 4)))
    with pytest.raises(InputError, match="expected \\(month, lat, lon\\)"):
        atmospheric_rivers(step, climatology=climatology(axes=("lat", "month", "lon")))


# Real fields


def test_rivers_of_a_real_analysis_are_long_poleward_and_outside_the_tropics(
    shared: Path, climatology: Climatology
) -> None:
    ds = open_fields(shared / "gfs" / "gfs_20111011T00_2p5deg.nc", channels=["UIVT", "VIVT"])
    lat, lon = ds["lat"].values, ds["lon"].values
    u, v = ds["UIVT"].values[0], ds["VIVT"].values[0]
    # In place of a climatology: the percentile of each latitude at this time.
    usual = np.percentile(np.hypot(u, v), 85, axis=1)[:, None] * np.ones((12, 1, lon.size))
    step = Step({"UIVT": u, "VIVT": v}, lat, lon, month=10)
    found = atmospheric_rivers(step, climatology=climatology(usual, lat, lon))
    assert 3 <= found.regions.kept.sum() <= 15
    assert 0.02 < found.mask.mean() < 0.12
    assert (found.regions.measures["length_km"][found.regions.kept] > 2000).all()
    assert found.mask[np.abs(lat) < 10].mean() < 0.01
