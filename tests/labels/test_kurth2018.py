"""The heuristic of Kurth et al. 2018 on fields whose answer is known, and on real ones."""

import inspect
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

from climseg.canonical import LABEL_ATTRIBUTES, to_canonical
from climseg.errors import InputError
from climseg.labels.candidates import teca_candidates
from climseg.labels.kurth2018 import CYCLONE_CHANNELS, atmospheric_rivers, kurth2018, mark_cyclones, storm_radius

Fields = dict[str, np.ndarray]
R = 6_371_220.0
LAT, LON = np.arange(-89.5, 90.0), np.arange(0.5, 360.0)
OPEN_LAT, OPEN_LON = np.arange(-10.0, 50.25, 0.5), np.arange(280.0, 340.25, 0.5)
CONF = Path(__file__).parents[2] / "conf" / "labels"


def moist_band(south: float, north: float, west: float, east: float, tmq: float = 100.0) -> np.ndarray:
    """TMQ between four cell edges (the eastern one beyond 360 over the seam), nothing elsewhere."""
    inside = (LON - west) % 360 < east - west
    return np.where(((south < LAT) & (north > LAT))[:, None] & inside[None, :], tmq, 0.0)


# Rivers. A band of 8 degrees of longitude from 40N to 60N is 569 km wide and has a diagonal of 2292 km.
SIN40, SIN60, COS40, COS60 = np.sin(np.radians(40)), np.sin(np.radians(60)), np.cos(np.radians(40)), 0.5
BAND_WIDTH = R * np.radians(8) * (SIN60 - SIN40) / np.radians(20)
BAND_DIAGONAL = R * np.arccos(SIN40 * SIN60 + COS40 * COS60 * np.cos(np.radians(8)))


def test_the_known_band_is_569_km_wide_and_2292_km_long() -> None:
    assert (round(BAND_WIDTH / 1e3), round(BAND_DIAGONAL / 1e3)) == (569, 2292)


@pytest.mark.parametrize("west", [100.0, 356.0])
def test_a_narrow_long_moist_band_is_a_river_over_the_seam_too(west: float) -> None:
    tmq = moist_band(40, 60, west, west + 8)
    np.testing.assert_array_equal(atmospheric_rivers(tmq, LAT, LON), tmq > 0)


@pytest.mark.parametrize(
    ("thresholds", "kept"),
    [
        ({"max_width_m": BAND_WIDTH * 1.001}, True),
        ({"max_width_m": BAND_WIDTH * 0.999}, False),
        ({"min_diagonal_m": BAND_DIAGONAL * 0.999}, True),
        ({"min_diagonal_m": BAND_DIAGONAL * 1.001}, False),
        # The driest row, 40.5N, keeps 1 - exp(-40.5^2 / 722) = 0.897 of 100 kg/m2.
        ({"threshold": 89.0}, True),
        ({"threshold": 99.9}, False),
    ],
)
def test_each_threshold_decides_about_the_known_band(thresholds: dict[str, float], kept: bool) -> None:
    tmq = moist_band(40, 60, 100, 108)
    np.testing.assert_array_equal(atmospheric_rivers(tmq, LAT, LON, **thresholds), (tmq > 0) & kept)


@pytest.mark.parametrize(
    ("south", "north", "west", "east"),
    [(40, 44, 100, 120), (40, 60, 100, 130), (40, 50, 100, 104), (50, 52, 0, 360)],
)
def test_regions_too_wide_or_too_short_are_no_rivers(south: float, north: float, west: float, east: float) -> None:
    assert not atmospheric_rivers(moist_band(south, north, west, east), LAT, LON).any()


def test_two_halves_over_the_seam_count_together_on_a_closed_grid_only() -> None:
    # The western half alone has a diagonal of 1,240 km, the two together 1,550 km.
    tmq = moist_band(40, 50, 353, 367)
    assert atmospheric_rivers(tmq, LAT, LON, max_width_m=2e6).sum() == 140
    assert not atmospheric_rivers(tmq[:, 1:], LAT, LON[1:], max_width_m=2e6).any()


def test_the_damping_keeps_39_percent_at_19_degrees() -> None:
    lat = np.array([-19.0, -10.0, 0.0, 10.0, 19.0])
    kept = 1 - np.exp(-0.5)
    tmq = np.full((5, 4), 24.0 / kept - 0.01)
    tmq[:, 1] = tmq[:, 3] = 24.0 / kept + 0.01
    lon = np.array([10.0, 11.0, 12.0, 13.0])
    marked = atmospheric_rivers(tmq, lat, lon, min_diagonal_m=0.0, max_width_m=np.inf)
    expected = np.zeros((5, 4), dtype=bool)
    expected[[[0], [4]], [[1, 3]]] = True
    np.testing.assert_array_equal(marked, expected)


def test_the_first_cell_belongs_to_the_river_that_touches_it() -> None:
    lat, lon = np.arange(30.0, 60.0), np.arange(100.0, 140.0)
    tmq = np.zeros((30, 40))
    tmq[:20, :6] = 100.0
    assert atmospheric_rivers(tmq, lat, lon)[0, 0]
    np.testing.assert_array_equal(atmospheric_rivers(tmq, lat, lon), tmq > 0)


def test_cells_that_touch_by_a_corner_are_two_regions() -> None:
    tmq = moist_band(40, 48, 100, 108) + moist_band(48, 56, 108, 116)
    assert atmospheric_rivers(tmq, LAT, LON, min_diagonal_m=1.2e6).sum() == 0
    joined = tmq + moist_band(47, 48, 108, 109)
    assert atmospheric_rivers(joined, LAT, LON, min_diagonal_m=1.2e6).sum() == 129


@settings(max_examples=25, deadline=None)
@given(shift=st.integers(0, 71), seed=st.integers(0, 10_000))
def test_a_roll_of_the_longitudes_rolls_the_rivers(shift: int, seed: int) -> None:
    lat, lon = np.arange(-87.5, 90.0, 5.0), np.arange(0.0, 360.0, 5.0)
    noise = np.random.default_rng(seed).standard_normal((36, 72))
    tmq = 22.0 + 40.0 * ndimage.gaussian_filter(noise, 1.2, mode=("nearest", "wrap"))
    rivers = atmospheric_rivers(tmq, lat, lon)
    np.testing.assert_array_equal(np.roll(rivers, shift, 1), atmospheric_rivers(np.roll(tmq, shift, 1), lat, lon))


# Cyclones. The wind of the made storm, 40 m/s times 2x / (1 + x^2), is 17.5 m/s at x = 4.34 degrees.
R0 = (2 + np.sqrt(4 - 4 * 0.4375**2)) / (2 * 0.4375)


def test_the_radius_is_where_the_mean_wind_falls_below_the_threshold(stormy: Callable[..., Fields]) -> None:
    fields = stormy(OPEN_LAT, OPEN_LON, [(20.0, 310.0)])
    (storm,) = teca_candidates(fields, OPEN_LAT, OPEN_LON)
    wind = np.hypot(fields["UBOT"], fields["VBOT"])
    assert storm_radius(wind, storm, OPEN_LAT, OPEN_LON, 17.5, 6.0) == pytest.approx(R0, abs=0.1)
    assert storm_radius(wind, storm, OPEN_LAT, OPEN_LON, 50.0, 6.0) == 0.0
    assert storm_radius(wind, storm, OPEN_LAT, OPEN_LON, 5.0, 6.0) == 6.0
    assert storm_radius(wind, storm, OPEN_LAT, OPEN_LON, 17.5, 31.0) is None


def test_the_mask_is_what_a_plain_reading_of_the_definition_marks(stormy: Callable[..., Fields]) -> None:
    fields = stormy(OPEN_LAT, OPEN_LON, [(20.0, 310.0)])
    half = R0 + 6.6
    rows, columns = np.abs(OPEN_LAT - 20.0) <= half, np.abs(OPEN_LON - 310.0) <= half
    cells = np.ix_(rows, columns)

    def largest(mask: np.ndarray) -> np.ndarray:
        labels, _ = ndimage.label(mask, np.ones((3, 3)))
        return labels == np.argmax(np.bincount(labels[mask]))

    union = np.zeros((rows.sum(), columns.sum()), dtype=bool)
    for values in (fields["TMQ"], np.abs(fields["U850"]), np.abs(fields["V850"]), fields["PRECT"]):
        union |= largest(values[cells] > np.percentile(values[cells], 93))
    expected = np.zeros((OPEN_LAT.size, OPEN_LON.size), dtype=bool)
    expected[cells] = largest(union)
    marked = mark_cyclones(fields, OPEN_LAT, OPEN_LON)
    assert expected.sum() > 100
    np.testing.assert_array_equal(marked, expected)


def test_a_storm_over_the_seam_is_marked_like_any_other(stormy: Callable[..., Fields]) -> None:
    lat, lon = np.arange(-10.0, 50.25, 0.5), np.arange(0.0, 360.0, 0.5)
    inland = mark_cyclones(stormy(lat, lon, [(20.0, 180.0)]), lat, lon)
    for column in (0, 1, 719):
        at_seam = mark_cyclones(stormy(lat, lon, [(20.0, lon[column])]), lat, lon)
        assert at_seam[:, 0].any()
        assert at_seam[:, -1].any()
        np.testing.assert_array_equal(at_seam, np.roll(inland, column - 360, axis=1))


def test_hemispheres_mirror_each_other(stormy: Callable[..., Fields]) -> None:
    lat = np.arange(-50.0, 50.25, 0.5)
    north = mark_cyclones(stormy(lat, OPEN_LON, [(20.0, 310.0)]), lat, OPEN_LON)
    south = mark_cyclones(stormy(lat, OPEN_LON, [(-20.0, 310.0)]), lat, OPEN_LON)
    assert north.any()
    np.testing.assert_array_equal(north, south[::-1])


def test_two_storms_whose_boxes_overlap_both_stay(stormy: Callable[..., Fields]) -> None:
    lat, lon = np.arange(-10.0, 50.25, 0.5), np.arange(260.0, 360.0, 0.5)
    centres = [(18.0, 300.0), (22.0, 314.0)]  # the boxes are 22 degrees wide
    both = mark_cyclones(stormy(lat, lon, centres), lat, lon)
    for centre in centres:
        alone = mark_cyclones(stormy(lat, lon, [centre]), lat, lon)
        assert (both & alone).sum() > 0.5 * alone.sum()
        assert both[lat == centre[0], lon == centre[1]].all()


@pytest.mark.parametrize("centre", [(46.0, 310.0), (42.0, 310.0), (20.0, 282.0), (20.0, 289.0)])
def test_a_storm_at_the_edge_of_an_open_grid_is_not_marked_and_the_log_says_why(
    centre: tuple[float, float], stormy: Callable[..., Fields], caplog: pytest.LogCaptureFixture
) -> None:
    # 289 is far enough from the edge for every criterion, but not for the box.
    with caplog.at_level(logging.INFO, "climseg"):
        assert not mark_cyclones(stormy(OPEN_LAT, OPEN_LON, [centre]), OPEN_LAT, OPEN_LON).any()
    assert "beyond the grid" in caplog.text


def test_a_box_without_any_precipitation_value_still_gives_a_mask(stormy: Callable[..., Fields]) -> None:
    fields = stormy(OPEN_LAT, OPEN_LON, [(20.0, 310.0)])
    fields["PRECT"][:] = np.nan
    assert mark_cyclones(fields, OPEN_LAT, OPEN_LON).any()


# The whole heuristic.


def storm_and_river(stormy: Callable[..., Fields], lat: np.ndarray, lon: np.ndarray, west: float) -> Fields:
    """A storm at 20N and a river at 40N to 60N, both east of ``west``."""
    fields = stormy(lat, lon, [(20.0, west % 360)])
    inside = (lon - west) % 360 < 8
    fields["TMQ"][np.ix_((lat > 40) & (lat < 60), inside)] = 60.0
    return fields


GLOBAL_LAT, GLOBAL_LON = np.arange(-89.5, 90.0), np.arange(360.0)


def test_storm_river_and_background_have_their_class_numbers(
    stormy: Callable[..., Fields], canonical: Callable[..., xr.Dataset]
) -> None:
    ds = canonical(GLOBAL_LAT, GLOBAL_LON, storm_and_river(stormy, GLOBAL_LAT, GLOBAL_LON, 100.0))
    labels = kurth2018(ds, tc={"min_vorticity": 1e-4})
    assert labels.name == "LABELS"
    assert labels.dtype == np.int8
    assert labels.dims == ("time", "lat", "lon")
    assert labels.sel(lat=20.5, lon=100).item() == 1
    assert labels.sel(lat=50.5, lon=104).item() == 2
    assert labels.sel(lat=-50.5, lon=104).item() == 0
    assert (labels == 2).sum() == 20 * 8


def test_the_comment_says_what_the_labels_are_and_are_not(
    stormy: Callable[..., Fields], canonical: Callable[..., xr.Dataset]
) -> None:
    ds = canonical(GLOBAL_LAT, GLOBAL_LON, stormy(GLOBAL_LAT, GLOBAL_LON, []))
    attributes = kurth2018(ds, ar={"threshold": 21.0}).attrs
    assert "per time step; without the two-day track rule" in attributes["comment"]
    assert "threshold 21" in attributes["definition"]
    assert "min_wind 17" in attributes["definition"]
    assert attributes["flag_meanings"] == LABEL_ATTRIBUTES["flag_meanings"]
    assert "tropical cyclones: not looked for" in kurth2018(ds, tropical_cyclones=False).attrs["definition"]


def test_lazy_fields_give_lazy_labels_and_chunks_change_nothing(
    stormy: Callable[..., Fields], canonical: Callable[..., xr.Dataset]
) -> None:
    steps = [storm_and_river(stormy, GLOBAL_LAT, GLOBAL_LON, west) for west in (100.0, 355.0)]
    ds = canonical(GLOBAL_LAT, GLOBAL_LON, *steps, stormy(GLOBAL_LAT, GLOBAL_LON, []))
    whole = kurth2018(ds, tc={"min_vorticity": 1e-4})
    assert [int(n) for n in (whole > 0).any(("lat", "lon"))] == [1, 1, 0]
    for chunks in ({"time": 1}, {"time": 2, "lat": 50, "lon": 100}):
        lazy = kurth2018(ds.chunk(chunks), tc={"min_vorticity": 1e-4})
        assert lazy.chunks is not None
        xr.testing.assert_identical(lazy.compute(), whole)


@pytest.mark.parametrize("shift", [1, 77, 260])
def test_a_roll_of_the_longitudes_rolls_the_labels(
    shift: int, stormy: Callable[..., Fields], canonical: Callable[..., xr.Dataset]
) -> None:
    fields = storm_and_river(stormy, GLOBAL_LAT, GLOBAL_LON, 100.0)
    rolled = {name: np.roll(values, shift, axis=1) for name, values in fields.items()}
    labels = kurth2018(canonical(GLOBAL_LAT, GLOBAL_LON, fields), tc={"min_vorticity": 1e-4}).values
    assert set(np.unique(labels)) == {0, 1, 2}
    again = kurth2018(canonical(GLOBAL_LAT, GLOBAL_LON, rolled), tc={"min_vorticity": 1e-4}).values
    np.testing.assert_array_equal(again, np.roll(labels, shift, axis=2))


@pytest.mark.parametrize("channel", CYCLONE_CHANNELS)
def test_a_missing_value_in_any_field_in_use_stays_missing(
    channel: str, stormy: Callable[..., Fields], canonical: Callable[..., xr.Dataset]
) -> None:
    fields = storm_and_river(stormy, GLOBAL_LAT, GLOBAL_LON, 100.0)
    fields[channel][140, 103] = np.nan  # in the river
    ds = canonical(GLOBAL_LAT, GLOBAL_LON, fields)
    labels = kurth2018(ds)
    assert np.argwhere(labels.values == -1).tolist() == [[0, 140, 103]]
    # Rivers alone need TMQ alone.
    assert kurth2018(ds, tropical_cyclones=False)[0, 140, 103].item() == (-1 if channel == "TMQ" else 2)


def test_missing_channels_are_refused_by_name_with_the_way_to_rivers_alone(
    stormy: Callable[..., Fields], canonical: Callable[..., xr.Dataset]
) -> None:
    ds = canonical(GLOBAL_LAT, GLOBAL_LON, storm_and_river(stormy, GLOBAL_LAT, GLOBAL_LON, 100.0))
    with pytest.raises(InputError, match=r"no channel UBOT, VBOT; .*labels\.tropical_cyclones=false"):
        kurth2018(ds.drop_vars(["UBOT", "VBOT"]))
    assert set(np.unique(kurth2018(ds[["TMQ"]], tropical_cyclones=False))) == {0, 2}
    with pytest.raises(InputError, match="no channel TMQ; "):
        kurth2018(ds.drop_vars("TMQ"), tropical_cyclones=False)


def test_an_unknown_threshold_is_refused_and_a_near_one_suggested(
    stormy: Callable[..., Fields], canonical: Callable[..., xr.Dataset]
) -> None:
    ds = canonical(GLOBAL_LAT, GLOBAL_LON, stormy(GLOBAL_LAT, GLOBAL_LON, []))
    with pytest.raises(InputError, match=r"labels\.ar: 'treshold' is not a threshold; did you mean 'threshold'\?"):
        kurth2018(ds, ar={"treshold": 20.0})


@pytest.mark.parametrize(("step", "warns"), [(1.0, False), (2.5, True)])
def test_a_coarse_grid_is_named_with_the_criteria_that_lose_meaning(
    step: float,
    warns: bool,
    stormy: Callable[..., Fields],
    canonical: Callable[..., xr.Dataset],
    caplog: pytest.LogCaptureFixture,
) -> None:
    lat, lon = np.arange(-90.0, 90.1, step), np.arange(0.0, 360.0, step)
    kurth2018(canonical(lat, lon, stormy(lat, lon, [])))
    assert ("a grid of 2.5 degrees is coarse" in caplog.text) is warns
    assert ("warm core are smoothed" in caplog.text) is warns


def test_the_preset_holds_the_defaults_of_the_code_and_is_complete() -> None:
    with initialize_config_dir(str(CONF), version_base=None):
        preset = compose("kurth2018")

    def defaults(*functions: Callable[..., Any]) -> dict[str, float]:
        parameters = [p for f in functions for p in inspect.signature(f).parameters.values()]
        return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}

    assert dict(preset.ar) == defaults(atmospheric_rivers)
    assert dict(preset.tc) == defaults(mark_cyclones, teca_candidates)
    assert preset.tropical_cyclones is True


def real(name: str, shared: Path) -> xr.Dataset:
    path = shared / "gfs" / name
    with xr.open_dataset(path) as ds:
        return to_canonical(ds.drop_vars(["uivt", "vivt", "IVT"]).load(), str(path))


def coarse_preset() -> Callable[..., xr.DataArray]:
    with initialize_config_dir(str(CONF), version_base=None):
        made: Callable[..., xr.DataArray] = instantiate(compose("kurth2018_coarse"))
    return made


def test_the_coarse_preset_finds_jova_and_irwin_and_nothing_else_in_a_real_analysis(shared: Path) -> None:
    labels = coarse_preset()(real("gfs_20111011T00_2p5deg.nc", shared))[0]
    cyclones = labels.where(labels == 1, drop=True)
    assert labels.sel(lat=15.0, lon=255.0).item() == 1  # Jova, 16.8N 106.2W in the best track
    assert labels.sel(lat=17.5, lon=242.5).item() == 1  # Irwin, 15.1N 116.5W
    assert cyclones.lat.min() > 10
    assert cyclones.lat.max() < 20
    assert cyclones.lon.min() > 240
    assert cyclones.lon.max() < 262


def test_the_coarse_preset_marks_the_atlantic_river_of_december_2004(shared: Path) -> None:
    ds = real("gfs_20041212T12_2p5deg.nc", shared)
    with pytest.raises(InputError, match="no channel UBOT, VBOT"):
        coarse_preset()(ds)
    labels = coarse_preset()(ds, tropical_cyclones=False)[0]
    north_atlantic = labels.sel(lat=slice(20, 60), lon=slice(280, 340))
    rows, columns = np.nonzero(north_atlantic.values == 2)
    assert rows.size > 40
    # 25-45N, 72-37W by its makers.
    assert north_atlantic.lat.values[[rows.min(), rows.max()]].tolist() == [25.0, 45.0]
    assert 285 <= north_atlantic.lon.values[columns.min()] <= 290
    assert 320 <= north_atlantic.lon.values[columns.max()] <= 327.5
