"""The flood fill of column water vapour on bands whose measures are known, and on real fields."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

from climseg import open_fields
from climseg.labels.needs import Needs, needs_of
from climseg.labels.rivers_kurth2018 import atmospheric_rivers
from climseg.labels.step import Rivers, Step

R = 6_371_220.0
LAT, LON = np.arange(-89.5, 90.0), np.arange(0.5, 360.0)


def moist_band(south: float, north: float, west: float, east: float, tmq: float = 100.0) -> np.ndarray:
    """TMQ between four cell edges (the eastern one beyond 360 over the seam), nothing elsewhere."""
    inside = (LON - west) % 360 < east - west
    return np.where(((south < LAT) & (north > LAT))[:, None] & inside[None, :], tmq, 0.0)


def rivers(tmq: np.ndarray, lat: np.ndarray = LAT, lon: np.ndarray = LON, **thresholds: float) -> Rivers:
    return atmospheric_rivers(Step({"TMQ": tmq}, lat, lon), **thresholds)


# A band of 8 degrees of longitude from 40N to 60N is 569 km wide and has a diagonal of 2292 km.
SIN40, SIN60, COS40, COS60 = np.sin(np.radians(40)), np.sin(np.radians(60)), np.cos(np.radians(40)), 0.5
BAND_WIDTH = R * np.radians(8) * (SIN60 - SIN40) / np.radians(20)
BAND_DIAGONAL = R * np.arccos(SIN40 * SIN60 + COS40 * COS60 * np.cos(np.radians(8)))


def test_it_needs_water_vapour_alone() -> None:
    assert needs_of(atmospheric_rivers) == Needs(("TMQ",))


@pytest.mark.parametrize("west", [100.0, 356.0])
def test_a_narrow_long_moist_band_is_a_river_over_the_seam_too(west: float) -> None:
    tmq = moist_band(40, 60, west, west + 8)
    found = rivers(tmq)
    np.testing.assert_array_equal(found.mask, tmq > 0)
    measures = {name: values[0] for name, values in found.regions.measures.items()}
    assert measures["width_km"] == pytest.approx(BAND_WIDTH / 1e3)
    assert measures["diagonal_km"] == pytest.approx(BAND_DIAGONAL / 1e3)
    assert measures["area_km2"] == pytest.approx(R**2 * np.radians(8) * (SIN60 - SIN40) / 1e6)
    assert measures["lon"] == pytest.approx((west + 4) % 360)
    # Of a band between two latitudes: the integral of phi cos(phi), over the difference of sines.
    phi40, phi60 = np.radians(40), np.radians(60)
    middle = (phi60 * SIN60 + COS60 - phi40 * SIN40 - COS40) / (SIN60 - SIN40)
    assert measures["lat"] == pytest.approx(np.degrees(middle), abs=0.01)


@pytest.mark.parametrize(
    ("thresholds", "criterion"),
    [
        ({"max_width_km": BAND_WIDTH / 1e3 * 1.001}, None),
        ({"max_width_km": BAND_WIDTH / 1e3 * 0.999}, "width"),
        ({"min_diagonal_km": BAND_DIAGONAL / 1e3 * 0.999}, None),
        ({"min_diagonal_km": BAND_DIAGONAL / 1e3 * 1.001}, "diagonal"),
        # The driest row, 40.5N, keeps 1 - exp(-40.5^2 / 722) = 0.897 of 100 kg/m2.
        ({"threshold": 89.0}, None),
    ],
)
def test_each_threshold_decides_about_the_known_band_and_the_criterion_is_named(
    thresholds: dict[str, float], criterion: str | None
) -> None:
    tmq = moist_band(40, 60, 100, 108)
    found = rivers(tmq, **thresholds)
    np.testing.assert_array_equal(found.mask, (tmq > 0) & (criterion is None))
    assert [name for name, failed in found.regions.failed.items() if failed[0]] == [criterion] * (criterion is not None)


@pytest.mark.parametrize(
    ("south", "north", "west", "east"),
    [(40, 44, 100, 120), (40, 60, 100, 130), (40, 50, 100, 104), (50, 52, 0, 360)],
)
def test_regions_too_wide_or_too_short_are_no_rivers(south: float, north: float, west: float, east: float) -> None:
    assert not rivers(moist_band(south, north, west, east)).mask.any()


def test_two_halves_over_the_seam_count_together_on_a_closed_grid_only() -> None:
    # The western half alone has a diagonal of 1,240 km, the two together 1,550 km.
    tmq = moist_band(40, 50, 353, 367)
    assert rivers(tmq, max_width_km=2000.0).mask.sum() == 140
    assert not rivers(tmq[:, 1:], LAT, LON[1:], max_width_km=2000.0).mask.any()


def test_the_damping_keeps_39_percent_at_19_degrees() -> None:
    lat = np.array([-19.0, -10.0, 0.0, 10.0, 19.0])
    kept = 1 - np.exp(-0.5)
    tmq = np.full((5, 4), 24.0 / kept - 0.01)
    tmq[:, 1] = tmq[:, 3] = 24.0 / kept + 0.01
    lon = np.array([10.0, 11.0, 12.0, 13.0])
    expected = np.zeros((5, 4), dtype=bool)
    expected[[[0], [4]], [[1, 3]]] = True
    np.testing.assert_array_equal(rivers(tmq, lat, lon, min_diagonal_km=0.0, max_width_km=np.inf).mask, expected)


def test_cells_that_touch_by_a_corner_are_two_regions() -> None:
    tmq = moist_band(40, 48, 100, 108) + moist_band(48, 56, 108, 116)
    assert rivers(tmq, min_diagonal_km=1200.0).mask.sum() == 0
    joined = tmq + moist_band(47, 48, 108, 109)
    assert rivers(joined, min_diagonal_km=1200.0).mask.sum() == 129


def test_missing_values_are_no_river_and_untold() -> None:
    tmq = moist_band(40, 60, 100, 108)
    tmq[140, 100:104] = np.nan
    found = rivers(tmq)
    np.testing.assert_array_equal(found.untold, np.isnan(tmq))
    assert not found.mask[140, 100:104].any()
    assert found.mask[141, 100:104].all()
    nothing = rivers(np.full((180, 360), np.nan))
    assert nothing.untold.all()
    assert not nothing.mask.any()
    assert nothing.regions.kept.shape == (0,)


def test_a_dry_globe_and_one_that_is_moist_everywhere_have_no_rivers() -> None:
    assert rivers(np.zeros((180, 360))).regions.kept.shape == (0,)
    everywhere = rivers(np.full((180, 360), 1000.0), threshold=0.0)
    assert not everywhere.mask.any()
    assert everywhere.regions.failed["width"].tolist() == [True]
    assert everywhere.regions.measures["area_km2"][0] == pytest.approx(4 * np.pi * R**2 / 1e6)


@settings(max_examples=25, deadline=None)
@given(shift=st.integers(0, 71), seed=st.integers(0, 10_000))
def test_a_roll_of_the_longitudes_rolls_the_rivers(shift: int, seed: int) -> None:
    lat, lon = np.arange(-87.5, 90.0, 5.0), np.arange(0.0, 360.0, 5.0)
    noise = np.random.default_rng(seed).standard_normal((36, 72))
    tmq = 22.0 + 40.0 * ndimage.gaussian_filter(noise, 1.2, mode=("nearest", "wrap"))
    rolled = rivers(np.roll(tmq, shift, 1), lat, lon).mask
    np.testing.assert_array_equal(np.roll(rivers(tmq, lat, lon).mask, shift, 1), rolled)


def test_the_atlantic_river_of_2004_is_found_on_a_coarse_grid_with_its_wider_limit(shared: Path) -> None:
    ds = open_fields(shared / "gfs" / "gfs_20041212T12_2p5deg.nc", channels=["TMQ"])
    lat, lon, tmq = ds["lat"].values, ds["lon"].values, ds["TMQ"].values[0]
    found = rivers(tmq, lat, lon, max_width_km=1250.0)
    rows, columns = np.nonzero(found.mask & (lat > 0)[:, None])
    # Outer edges of cells of 2.5 degrees.
    np.testing.assert_allclose([lat[rows].min() - 1.25, lat[rows].max() + 1.25], [23.75, 46.25])
    np.testing.assert_allclose([lon[columns].min() - 1.25, lon[columns].max() + 1.25], [360 - 73.75, 360 - 33.75])
    (nearest,) = np.flatnonzero(found.regions.kept & (np.abs(found.regions.measures["lon"] - 305.7) < 1))
    assert found.regions.measures["width_km"][nearest] == pytest.approx(1112, abs=1)
    assert not rivers(tmq, lat, lon).mask[lat > 0].any()
