from typing import Any

import cftime
import numpy as np
import pandas as pd
import pytest
import xarray as xr

from climseg.canonical import check_canonical
from climseg.channels import ATMOSPHERIC_RIVER, CAM5_CHANNELS, CHANNELS, LABELS, TROPICAL_CYCLONE
from climseg.errors import InputError
from climseg.grid import EARTH_RADIUS, great_circle_distance, relative_vorticity
from climseg.synthetic.further import FURTHER_CHANNELS
from climseg.synthetic.placed import (
    Course,
    HeatLow,
    PlacedBlob,
    PlacedCyclone,
    PlacedLow,
    PlacedPlume,
    PlacedRiver,
    ShearLine,
)
from climseg.synthetic.scene import make_scene

LAT, LON = np.linspace(-90.0, 90.0, 181), np.arange(360.0)
TIMES = pd.date_range("2001-09-01", periods=3, freq="6h")
OBJECTS = {
    "cyclones": [
        PlacedCyclone(Course(18.0, 130.0, bearing=300.0, speed=6.0)),
        PlacedCyclone(Course(-16.0, 0.4)),
    ],
    "rivers": [
        PlacedRiver((25.0, 200.0), (30.0, 220.0), (52.0, 235.0), east=12.0),
        PlacedRiver((-25.0, 340.0), (-32.0, 358.0), (-55.0, 372.0)),
    ],
    "decoys": [
        PlacedLow(Course(50.0, 60.0), depth=2500.0, radius=350e3, dryness=0.5),
        PlacedBlob(Course(8.0, 300.0), radius=500e3, excess=20.0, wind=(3.0, 0.0)),
        PlacedPlume((33.0, 100.0), (36.0, 106.0), (40.0, 108.0)),
        HeatLow(Course(24.0, 30.0)),
        ShearLine(Course(12.0, 260.0)),
    ],
}


@pytest.fixture(scope="module")
def scene() -> xr.Dataset:
    return make_scene(TIMES, LAT, LON, **OBJECTS)


def added_by(calm: xr.Dataset, **objects: Any) -> xr.Dataset:
    """What the objects add to the quiet climate."""
    return make_scene(TIMES[:1], LAT, LON, **objects).isel(time=0) - calm


@pytest.fixture(scope="module")
def calm() -> xr.Dataset:
    return make_scene(TIMES[:1], LAT, LON).isel(time=0)


def test_a_scene_is_canonical_and_has_all_channels_within_their_bounds(scene: xr.Dataset) -> None:
    check_canonical(scene, channels=(*CAM5_CHANNELS, *FURTHER_CHANNELS))
    for name in (*CAM5_CHANNELS, *FURTHER_CHANNELS):
        lowest, highest = CHANNELS[name].plausible
        assert lowest <= float(scene[name].min()) <= float(scene[name].max()) <= highest, name


def test_the_calm_climate_is_the_same_at_every_longitude_and_has_no_object(calm: xr.Dataset) -> None:
    for name in calm.data_vars:
        np.testing.assert_array_equal(calm[name].values, np.repeat(calm[name].values[:, :1], LON.size, 1))
    assert not calm[LABELS].any()
    middle = calm["IVT"].sel(lat=[-45.0, 45.0])
    assert float(middle.min()) > 50.0 and float(middle.max()) < 150.0
    assert float(calm["IVT"].max()) < 300.0


def test_the_magnitude_of_the_transport_is_that_of_its_parts(scene: xr.Dataset) -> None:
    np.testing.assert_allclose(scene["IVT"], np.hypot(scene["UIVT"], scene["VIVT"]), rtol=1e-6)
    np.testing.assert_allclose(scene["UIVT"], 0.8 * scene["TMQ"] * scene["U850"], rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(scene["VIVT"], 0.8 * scene["TMQ"] * scene["V850"], rtol=1e-5, atol=1e-4)


def test_layers_are_as_thick_as_their_air_is_warm(scene: xr.Dataset) -> None:
    # Hypsometric equation with the US Standard Atmosphere's gas constant, temperature linear in log pressure.
    t300 = scene["T200"] + (scene["T500"] - scene["T200"]) * np.log(300 / 200) / np.log(500 / 200)
    per_kelvin = 287.05 / 9.80665
    expected = per_kelvin * 0.5 * (scene["T500"] + t300) * np.log(500 / 300)
    np.testing.assert_allclose(scene["Z300"] - scene["Z500"], expected, atol=0.01)
    expected = per_kelvin * 0.5 * (scene["T200"] + t300) * np.log(300 / 200)
    np.testing.assert_allclose(scene["Z200"] - scene["Z300"], expected, atol=0.01)
    # US Standard Atmosphere 1976: 500 hPa at 5574 m, 300 hPa at 9164 m.
    middle = scene.sel(lat=slice(-50, 50))
    assert float(abs(middle["Z500"].mean() - 5700)) < 150
    assert float(abs(middle["Z300"].mean() - 9400)) < 250


@pytest.mark.parametrize("lat", [20.0, -20.0])
def test_a_cyclone_is_low_and_cyclonic_with_a_warm_thick_core_in_both_hemispheres(calm: xr.Dataset, lat: float) -> None:
    storm = added_by(calm, cyclones=[PlacedCyclone(Course(lat, 100.0), drop=5000.0)])
    centre = storm.sel(lat=lat, lon=100.0)
    assert float(centre["PSL"]) == pytest.approx(-5000.0, abs=20.0)
    for name in ("T500", "T200"):
        assert float(centre[name]) > 2.0
    for thick in (storm["Z300"] - storm["Z500"], storm["Z200"] - storm["Z1000"]):
        assert float(thick.sel(lat=lat, lon=100.0)) == pytest.approx(float(thick.max()))
    zeta = relative_vorticity(storm["U850"].values, storm["V850"].values, LAT, LON)
    assert np.sign(lat) * zeta[int(lat) + 90, 100] > 3e-4


def test_a_low_is_cold_and_thin_aloft(calm: xr.Dataset) -> None:
    low = added_by(calm, decoys=[PlacedLow(Course(50.0, 60.0), depth=2500.0, radius=350e3, dryness=0.5)])
    around = low.sel(lat=slice(45, 55), lon=slice(50, 62))
    assert float(around["T500"].min()) < -4.0
    assert float((around["Z300"] - around["Z500"]).min()) < -30.0
    assert float(around["Z500"].min()) < -100.0
    assert float(low["TMQ"].sel(lat=50.0, lon=60.0)) < 0.0


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_river_carries_vapour_poleward_along_its_axis(sign: float) -> None:
    river = PlacedRiver((sign * 25.0, 200.0), (sign * 30.0, 220.0), (sign * 52.0, 235.0))
    ds = make_scene(TIMES[:1], LAT, LON, rivers=[river]).isel(time=0)
    axis = river.at(0.0)
    assert 2500e3 < axis.length < 6000e3
    middle = axis.lat.size // 2
    here = ds.sel(lat=axis.lat[middle], lon=axis.lon[middle], method="nearest")
    assert 500.0 < float(here["IVT"]) < 1200.0
    assert sign * float(here["VIVT"]) > 250.0
    marked = ds["IVT"].where(ds[LABELS] == ATMOSPHERIC_RIVER)
    assert float(marked.median()) > 300.0
    # Width: labelled area over length.
    area = (111.2e3**2 * np.cos(np.radians(ds["lat"])) * (ds[LABELS] == ATMOSPHERIC_RIVER)).sum()
    assert 300e3 < float(area) / axis.length < 600e3


def test_a_cyclones_label_is_the_disk_where_its_wind_reaches_8_metres_per_second(scene: xr.Dataset) -> None:
    expected = np.zeros((LAT.size, LON.size), dtype=bool)
    for cyclone in OBJECTS["cyclones"]:
        state = cyclone.at(6.0)
        assert float(state.wind(state.label_radius)) >= 8.0 > float(state.wind(state.label_radius + 2e3))
        expected |= great_circle_distance(state.lat, state.lon, LAT[:, None], LON) <= state.label_radius
    np.testing.assert_array_equal(scene[LABELS].values[1] == TROPICAL_CYCLONE, expected)


def test_decoys_carry_no_label(scene: xr.Dataset) -> None:
    assert not make_scene(TIMES[:1], LAT, LON, decoys=OBJECTS["decoys"])[LABELS].any()


def test_each_decoy_changes_what_it_is_made_of_and_nothing_far_away(calm: xr.Dataset) -> None:
    made_of = [("PSL", -500.0), ("TMQ", 10.0), ("VIVT", 50.0), ("TS", 10.0), ("U850", 10.0)]
    places = [(50, 60), (8, 300), (36, 105), (24, 30), (12, 260)]
    for decoy, (name, least), place in zip(OBJECTS["decoys"], made_of, places, strict=True):
        change = added_by(calm, decoys=[decoy])
        far = great_circle_distance(*place, LAT[:, None], LON) > 2.0e6
        for channel in change.data_vars:
            assert not change[channel].values[far].any(), (decoy, channel)
        assert float((np.sign(least) * change[name]).max()) > abs(least), decoy


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_shear_line_is_cyclonic_by_its_wind_over_its_width(sign: float) -> None:
    line = ShearLine(Course(sign * 14.0, 260.0), width=150e3, wind=18.0)
    lat, lon = sign * 14.0 + np.arange(-16, 17) * 0.25, 250 + np.arange(80) * 0.25
    ds, still = (make_scene(TIMES[:1], lat, lon, decoys=d).isel(time=0) for d in ([line], []))
    zeta = relative_vorticity((ds - still)["U850"].values, (ds - still)["V850"].values, lat, lon)
    # The differences round the top of the tanh off a little.
    assert sign * zeta[16, 40] == pytest.approx(18.0 / 150e3, rel=0.05)


def test_a_region_equals_the_cut_of_the_globe(scene: xr.Dataset) -> None:
    region = make_scene(TIMES, LAT[95:150], LON[100:260], **OBJECTS)
    xr.testing.assert_identical(region, scene.isel(lat=slice(95, 150), lon=slice(100, 260)))


def test_a_finer_grid_has_the_same_values_where_points_coincide(scene: xr.Dataset) -> None:
    lat, lon = np.linspace(-60.0, -10.0, 101), np.arange(340.0, 380.0, 0.5)
    finer = make_scene(TIMES[:1], lat, lon, **OBJECTS).isel(time=0, lat=slice(None, None, 2), lon=slice(None, None, 2))
    coarse = scene.isel(time=0).roll(lon=20, roll_coords=False).sel(lat=slice(-60, -10)).isel(lon=slice(0, 40))
    for name in scene.data_vars:
        np.testing.assert_array_equal(finer[name].values, coarse[name].values, err_msg=str(name))


def test_rolled_and_turned_axes_change_nothing(scene: xr.Dataset) -> None:
    turned = make_scene(TIMES[:1], LAT[::-1], np.roll(LON, 77), **OBJECTS)
    for name in scene.data_vars:
        np.testing.assert_array_equal(turned[name].values, scene[name].values[:1], err_msg=str(name))


def test_a_step_alone_equals_the_same_step_of_all_when_the_start_is_named(scene: xr.Dataset) -> None:
    alone = make_scene(TIMES[2:], LAT, LON, **OBJECTS, start=TIMES[0])
    xr.testing.assert_identical(alone, scene.isel(time=[2]))


@pytest.mark.parametrize("course", [Course(18.0, 359.0, 75.0, 7.0), Course(-40.0, 10.0, 250.0, 12.0)])
def test_an_object_moves_with_the_stated_speed_along_a_great_circle(course: Course) -> None:
    places = [course(hours) for hours in (0.0, 6.0, 48.0)]
    assert places[0] == pytest.approx((course.lat, course.lon))
    for hours, place in zip((6.0, 48.0), places[1:], strict=True):
        metres = float(great_circle_distance(*places[0], *place))
        assert metres == pytest.approx(course.speed * 3600 * hours)
        assert 0.0 <= place[1] < 360.0
    assert float(great_circle_distance(*places[1], *places[2])) == pytest.approx(course.speed * 3600 * 42.0)


def test_the_pressure_minimum_follows_its_course(scene: xr.Dataset) -> None:
    north = scene["PSL"].sel(lat=slice(5, 30), lon=slice(110, 150))
    for index, hours in enumerate((0.0, 6.0, 12.0)):
        lowest = north.isel(time=index).where(lambda p: p == p.min(), drop=True)
        place = OBJECTS["cyclones"][0].place(hours)
        apart = great_circle_distance(float(lowest["lat"][0]), float(lowest["lon"][0]), *place)
        assert float(apart) < 0.75 * np.radians(1.0) * EARTH_RADIUS


def test_a_river_moves_east_with_the_stated_speed(scene: xr.Dataset) -> None:
    river = OBJECTS["rivers"][0]
    np.testing.assert_allclose(river.at(12.0).lon - river.at(0.0).lon, 6.0)
    labels = (scene[LABELS] == ATMOSPHERIC_RIVER).sel(lat=slice(20, 60), lon=slice(150, 300)).values
    np.testing.assert_array_equal(labels[2][:, 6:], labels[0][:, :-6])


def test_things_live_from_birth_to_death() -> None:
    times = pd.date_range("2001-01-01", periods=5, freq="6h")
    cyclone = PlacedCyclone(Course(18.0, 130.0), birth=6.0, death=18.0)
    ds = make_scene(times, LAT[100:120], LON[120:140], cyclones=[cyclone])
    assert (ds[LABELS] == TROPICAL_CYCLONE).any(["lat", "lon"]).values.tolist() == [False, True, True, True, False]


def test_a_cyclone_overwrites_a_river() -> None:
    river = PlacedRiver((25.0, 200.0), (30.0, 220.0), (52.0, 235.0))
    cyclone = PlacedCyclone(Course(30.0, 210.0))
    both = make_scene(TIMES[:1], LAT, LON, rivers=[river], cyclones=[cyclone])[LABELS].isel(time=0)
    near = great_circle_distance(30.0, 210.0, LAT[:, None], LON) <= cyclone.at(0.0).label_radius
    assert (both.values[near] == TROPICAL_CYCLONE).all()
    assert (both == ATMOSPHERIC_RIVER).any()


def test_a_place_may_be_any_function_of_the_hours() -> None:
    cyclone = PlacedCyclone(lambda hours: (18.0 + hours, 130.0))
    ds = make_scene(TIMES, LAT, LON, cyclones=[cyclone])
    assert ds["PSL"].sel(lon=130.0, lat=slice(10, 40)).idxmin("lat").values.tolist() == [18.0, 24.0, 30.0]


def test_land_and_the_season_are_there_when_asked_for(calm: xr.Dataset) -> None:
    assert float(calm["PS"].min()) == pytest.approx(float(calm["PSL"].min()), rel=1e-6)
    there = make_scene(TIMES[:1], LAT, LON, land=True).isel(time=0)
    assert float(there["PS"].min()) < 8e4
    july = make_scene(TIMES[:1], LAT, LON, season=1.0).isel(time=0)
    assert float((july - calm)["T500"].sel(lat=50.0).min()) > 4.0


def test_other_calendars_count_hours_too() -> None:
    times = [cftime.DatetimeNoLeap(2004, 2, 28, 18), cftime.DatetimeNoLeap(2004, 3, 1, 0)]
    cyclone = PlacedCyclone(Course(18.0, 130.0), birth=3.0, death=9.0)  # six hours after the first step
    ds = make_scene(times, LAT[100:120], LON[120:140], cyclones=[cyclone])
    assert (ds[LABELS] == TROPICAL_CYCLONE).any(["lat", "lon"]).values.tolist() == [False, True]


def test_a_season_out_of_range_is_refused() -> None:
    with pytest.raises(InputError, match="season is 7; expected -1"):
        make_scene(TIMES, LAT, LON, season=7.0)
