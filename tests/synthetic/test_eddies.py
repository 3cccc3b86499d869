import numpy as np
import pytest
from scipy.special import sph_harm_y

from climseg.synthetic import eddies
from climseg.synthetic.eddies import LATITUDES, LONGITUDES


def test_the_energy_falls_with_the_third_power_of_the_degree() -> None:
    assert eddies.energy_spectrum(60) / eddies.energy_spectrum(30) == pytest.approx(2.0**-3, rel=0.01)
    assert eddies.energy_spectrum(7) == max(eddies.energy_spectrum(np.arange(60)))


def test_the_synthesis_is_the_sum_of_spherical_harmonics() -> None:
    coefficients = np.zeros((4, 61, 61), dtype=complex)
    coefficients[1, 3, 5] = 0.7 - 0.2j
    coefficients[1, 0, 4] = 1.5
    field = eddies._synthesis(coefficients)
    colatitude, lam = np.radians(90.0 - LATITUDES)[:, None], np.radians(LONGITUDES)[None, :]
    # Orders m and -m of a real field are conjugate.
    expected = 2 * ((0.7 - 0.2j) * sph_harm_y(5, 3, colatitude, lam)).real
    expected = expected + (1.5 * sph_harm_y(4, 0, colatitude, lam)).real
    np.testing.assert_allclose(field[1], expected, atol=1e-12)
    assert not field[0].any()


def test_the_unscaled_wind_has_mean_square_one() -> None:
    weights = np.repeat(np.cos(np.radians(LATITUDES))[:, None], LONGITUDES.size, axis=1)
    squares = []
    for day in range(0, 180, 6):
        psi = eddies._synthesis(eddies._coefficients(5, float(day)))[0]
        u, v = eddies.rotational_wind(psi, LATITUDES, LONGITUDES)
        squares.append(np.average(u**2 + v**2, weights=weights) / 2)
    assert np.mean(squares) == pytest.approx(1.0, abs=0.1)


def test_interpolation_keeps_the_nodes_and_linear_fields() -> None:
    field = np.stack(
        [np.repeat(LATITUDES[:, None], 240, 1), np.cos(np.radians(LONGITUDES))[None, :] + 0 * LATITUDES[:, None]]
    )
    on_nodes = eddies.interpolate(field, LATITUDES, LONGITUDES)
    np.testing.assert_allclose(on_nodes, field, atol=1e-12)
    lat, lon = np.array([-31.1, 0.2, 77.7]), np.array([0.3, 181.0, 359.7])
    between = eddies.interpolate(field, lat, lon)
    np.testing.assert_allclose(between[0], np.repeat(lat[:, None], 3, 1), atol=1e-9)
    np.testing.assert_allclose(between[1, 0], np.cos(np.radians(lon)), atol=1e-4)


def test_waves_move_eastward_and_are_forgotten_within_a_week() -> None:
    lat, lon = np.array([45.0, 46.5]), np.arange(144) * 2.5
    now, later, long_after = (eddies.eddies(3, day, 0.0, lat, lon).height[0] for day in (20.0, 20.5, 30.0))
    overlap = [np.corrcoef(np.roll(now, k), later)[0, 1] for k in range(-6, 7)]
    assert max(overlap) > 0.9
    assert int(np.argmax(overlap)) - 6 in (1, 2)  # 7 degrees a day: 3.5 degrees in half a day
    assert abs(np.corrcoef(now, long_after)[0, 1]) < 0.6


def test_storms_are_stronger_in_winter_and_weak_in_the_tropics() -> None:
    lat, lon = np.array([-50.0, 0.0, 50.0]), np.arange(72) * 5.0
    winds = {
        s: np.mean([eddies.eddies(1, d, s, lat, lon).v.std(axis=1) for d in range(0, 90, 9)], 0) for s in (-1.0, 1.0)
    }
    assert winds[-1.0][2] > 1.2 * winds[1.0][2]
    assert winds[1.0][0] > winds[1.0][2]
    assert winds[1.0][1] < 0.6 * winds[1.0][2]
