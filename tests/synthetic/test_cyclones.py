import numpy as np
import pandas as pd
import pytest

from climseg.channels import TROPICAL_CYCLONE
from climseg.grid import great_circle_distance, relative_vorticity
from climseg.synthetic import TrueObject, make_atmosphere, true_objects
from climseg.synthetic.cyclones import CycloneState, draw_cyclone, holland_deficit, holland_wind, paint_cyclone
from climseg.synthetic.eddies import AIR_DENSITY

LAT, LON = np.arange(2.0, 38.01, 0.25), np.arange(100.0, 140.01, 0.25)


def test_hollands_wind_peaks_at_its_radius_with_the_strength_of_the_formula() -> None:
    # Holland 1980, eq. 7: Vmax = sqrt(B drop / (rho e)), without the Coriolis force.
    radii = np.arange(5_000.0, 300_000.0, 500.0)
    wind = holland_wind(radii, 5000.0, 60_000.0, 1.4, lat=0.0)
    assert radii[wind.argmax()] == pytest.approx(60_000.0, abs=500.0)
    assert wind.max() == pytest.approx(np.sqrt(1.4 * 5000.0 / (AIR_DENSITY * np.e)), rel=1e-4)
    assert np.all(holland_wind(radii, 5000.0, 60_000.0, 1.4, lat=25.0) < wind)


def test_hollands_pressure_has_its_drop_in_the_eye_and_two_thirds_of_it_at_the_radius_of_the_wind() -> None:
    assert holland_deficit(0.0, 5000.0, 60_000.0, 1.4) == pytest.approx(5000.0)
    assert holland_deficit(60_000.0, 5000.0, 60_000.0, 1.4) == pytest.approx(5000.0 * (1 - 1 / np.e))


def test_the_gradient_wind_balances_the_pressure() -> None:
    radii = np.arange(20_000.0, 300_000.0, 100.0)
    wind = holland_wind(radii, 5000.0, 60_000.0, 1.4, lat=20.0)
    slope = -np.gradient(holland_deficit(radii, 5000.0, 60_000.0, 1.4), radii)
    f = 2 * 7.292e-5 * np.sin(np.radians(20.0))
    np.testing.assert_allclose((wind**2 / radii + f * wind)[2:-2], slope[2:-2] / AIR_DENSITY, rtol=1e-3)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_painted_cyclone_is_low_cyclonic_warm_and_moist(sign: float) -> None:
    lat = LAT if sign > 0 else -LAT[::-1]
    state = CycloneState(sign * 20.0, 120.0, 5000.0, 60_000.0, 1.4, 600_000.0)
    names = ("PSL", "U850", "V850", "UBOT", "VBOT", "T500", "T200", "Z200", "TMQ", "QREFHT", "PRECT")
    fields = {name: np.zeros((lat.size, LON.size)) for name in names}
    paint_cyclone(state, fields, lat, LON)
    centre = (int(np.abs(lat - state.lat).argmin()), int(np.abs(LON - state.lon).argmin()))
    assert fields["PSL"].min() == fields["PSL"][centre] == pytest.approx(-5000.0)
    for name in ("T500", "T200"):
        assert fields[name].max() == fields[name][centre] > 3.0
    zeta = relative_vorticity(fields["U850"], fields["V850"], lat, LON)
    assert sign * zeta[centre] > 1e-3
    speed = np.hypot(fields["U850"], fields["V850"])
    distance = great_circle_distance(lat[:, None], LON[None, :], state.lat, state.lon)
    assert speed.max() == pytest.approx(state.max_wind, rel=0.02)
    assert distance.flat[speed.argmax()] == pytest.approx(60_000.0, abs=25_000.0)
    assert not speed[distance > 600_000.0].any()
    # Near the surface the wind also blows inwards.
    dx, dy = (LON[None, :] - 120.0) + 0 * lat[:, None], (lat[:, None] - state.lat) + 0 * LON[None, :]
    ring = (distance > 50_000.0) & (distance < 300_000.0)
    assert np.all((fields["UBOT"] * dx + fields["VBOT"] * dy)[ring] < 0.0)


def test_the_label_ends_where_the_own_wind_falls_below_8_metres_a_second() -> None:
    state = CycloneState(20.0, 120.0, 5000.0, 60_000.0, 1.4, 600_000.0)
    assert float(state.wind(state.label_radius)) == pytest.approx(8.0, abs=0.1)
    weak = CycloneState(20.0, 120.0, 20.0, 60_000.0, 1.4, 600_000.0)
    assert weak.label_radius == 0.0


def test_cyclones_start_over_warm_sea_go_west_and_poleward_grow_and_die() -> None:
    rng = np.random.default_rng(0)
    for cyclone in (draw_cyclone(rng, 100.0, 0.0) for _ in range(50)):
        first, middle, last = (cyclone.at(100.0 + share * cyclone.life) for share in (0.05, 0.5, 0.999))
        assert 5.0 <= abs(cyclone.lat) <= 25.0
        assert 4.0 <= cyclone.life <= 10.0
        assert (cyclone.lon - first.lon) % 360.0 < 10.0
        assert abs(first.lat) < abs(middle.lat) < abs(last.lat) < 55.0
        assert middle.drop > 10 * last.drop
        assert middle.drop > first.drop


def test_in_the_full_atmosphere_every_strong_cyclone_has_the_lowest_pressure_and_a_warm_cyclonic_core() -> None:
    times = pd.date_range("2001-04-02", periods=4, freq="84h")
    strong = [o for o in true_objects(times) if o.label == TROPICAL_CYCLONE and o.drop > 2500.0 and abs(o.lat) < 30.0]
    assert len(strong) >= 8
    assert {np.sign(o.lat) for o in strong} == {-1.0, 1.0}
    for storm in strong:
        assert_is_a_cyclone(storm)


def assert_is_a_cyclone(storm: TrueObject) -> None:
    lat = storm.lat + np.arange(-7.0, 7.01, 0.5)
    lon = storm.lon + np.arange(-7.0, 7.01, 0.5)
    ds = make_atmosphere([storm.time], lat, lon).isel(time=0)
    distance = great_circle_distance(ds["lat"].values[:, None], ds["lon"].values[None, :], storm.lat, storm.lon)
    inside = distance <= storm.radius
    lowest = np.where(inside, ds["PSL"].values, np.inf)
    assert distance.flat[lowest.argmin()] < 60_000.0
    core, ring = distance < 80_000.0, (distance > 350_000.0) & (distance < 500_000.0)
    assert ds["T500"].values[core].mean() > ds["T500"].values[ring].mean() + 0.8
    zeta = relative_vorticity(ds["U850"], ds["V850"], ds["lat"], ds["lon"])
    assert np.sign(storm.lat) * zeta[core].mean() > 1.6e-4  # TECA's threshold
    thickness = ds["Z200"].values - ds["Z1000"].values
    assert thickness[core].max() > thickness[ring].mean() + 25.0
