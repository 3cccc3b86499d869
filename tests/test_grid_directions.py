import numpy as np
import pytest

from climseg.grid import (
    EARTH_RADIUS,
    away_from,
    destination,
    great_circle_distance,
    relative_vorticity,
    rotational_wind,
)

LAT = np.linspace(-90.0, 90.0, 121)
LON = np.arange(240) * 1.5


def test_the_distance_away_from_a_centre_is_the_great_circle_distance() -> None:
    lat, lon = np.meshgrid([-89.0, -30.0, 0.0, 41.0], [0.0, 17.0, 182.0, 359.0])
    distance, _, _ = away_from(40.0, 3.0, lat, lon)
    np.testing.assert_allclose(distance, great_circle_distance(40.0, 3.0, lat, lon), rtol=1e-12)


@pytest.mark.parametrize("bearing", [0.0, 77.0, 180.0, 300.0])
def test_going_on_away_from_a_centre_stays_on_the_great_circle(bearing: float) -> None:
    lat, lon = destination(25.0, 350.0, bearing, 10.0)
    _, east, north = away_from(25.0, 350.0, lat, lon)
    further_lat, further_lon = destination(lat, lon, np.degrees(np.arctan2(east, north)), 5.0)
    expected_lat, expected_lon = destination(25.0, 350.0, bearing, 15.0)
    np.testing.assert_allclose([further_lat, further_lon], [expected_lat, expected_lon], atol=1e-9)
    assert np.hypot(east, north) == pytest.approx(1.0)


def test_at_the_centre_itself_no_direction_leads_away() -> None:
    distance, east, north = away_from(12.0, 34.0, 12.0, 34.0)
    assert float(distance) == pytest.approx(0.0, abs=1e-6)
    assert (float(east), float(north)) == (0.0, 0.0)


def test_the_stream_function_of_solid_body_rotation_gives_its_wind() -> None:
    u, v = rotational_wind(np.repeat(-20.0 * EARTH_RADIUS * np.sin(np.radians(LAT))[:, None], 240, axis=1), LAT, LON)
    np.testing.assert_allclose(u, np.repeat(20.0 * np.cos(np.radians(LAT))[:, None], 240, axis=1), atol=0.02)
    np.testing.assert_allclose(v, 0.0, atol=1e-6)


def test_the_wind_of_a_spherical_harmonic_has_its_laplacian_as_vorticity() -> None:
    # Y of degree 2 and order 1: laplacian = -n(n+1)/R^2 psi.
    phi, lam = np.radians(LAT)[:, None], np.radians(LON)[None, :]
    psi = 1e8 * np.sin(phi) * np.cos(phi) * np.cos(lam)
    zeta = relative_vorticity(*rotational_wind(psi, LAT, LON), LAT, LON)
    np.testing.assert_allclose(zeta[3:-3], (-6.0 / EARTH_RADIUS**2 * psi)[3:-3], atol=1e-7)
