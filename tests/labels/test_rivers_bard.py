"""The share of parameter rows against a slow reading of the definition, and on real fields."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

from climseg import open_fields
from climseg.errors import InputError
from climseg.grid import cell_area
from climseg.labels.needs import Needs, needs_of
from climseg.labels.regions import label_regions
from climseg.labels.rivers_bard import atmospheric_rivers, parameter_rows, read_parameter_rows, river_probability
from climseg.labels.step import Step

R = 6_371_220.0
LAT, LON = np.linspace(-90.0, 90.0, 91), np.arange(180) * 2.0


def weather(seed: int, lat: np.ndarray = LAT, lon: np.ndarray = LON) -> np.ndarray:
    noise = ndimage.gaussian_filter(
        np.random.default_rng(seed).standard_normal((lat.size, lon.size)), (1.5, 4), mode=("nearest", "wrap")
    )
    return (250 * np.exp(noise / noise.std() * 0.6)).astype(np.float32)


def slowly(ivt: np.ndarray, lat: np.ndarray, table: np.ndarray, periodic: bool, area: np.ndarray) -> np.ndarray:
    """Row by row, region by region."""
    marked = np.zeros(ivt.shape)
    for quantile, hwhm, min_area in table:
        sigma = hwhm / np.sqrt(2 * np.log(2))
        damped = ivt * (1 - np.exp(-(lat**2) / (2 * sigma**2))).astype(np.float32)[:, None]
        labels = label_regions(damped > np.nanquantile(damped, quantile), periodic)
        for number in range(1, labels.max() + 1):
            region = labels == number
            if area[region].sum() / 1e6 >= min_area:
                marked[region] += 1
    return np.where(np.isnan(ivt), np.nan, marked / len(table))


def test_it_needs_the_transport_alone() -> None:
    assert needs_of(atmospheric_rivers) == Needs(("IVT",), whole_globe=True)


@pytest.mark.parametrize(("seed", "missing"), [(0, 0.0), (1, 0.1), (2, 0.7)])
@pytest.mark.parametrize("columns", [180, 120])
def test_the_probability_is_that_of_a_slow_reading_of_the_definition(seed: int, missing: float, columns: int) -> None:
    ivt = weather(seed)[:, :columns]
    ivt[np.random.default_rng(seed).random(ivt.shape) < missing] = np.nan
    expected = slowly(ivt, LAT, parameter_rows(16), columns == 180, cell_area(LAT, LON[:columns]))
    probability = river_probability(Step({"IVT": ivt}, LAT, LON[:columns]), rows=16)
    np.testing.assert_array_equal(probability, expected)
    found = atmospheric_rivers(Step({"IVT": ivt}, LAT, LON[:columns]), rows=16)
    np.testing.assert_array_equal(found.mask, expected >= 2 / 3)
    np.testing.assert_array_equal(found.untold, np.isnan(ivt))


def table(path: Path, *rows: tuple[float, float, float]) -> str:
    path.write_text("quantile,hwhm_degrees,min_area_km2\n" + "".join(f"{q},{h},{a}\n" for q, h, a in rows))
    return str(path)


def blob(south: float, north: float, west: float, east: float) -> np.ndarray:
    """500 kg/m/s between four latitudes and longitudes (cell centres, inclusive), and 10 elsewhere."""
    inside = ((south <= LAT) & (north >= LAT))[:, None] & ((LON - west) % 360 <= east - west)
    return np.where(inside, 500.0, 10.0).astype(np.float32)


def test_two_of_three_rows_are_enough_and_one_is_not(tmp_path: Path) -> None:
    # A block of cells from 39 to 61 degrees north, 22 degrees wide: R^2 dlon (sin 61 - sin 39) = 3.81e6 km2.
    ivt = blob(40, 60, 100, 120)
    area = (R / 1e3) ** 2 * np.radians(22) * (np.sin(np.radians(61)) - np.sin(np.radians(39)))
    step = Step({"IVT": ivt}, LAT, LON)
    low, high = (0.95, 10.0, area * 0.999), (0.95, 10.0, area * 1.001)
    two = table(tmp_path / "two.csv", low, low, high)
    np.testing.assert_allclose(river_probability(step, parameters=two), np.where(ivt > 100, 2 / 3, 0.0))
    found = atmospheric_rivers(step, parameters=two)
    np.testing.assert_array_equal(found.mask, ivt > 100)
    assert found.regions.kept.tolist() == [True]
    measures = {name: values[0] for name, values in found.regions.measures.items()}
    assert measures["area_km2"] == pytest.approx(area)
    assert measures["mean_probability"] == pytest.approx(2 / 3)
    assert measures["lon"] == pytest.approx(110.0)
    one = table(tmp_path / "one.csv", low, high, high)
    assert not atmospheric_rivers(step, parameters=one).mask.any()
    assert atmospheric_rivers(step, parameters=one, min_probability=0.3).mask.any()


def test_the_damping_halves_the_transport_at_its_half_width(tmp_path: Path) -> None:
    # 1 - exp(-lat^2 / (2 sigma^2)) is one half at the half-width at half maximum.
    ivt = np.full((91, 180), 10.0, dtype=np.float32)
    ivt[60, :] = 100.0  # 30 degrees north, kept at 50
    ivt[90, :] = 49.0
    parameters = table(tmp_path / "a.csv", (0.985, 30.0, 0.0))
    np.testing.assert_array_equal(river_probability(Step({"IVT": ivt}, LAT, LON), parameters=parameters)[60], 1.0)
    ivt[90, :] = 51.0  # now the largest, and the rows hold 1/91 = 1.1 % of the cells each
    probability = river_probability(Step({"IVT": ivt}, LAT, LON), parameters=parameters)
    np.testing.assert_array_equal(probability[90], 1.0)


def test_a_tropical_blob_and_a_short_plume_are_no_rivers() -> None:
    def mask(ivt: np.ndarray) -> np.ndarray:
        return atmospheric_rivers(Step({"IVT": ivt}, LAT, LON)).mask

    river = blob(30, 50, 200, 220)
    assert mask(river)[river > 100].all()
    tropical = np.maximum(river, blob(-6, 6, 100, 130))
    assert not mask(tropical)[np.abs(LAT) <= 8].any()
    plume = np.maximum(river, blob(40, 44, 100, 104))  # about 2e5 km2
    assert not mask(plume)[:, 45:60].any()


def test_missing_even_and_absent_transport_have_no_rivers() -> None:
    nothing = atmospheric_rivers(Step({"IVT": np.full((91, 180), np.nan, dtype=np.float32)}, LAT, LON), rows=4)
    assert nothing.untold.all()
    assert not nothing.mask.any()
    assert nothing.regions.kept.shape == (0,)
    still = atmospheric_rivers(Step({"IVT": np.zeros((91, 180), dtype=np.float32)}, LAT, LON), rows=4)
    assert not still.mask.any()
    assert not still.untold.any()


@settings(max_examples=15, deadline=None)
@given(shift=st.integers(1, 89), seed=st.integers(0, 1000))
def test_a_roll_of_the_longitudes_rolls_the_rivers(shift: int, seed: int) -> None:
    lat, lon = np.linspace(-90, 90, 46), np.arange(90) * 4.0
    ivt = weather(seed, lat, lon)
    rolled = river_probability(Step({"IVT": np.roll(ivt, shift, axis=1)}, lat, lon), rows=12)
    np.testing.assert_array_equal(rolled, np.roll(river_probability(Step({"IVT": ivt}, lat, lon), rows=12), shift, 1))


@pytest.mark.parametrize("rows", [1, 2, 30, 64])
def test_the_fixed_rows_fill_the_published_ranges_evenly_and_are_the_same_each_time(rows: int) -> None:
    drawn = parameter_rows(rows)
    assert drawn.shape == (rows, 3)
    for values, (low, high) in zip(drawn.T, [(0.80, 0.99), (5.3, 25.0), (3.5e5, 5e6)], strict=True):
        assert values.min() > low
        assert values.max() < high
        if rows == 64:  # one in each of 64 equal parts
            np.testing.assert_array_equal(np.sort((values - low) / (high - low) * 64 // 1), np.arange(64))
    parameter_rows.cache_clear()
    np.testing.assert_array_equal(parameter_rows(rows), drawn)


def test_a_table_is_read_by_the_names_of_its_columns(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("chain, min_area_km2, quantile, hwhm_degrees\n7, 4e5, 0.9, 12\n8, 5e5, 0.95, 20\n")
    np.testing.assert_array_equal(read_parameter_rows(str(path)), [[0.9, 12.0, 4e5], [0.95, 20.0, 5e5]])


def test_a_table_lies_in_the_home_folder_and_is_read_again_when_it_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for time, quantile in enumerate((0.9, 0.95)):
        table(tmp_path / "rows.csv", (quantile, 12.0, 4e5))
        os.utime(tmp_path / "rows.csv", (time, time))
        np.testing.assert_array_equal(read_parameter_rows("~/rows.csv"), [[quantile, 12.0, 4e5]])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read"),
        ("", "no column 'quantile'"),
        ("quantile,hwhm_degree,min_area_km2\n0.9,12,4e5\n", "no column 'hwhm_degrees'; did you mean 'hwhm_degree'"),
        ("quantile,hwhm_degrees,min_area_km2\n", "no rows"),
        ("quantile,hwhm_degrees,min_area_km2\n0.9,12,4e5\n95,12,4e5\n", "line 3, quantile is '95'"),
        ("quantile,hwhm_degrees,min_area_km2\n0.9,wide,4e5\n", "line 2, hwhm_degrees is 'wide'"),
        ("quantile,hwhm_degrees,min_area_km2\n0.9,12\n", "line 2, min_area_km2 is None"),
        ("quantile,hwhm_degrees,min_area_km2\n0.9,0,4e5\n", "line 2, hwhm_degrees is '0'"),
        ("quantile,hwhm_degrees,min_area_km2\n0.9,12,nan\n", "line 2, min_area_km2 is 'nan'"),
    ],
)
def test_a_bad_table_is_refused_by_name(tmp_path: Path, content: str | None, message: str) -> None:
    path = tmp_path / "rows.csv"
    if content is not None:
        path.write_text(content)
    with pytest.raises(InputError, match=message) as raised:
        atmospheric_rivers(Step({"IVT": weather(0)}, LAT, LON), parameters=str(path))
    assert str(path) in str(raised.value)


def test_no_rows_are_refused() -> None:
    with pytest.raises(InputError, match="rows of the rivers of bard is 0"):
        river_probability(Step({"IVT": weather(0)}, LAT, LON), rows=0)


def test_the_river_into_chile_is_found_in_merra_and_nothing_tropical(shared: Path) -> None:
    ds = open_fields(shared / "merra" / "IWV_IVT_MERRA_20170228_00.nc", channels=["IVT"])
    lat, lon, ivt = ds["lat"].values, ds["lon"].values, ds["IVT"].values[0]
    found = atmospheric_rivers(Step({"IVT": ivt}, lat, lon))
    chile = np.ix_((lat >= -61) & (lat <= -32), (lon >= 254) & (lon <= 292))
    assert found.mask[chile][ivt[chile] > 750].all()
    assert not found.mask[np.abs(lat) < 20].any()
    assert (ivt[np.abs(lat) < 20] > 500).any()
    assert found.mask.mean() == pytest.approx(0.05, abs=0.015)


def test_the_atlantic_river_of_2004_is_one_region(shared: Path) -> None:
    ds = open_fields(shared / "gfs" / "gfs_20041212T12_2p5deg.nc", channels=["IVT"])
    lat, lon, ivt = ds["lat"].values, ds["lon"].values, ds["IVT"].values[0]
    found = atmospheric_rivers(Step({"IVT": ivt}, lat, lon))
    labels = label_regions(found.mask, True)
    rows, columns = (lat >= 25) & (lat <= 45), (lon >= 288) & (lon <= 323)
    strong = ivt[np.ix_(rows, columns)] > 600
    assert np.unique(labels[np.ix_(rows, columns)][strong]).size == 1
    assert found.mask[np.ix_(rows, columns)][strong].all()
