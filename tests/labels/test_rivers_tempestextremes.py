"""Ridges of the transport: made ones whose Laplacian is known, and real ones."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

from climseg import open_fields
from climseg.grid import great_circle_distance, ring_laplacian
from climseg.labels.needs import Needs, needs_of
from climseg.labels.rivers_tempestextremes import atmospheric_rivers
from climseg.labels.step import Rivers, Step

R = 6_371_220.0
LAT, LON = np.linspace(-90.0, 90.0, 181), np.arange(360.0)
D2 = np.radians(10.0) ** 2


def rivers(ivt: np.ndarray, lat: np.ndarray = LAT, lon: np.ndarray = LON, **thresholds: float) -> Rivers:
    return atmospheric_rivers(Step({"IVT": ivt}, lat, lon), **thresholds)


def cap(lat: float, lon: float, degrees: float, ivt: float) -> np.ndarray:
    return np.where(great_circle_distance(lat, lon, LAT[:, None], LON) <= R * np.radians(degrees), ivt, 0.0)


def band(south: float, north: float, west: float, east: float, ivt: float) -> np.ndarray:
    rows, columns = (south <= LAT) & (north >= LAT), (LON - west) % 360 <= east - west
    return np.where(rows[:, None] & columns, ivt, 0.0)


def test_it_needs_the_transport_alone() -> None:
    assert needs_of(atmospheric_rivers) == Needs(("IVT",))


@pytest.mark.parametrize("lon", [100.0, 359.0])
@pytest.mark.parametrize(("ivt", "found"), [(1.01, True), (0.99, False)])
def test_a_cap_smaller_than_the_ring_counts_where_it_stands_out_by_5000_d2(lon: float, ivt: float, found: bool) -> None:
    # All 8 points lie outside a cap of 4.5 degrees: the Laplacian in it is -4 f / d^2. Its area is 2 pi R^2 (1 - cos).
    storm = cap(45.0, lon, 4.5, ivt * 5000.0 * D2)
    result = rivers(storm)
    np.testing.assert_array_equal(result.mask, (storm > 0) & found)
    if found:
        expected = 2 * np.pi * (R / 1e3) ** 2 * (1 - np.cos(np.radians(4.5)))
        assert result.regions.measures["area_km2"][0] == pytest.approx(expected, rel=0.03)
        assert result.regions.measures["lon"][0] == pytest.approx(lon)


def test_an_area_below_the_threshold_is_rejected_by_name_and_one_above_it_stays() -> None:
    ivt = cap(45.0, 100.0, 4.5, 1000.0)
    area = rivers(ivt).regions.measures["area_km2"][0]
    assert rivers(ivt, min_area_km2=area).mask.any()
    rejected = rivers(ivt, min_area_km2=area * 1.001)
    assert not rejected.mask.any()
    assert rejected.regions.failed["area"].tolist() == [True]
    assert not rivers(cap(45.0, 100.0, 2.5, 1000.0)).mask.any()  # 2.4e5 km2


def test_nothing_is_marked_near_the_equator() -> None:
    assert not rivers(cap(5.0, 100.0, 4.5, 1000.0)).mask.any()
    reaching_out = rivers(band(10, 24, 100, 108, 1000.0)).mask
    assert reaching_out.any()
    assert np.flatnonzero(reaching_out.any(axis=1)).min() == 105  # 15 degrees north


def test_a_long_band_is_marked_over_the_seam_and_only_where_it_is() -> None:
    ivt = band(40, 44, 340, 380, 600.0)
    found = rivers(ivt)
    np.testing.assert_array_equal(found.mask, ivt > 0)
    assert found.regions.kept.tolist() == [True]


def test_the_mask_is_what_the_formula_says(seed: int = 3) -> None:
    noise = np.random.default_rng(seed).standard_normal((181, 360))
    ivt = 300 + 4000 * ndimage.gaussian_filter(noise, 5, mode=("nearest", "wrap"))
    expected = (ring_laplacian(ivt, LAT, LON) <= -20_000) & (np.abs(LAT) >= 15)[:, None]
    np.testing.assert_array_equal(rivers(ivt, min_area_km2=0.0).mask, expected)
    assert 0.02 < expected.mean() < 0.5


def test_missing_values_make_untold_what_needs_them_but_near_the_equator_only_themselves() -> None:
    ivt = cap(45.0, 100.0, 4.5, 1000.0)
    ivt[135, 100] = ivt[90, 200] = np.nan
    found = rivers(ivt)
    assert found.untold[135, 100]
    assert found.untold[125, 100]  # 10 degrees south of it
    assert found.untold[90, 200]
    assert not found.untold[80, 200]
    assert not (found.mask & found.untold).any()
    assert found.mask.any()
    nothing = rivers(np.full((181, 360), np.nan))
    assert nothing.untold.all()
    assert nothing.regions.kept.shape == (0,)


def test_the_border_of_an_open_grid_is_untold() -> None:
    rows, columns = slice(110, 161), slice(80, 131)
    found = rivers(cap(45.0, 105.0, 4.5, 1000.0)[rows, columns], LAT[rows], LON[columns])
    assert found.mask.any()
    assert found.untold[:10].all()
    assert found.untold[-10:].all()
    assert found.untold[:, :10].all()
    assert found.untold[:, -10:].all()
    assert not found.untold[25, 25]


def test_an_empty_and_an_even_field_have_no_rivers() -> None:
    assert not rivers(np.zeros((181, 360))).mask.any()
    assert not rivers(np.full((181, 360), 2000.0)).mask.any()
    # Even where everything is looked at and nothing asked: one region, the globe.
    everything = rivers(np.full((181, 360), 2000.0), max_laplacian=1.0, min_latitude=0.0)
    assert everything.mask.all()
    assert everything.regions.measures["area_km2"][0] == pytest.approx(4 * np.pi * R**2 / 1e6)


@settings(max_examples=10, deadline=None)
@given(shift=st.integers(1, 89), seed=st.integers(0, 1000))
def test_a_roll_of_the_longitudes_rolls_the_rivers(shift: int, seed: int) -> None:
    lat, lon = np.linspace(-90, 90, 46), np.arange(90) * 4.0
    noise = np.random.default_rng(seed).standard_normal((46, 90))
    ivt = (300 + 2000 * ndimage.gaussian_filter(noise, 1.5, mode=("nearest", "wrap"))).astype(np.float32)
    rolled = rivers(np.roll(ivt, shift, axis=1), lat, lon).mask
    np.testing.assert_array_equal(rolled, np.roll(rivers(ivt, lat, lon).mask, shift, axis=1))


def test_the_river_into_chile_is_found_in_merra_and_nothing_within_15_degrees_of_the_equator(shared: Path) -> None:
    ds = open_fields(shared / "merra" / "IWV_IVT_MERRA_20170228_00.nc", channels=["IVT"])
    lat, lon, ivt = ds["lat"].values, ds["lon"].values, ds["IVT"].values[0]
    found = rivers(ivt, lat, lon)
    chile = np.ix_((lat >= -61) & (lat <= -32), (lon >= 254) & (lon <= 292))
    assert found.mask[chile][ivt[chile] > 1000].mean() > 0.9
    assert not found.mask[np.abs(lat) < 15].any()
    assert found.mask.mean() == pytest.approx(0.04, abs=0.01)


def test_the_atlantic_river_of_2004_is_one_region(shared: Path) -> None:
    ds = open_fields(shared / "gfs" / "gfs_20041212T12_2p5deg.nc", channels=["IVT"])
    lat, lon, ivt = ds["lat"].values, ds["lon"].values, ds["IVT"].values[0]
    found = rivers(ivt, lat, lon)
    measures = found.regions.measures
    near = found.regions.kept & (np.abs(measures["lon"] - 305) < 10) & (np.abs(measures["lat"] - 36) < 6)
    assert near.sum() == 1
    atlantic = np.ix_((lat >= 25) & (lat <= 45), (lon >= 288) & (lon <= 323))
    assert found.mask[atlantic][ivt[atlantic] > 600].mean() > 0.9
