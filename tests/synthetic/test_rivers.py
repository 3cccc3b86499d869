import numpy as np
import pandas as pd
import pytest

from climseg.channels import ATMOSPHERIC_RIVER
from climseg.grid import EARTH_RADIUS, cell_area
from climseg.synthetic import make_atmosphere, true_objects
from climseg.synthetic.rivers import LABEL_EXCESS, Filament, draw_river, paint_river

LAT, LON = np.arange(10.0, 60.01, 0.25), np.arange(0.0, 60.01, 0.25)
NAMES = ("EXCESS", "U850", "V850", "UBOT", "VBOT", "PRECT")


def meridional_river(half_width: float) -> Filament:
    """Straight north along 30 degrees East, 20 kg/m2, 15 m/s."""
    points = np.linspace(15.0, 55.0, 96)
    return Filament(points, np.full(96, 30.0), half_width, np.full(96, 20.0), np.full(96, 15.0))


def test_a_river_has_halved_at_its_half_width_and_blows_along_its_axis() -> None:
    half_width = 2 * np.radians(1.0) * EARTH_RADIUS  # two degrees of latitude
    fields = {name: np.zeros((LAT.size, LON.size)) for name in NAMES}
    paint_river(meridional_river(half_width), fields, LAT, LON)
    row, axis = int(np.abs(LAT - 35.0).argmin()), int(np.abs(LON - 30.0).argmin())
    assert fields["EXCESS"][row, axis] == pytest.approx(20.0, abs=0.01)
    at_half_width = np.interp(30.0 + 2.0 / np.cos(np.radians(35.0)), LON, fields["EXCESS"][row])
    assert at_half_width == pytest.approx(10.0, abs=0.5)
    assert fields["V850"][row, axis] == pytest.approx(15.0, abs=0.3)  # the axis has points every 47 km
    assert np.abs(fields["U850"]).max() < 0.1
    assert fields["EXCESS"].max() <= 20.0


def test_the_greatest_of_two_crossing_rivers_counts() -> None:
    once, twice = ({name: np.zeros((LAT.size, LON.size)) for name in NAMES} for _ in range(2))
    paint_river(meridional_river(250e3), once, LAT, LON)
    for _ in range(2):
        paint_river(meridional_river(250e3), twice, LAT, LON)
    np.testing.assert_array_equal(once["EXCESS"], twice["EXCESS"])


def test_rivers_are_long_and_reach_from_the_subtropics_to_a_low_in_middle_latitudes() -> None:
    rng = np.random.default_rng(1)
    for river in (draw_river(rng, 0.0, 0.0) for _ in range(40)):
        filament, low = river.at(0.5 * river.life)
        assert 2000e3 < filament.length < 7000e3
        assert 300e3 < 2 * filament.half_width < 800e3
        assert abs(filament.lat[0]) < 25.0
        assert 38.0 < abs(low.lat) < 62.0
        assert abs(low.lon - filament.lon[-1]) < 10.0
        assert 2.0 < river.life < 6.0
        assert river.at(river.life * 0.75)[1].lon > low.lon  # eastward


def test_in_the_full_atmosphere_rivers_are_moist_and_flow_poleward() -> None:
    times = pd.date_range("2001-02-01", periods=6, freq="120h")
    lat, lon = np.linspace(-90, 90, 121), np.arange(240) * 1.5
    ds = make_atmosphere(times, lat, lon)
    river = ds["LABELS"] == ATMOSPHERIC_RIVER
    poleward = ds["V850"] * np.sign(ds["lat"])
    assert float(poleward.where(river).mean()) > 6.0
    assert float(ds["TMQ"].where(river).mean()) > 30.0
    rows = ds["lat"].values[river.any(("time", "lon")).values]
    assert np.abs(rows).min() >= 20.0
    listed = [o for o in true_objects(times) if o.label == ATMOSPHERIC_RIVER]
    assert min(o.excess for o in listed) >= LABEL_EXCESS
    # Areas of ribbons as long and wide as the list says, less what is too weak or too far south, more where edges lie.
    area = float((river.values * cell_area(lat, lon)).sum())
    ribbons = sum(2 * o.radius * o.length for o in listed)
    assert 0.5 * ribbons < area < 1.1 * ribbons
