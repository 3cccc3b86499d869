import cftime
import numpy as np
import pandas as pd
import pytest
import xarray as xr

from climseg.canonical import check_canonical
from climseg.channels import ATMOSPHERIC_RIVER, CAM5_CHANNELS, LABELS, TROPICAL_CYCLONE
from climseg.errors import InputError
from climseg.grid import cell_area, great_circle_distance
from climseg.synthetic import make_atmosphere, true_objects
from climseg.synthetic.catalogue import objects_at
from climseg.synthetic.clock import model_days, time_axis

LAT, LON = np.linspace(-90.0, 90.0, 73), np.arange(144) * 2.5
YEAR = pd.date_range("2001-01-03", "2001-12-31", periods=36)


@pytest.fixture(scope="module")
def year() -> xr.Dataset:
    return make_atmosphere(YEAR, LAT, LON)


# Means and standard deviations over all pixels and times, not weighted by area: stats.h5 of MLPerf HPC DeepCAM
# (121,266 CAM5 samples). Its float32 squares spoil small relative deviations, so the deviation of PSL is that of
# ClimateNet's published models, and those of T200, T500 and Z200 are of one GFS analysis (2011-10-11, 2.5 degrees).
PUBLISHED = {
    "TMQ": (18.6589, 15.885),
    "U850": (1.56981, 8.2774),
    "V850": (0.212559, 6.2158),
    "UBOT": (0.116418, 6.6296),
    "VBOT": (0.211531, 5.7492),
    "QREFHT": (0.00757488, 0.0062743),
    "PS": (96592.7, 9026.1),
    "PSL": (100782.0, 1461.2),
    "T200": (213.033, 6.876),
    "T500": (252.274, 13.139),
    "PRECT": (3.00336e-08, 1.5716e-07),
    "TS": (278.53, 19.018),
    "TREFHT": (278.101, 19.298),
    "Z1000": (474.539, 829.65),
    "Z200": (11699.3, 640.75),
    "ZBOT": (61.1454, 5.174),
}


@pytest.mark.parametrize("name", CAM5_CHANNELS)
def test_means_and_spreads_are_those_published_for_cam5(year: xr.Dataset, name: str) -> None:
    values = year[name].values.astype(np.float64)
    mean, std = PUBLISHED[name]
    assert abs(values.mean() - mean) < 0.1 * std
    assert 0.7 < values.std() / std < 1.6


def test_the_dataset_is_canonical_and_complete(year: xr.Dataset) -> None:
    check_canonical(year, channels=CAM5_CHANNELS)
    assert year[LABELS].dtype == np.int8
    assert all(np.isfinite(year[name].values).all() for name in CAM5_CHANNELS)
    for name in ("TMQ", "QREFHT", "PRECT", "PS"):
        assert float(year[name].min()) >= 0.0


def test_class_shares_are_those_of_rare_weather_and_every_step_has_some(year: xr.Dataset) -> None:
    labels = year[LABELS].values
    assert 0.001 < (labels == TROPICAL_CYCLONE).mean() < 0.006
    assert 0.02 < (labels == ATMOSPHERIC_RIVER).mean() < 0.06
    for label in (TROPICAL_CYCLONE, ATMOSPHERIC_RIVER):
        assert ((labels == label).any((1, 2))).mean() > 0.9


def test_storms_and_rivers_lie_across_the_seam(year: xr.Dataset) -> None:
    rivers = year[LABELS].values == ATMOSPHERIC_RIVER
    assert (rivers[:, :, 0] & rivers[:, :, -1]).any()
    autumn = true_objects(pd.date_range("2001-08-20", "2001-09-30", freq="1D"))
    cyclones = [o for o in autumn if o.label == TROPICAL_CYCLONE]
    across = next(o for o in cyclones if min(o.lon, 360.0 - o.lon) < 1.0 and o.radius > 350e3)
    cyclone = make_atmosphere([across.time], LAT, LON)[LABELS].values[0] == TROPICAL_CYCLONE
    assert (cyclone[:, 0] & cyclone[:, -1]).any()


def test_a_step_alone_equals_the_same_step_of_the_year(year: xr.Dataset) -> None:
    xr.testing.assert_identical(make_atmosphere(YEAR[20:21], LAT, LON), year.isel(time=[20]))


def test_a_region_equals_the_cut_of_the_globe(year: xr.Dataset) -> None:
    region = make_atmosphere(YEAR[7:8], LAT[40:60], LON[30:80])
    xr.testing.assert_identical(region, year.isel(time=[7], lat=slice(40, 60), lon=slice(30, 80)))


def test_nothing_is_special_at_the_seam(year: xr.Dataset) -> None:
    # The same places, counted on beyond 360 degrees: all but one of the globe's columns, from 180 on.
    rolled = make_atmosphere(YEAR[11:12], LAT, 180.0 + LON[:-1])
    expected = year.isel(time=[11]).roll(lon=72, roll_coords=False).isel(lon=slice(0, 143))
    for name in (*CAM5_CHANNELS, LABELS):
        np.testing.assert_array_equal(rolled[name].values, expected[name].values, err_msg=name)


def test_a_finer_grid_has_the_same_values_where_points_coincide(year: xr.Dataset) -> None:
    finer = make_atmosphere(YEAR[3:4], np.linspace(-90.0, 90.0, 145), np.arange(288) * 1.25)
    xr.testing.assert_equal(finer.isel(lat=slice(None, None, 2), lon=slice(None, None, 2)), year.isel(time=[3]))


def test_another_seed_is_another_world(year: xr.Dataset) -> None:
    other = make_atmosphere(YEAR[:1], LAT, LON, seed=1)
    assert abs(np.corrcoef(other["V850"].values.ravel(), year["V850"].values[0].ravel())[0, 1]) < 0.3


def test_cyclone_labels_are_the_disks_of_the_listed_cyclones_and_nothing_else(year: xr.Dataset) -> None:
    for index in (0, 17, 30):
        expected = np.zeros((LAT.size, LON.size), dtype=bool)
        for thing in true_objects(YEAR[index : index + 1]):
            if thing.label == TROPICAL_CYCLONE:
                expected |= great_circle_distance(LAT[:, None], LON[None, :], thing.lat, thing.lon) <= thing.radius
        np.testing.assert_array_equal(year[LABELS].values[index] == TROPICAL_CYCLONE, expected)


def test_decoys_are_there_and_carry_no_label_of_their_own(year: xr.Dataset) -> None:
    days, year_length = model_days(time_axis(YEAR))
    lows = plumes = blobs = 0
    for index, day in enumerate(days):
        alive = objects_at(0, float(day), year_length)
        storms = [c.at(float(day)) for _, c in alive.cyclones]
        labels = year[LABELS].isel(time=index)
        for low in (d.at(float(day)) for d in alive.dry_lows):
            here = labels.sel(lat=low.lat, lon=low.lon % 360.0, method="nearest")
            if low.depth > 1000.0 and not any(
                great_circle_distance(low.lat, low.lon, s.lat, s.lon) < 1500e3 for s in storms
            ):
                assert int(here) != TROPICAL_CYCLONE
                wind = make_speed(year.isel(time=index), low.lat, low.lon)
                lows += wind > 12.0  # as strong as a tropical storm
        plumes += len(alive.plumes)
        blobs += len(alive.blobs)
    assert lows > 30
    assert plumes > 30
    assert blobs > 30


def make_speed(step: xr.Dataset, lat: float, lon: float) -> float:
    """Strongest 850 hPa wind within some 500 km of a point."""
    near = great_circle_distance(LAT[:, None], LON[None, :], lat, lon) < 500e3
    return float(np.hypot(step["U850"].values, step["V850"].values)[near].max())


def test_lows_are_low_cold_and_below_a_trough_in_middle_latitudes(year: xr.Dataset) -> None:
    middle = year.sel(lat=slice(35, 65))
    anomaly = middle - middle.mean("lon")
    psl = anomaly["PSL"].values.ravel()
    assert np.corrcoef(psl, anomaly["Z200"].values.ravel())[0, 1] > 0.3
    assert np.corrcoef(anomaly["T500"].values.ravel(), anomaly["Z200"].values.ravel())[0, 1] > 0.7
    assert np.corrcoef(anomaly["T200"].values.ravel(), anomaly["T500"].values.ravel())[0, 1] < -0.5


def test_poleward_flow_is_moist_in_both_hemispheres(year: xr.Dataset) -> None:
    for rows, sign in ((slice(25, 60), 1.0), (slice(-60, -25), -1.0)):
        part = year.sel(lat=rows)
        moist = (part["TMQ"] - part["TMQ"].mean("lon")).values.ravel()
        assert sign * np.corrcoef(part["V850"].values.ravel(), moist)[0, 1] > 0.3


def test_rivers_carry_most_vapour_and_the_heights_lie_between_their_neighbours() -> None:
    ds = make_atmosphere(YEAR[::6], LAT, LON, more_channels=True)
    np.testing.assert_allclose(ds["IVT"], np.hypot(ds["UIVT"], ds["VIVT"]), rtol=1e-6)
    by_class = [float(ds["IVT"].where(ds[LABELS] == label).median()) for label in range(3)]
    # kg/m/s: 250 is a usual threshold of rivers (Rutz et al. 2014); cyclones exceed it by far.
    assert by_class[0] < 150.0 < 250.0 < by_class[ATMOSPHERIC_RIVER] < by_class[TROPICAL_CYCLONE] < 1500.0
    layers = [
        (ds[upper] - ds[lower]).values for upper, lower in (("Z500", "Z1000"), ("Z300", "Z500"), ("Z200", "Z300"))
    ]
    assert all(layer.min() > 1500.0 for layer in layers)


def test_the_lowest_level_lies_as_in_cam5(year: xr.Dataset) -> None:
    # ClimateNet's expert points: ZBOT = 0.2202 TREFHT; Z1000 is never below that level.
    np.testing.assert_allclose(year["ZBOT"].values, 0.2202 * year["TREFHT"].values, rtol=1e-5)
    assert float((year["Z1000"] - year["ZBOT"]).min()) > -0.01


def test_a_noleap_calendar_is_kept() -> None:
    times = [cftime.DatetimeNoLeap(2000, 2, 28, 18), cftime.DatetimeNoLeap(2000, 3, 1, 0)]
    ds = make_atmosphere(times, LAT[::4], LON[::4])
    assert ds["time"].dt.calendar == "noleap"
    # No leap day between them: a quarter of a day later most is as it was.
    assert np.corrcoef(ds["PSL"].values[0].ravel(), ds["PSL"].values[1].ravel())[0, 1] > 0.97


def test_pixels_of_rivers_cover_a_plausible_part_of_the_globe(year: xr.Dataset) -> None:
    # Rivers cover some 10 % of the longitude in middle latitudes (Zhu and Newell 1998); here somewhat more.
    area = cell_area(LAT, LON)
    share = ((year[LABELS].values == ATMOSPHERIC_RIVER) * area).sum() / (len(YEAR) * area.sum())
    assert 0.02 < share < 0.07


@pytest.mark.parametrize(
    ("times", "lat", "seed", "message"),
    [
        ([], LAT, 0, "times is empty"),
        (YEAR[[3, 2]], LAT, 0, "increase"),
        (YEAR[:1], np.linspace(-100.0, 90.0, 20), 0, "latitudes in degrees lie within -90 and 90"),
        (YEAR[:1], LAT, -1, "seed is -1"),
    ],
)
def test_what_cannot_be_made_is_refused(times: pd.DatetimeIndex, lat: np.ndarray, seed: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_atmosphere(times, lat, LON, seed=seed)
