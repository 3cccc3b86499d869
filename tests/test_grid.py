"""The sphere against formulas and closed forms."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from climseg import grid

R = 6_371_220.0
GLOBAL_LAT = np.linspace(-90.0, 90.0, 73)
GLOBAL_LON = np.arange(144) * 2.5


def test_spacing_is_the_mean_step_in_either_direction() -> None:
    assert grid.spacing([10.0, 12.5, 15.0]) == 2.5
    assert grid.spacing([15.0, 12.5, 10.0]) == 2.5
    assert grid.spacing([7.0]) == 0.0


@pytest.mark.parametrize(
    ("lon", "closes"),
    [
        (np.arange(360.0), True),
        (np.arange(-180.0, 180.0, 0.25), True),
        (np.arange(359.0), False),
        (np.arange(361.0), False),
        (np.linspace(230.0, 300.0, 71), False),
    ],
)
def test_only_a_longitude_axis_that_meets_itself_is_periodic(lon: np.ndarray, closes: bool) -> None:
    assert grid.is_periodic(lon) is closes


def test_cell_edges_stand_between_centres_and_stop_at_the_poles() -> None:
    np.testing.assert_allclose(grid.cell_edges([-90.0, -88.0, -84.0]), [-90.0, -89.0, -86.0, -82.0])
    np.testing.assert_allclose(grid.cell_edges([10.0, 5.0, 0.0]), [12.5, 7.5, 2.5, -2.5])
    with pytest.raises(ValueError, match="one latitude"):
        grid.cell_edges([3.0])


@pytest.mark.parametrize("lat", [GLOBAL_LAT, np.linspace(-89.5, 89.5, 180), np.linspace(89.5, -89.5, 180)])
def test_cell_areas_of_the_globe_sum_to_its_surface(lat: np.ndarray) -> None:
    assert grid.cell_area(lat, GLOBAL_LON).sum() == pytest.approx(4 * np.pi * R**2, rel=1e-12)


def test_area_weights_follow_the_cosine_of_latitude() -> None:
    weights = grid.area_weights(np.linspace(-89.5, 89.5, 180))
    assert weights.mean() == pytest.approx(1.0)
    assert weights[149] / weights[89] == pytest.approx(np.cos(np.radians(59.5)) / np.cos(np.radians(0.5)))


def test_great_circle_distances_are_those_of_geometry() -> None:
    assert grid.great_circle_distance(0, 0, 0, 90) == pytest.approx(R * np.pi / 2)
    assert grid.great_circle_distance(60, 10, 60, 190) == pytest.approx(R * np.pi / 3)  # over the pole
    assert grid.great_circle_distance(0, 359.5, 0, 0.5) == pytest.approx(R * np.pi / 180)
    # Law of cosines on the sphere.
    angle = np.arccos(np.sin(0.2) * np.sin(0.9) + np.cos(0.2) * np.cos(0.9) * np.cos(1.3))
    measured = grid.great_circle_distance(np.degrees(0.2), 0, np.degrees(0.9), np.degrees(1.3))
    assert measured == pytest.approx(R * angle)


def test_longitude_difference_takes_the_shorter_way() -> None:
    np.testing.assert_allclose(grid.longitude_difference([1.0, 359.0, 190.0], [359.0, 1.0, 0.0]), [2.0, -2.0, -170.0])


@pytest.mark.parametrize("lat", [GLOBAL_LAT, GLOBAL_LAT[::-1], GLOBAL_LAT[:-1] + 1.25, np.sort(GLOBAL_LAT * 0.99)])
def test_solid_body_rotation_has_the_vorticity_two_omega_sine_latitude(lat: np.ndarray) -> None:
    omega = 1e-5
    u = omega * R * np.cos(np.radians(lat))[:, None] * np.ones(144)
    zeta = grid.relative_vorticity(u, np.zeros_like(u), lat, GLOBAL_LON)
    expected = 2 * omega * np.sin(np.radians(lat))[:, None] * np.ones(144)
    np.testing.assert_allclose(zeta, expected, atol=2e-3 * omega)


def test_rotation_about_a_tilted_axis_has_the_right_vorticity_at_the_poles_too() -> None:
    omega, tilt = 1e-5, np.radians(30.0)
    lat, lon = np.linspace(-90, 90, 181), np.arange(360.0)
    phi, lam = np.radians(lat)[:, None], np.radians(lon)[None, :]
    # omega x r for the axis (sin(tilt), 0, cos(tilt)), resolved eastward and northward.
    u = omega * R * (np.cos(tilt) * np.cos(phi) - np.sin(tilt) * np.sin(phi) * np.cos(lam))
    v = omega * R * np.sin(tilt) * np.sin(lam) * np.ones_like(phi)
    zeta = grid.relative_vorticity(u, v, lat, lon)
    expected = 2 * omega * (np.sin(tilt) * np.cos(phi) * np.cos(lam) + np.cos(tilt) * np.sin(phi))
    np.testing.assert_allclose(zeta, expected, atol=5e-3 * omega)
    for pole, sign in ((0, -1), (-1, 1)):
        np.testing.assert_allclose(zeta[pole], sign * 2 * omega * np.cos(tilt), rtol=1e-3)


def test_vorticity_looks_over_the_seam_of_a_closed_grid_only() -> None:
    v = np.broadcast_to(np.sin(np.radians(GLOBAL_LON)), (73, 144))
    expected = np.cos(np.radians(GLOBAL_LON)) / (R * np.cos(np.radians(30.0)))
    closed = grid.relative_vorticity(np.zeros_like(v), v, GLOBAL_LAT, GLOBAL_LON)
    np.testing.assert_allclose(closed[48], expected, atol=1e-3 / R)
    part = slice(20, 60)
    cut = grid.relative_vorticity(np.zeros_like(v[:, part]), v[:, part], GLOBAL_LAT, GLOBAL_LON[part])
    np.testing.assert_allclose(cut[48], expected[part], atol=3e-3 / R)
    assert np.isnan(cut[[0, -1]]).all()  # what surrounds a pole is not seen from an open grid
    np.testing.assert_allclose(
        grid.relative_vorticity(np.zeros_like(v), np.roll(v, 50, axis=1), GLOBAL_LAT, GLOBAL_LON),
        np.roll(closed, 50, axis=1),
        atol=1e-18,
    )


@given(
    lat=st.floats(-89.0, 89.0), lon=st.floats(0.0, 360.0), bearing=st.floats(0.0, 360.0), distance=st.floats(0.01, 90.0)
)
def test_a_destination_lies_at_the_distance_asked_for(lat: float, lon: float, bearing: float, distance: float) -> None:
    to_lat, to_lon = grid.destination(lat, lon, bearing, distance)
    assert grid.great_circle_distance(lat, lon, to_lat, to_lon) == pytest.approx(R * np.radians(distance), rel=1e-6)


def test_bearings_run_clockwise_from_north() -> None:
    lat, lon = grid.destination(0.0, 350.0, [0.0, 90.0, 180.0, 270.0], 20.0)
    np.testing.assert_allclose(lat, [20.0, 0.0, -20.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(lon, [350.0, 370.0, 350.0, 330.0])


def test_chords_between_unit_vectors_stand_for_distances() -> None:
    a, b = grid.unit_vectors([20.0, -40.0], [359.0, 3.0])
    angle = 2 * np.arcsin(np.linalg.norm(a - b) / 2)
    assert R * angle == pytest.approx(grid.great_circle_distance(20.0, 359.0, -40.0, 3.0))


def test_a_gaussian_grid_covers_the_whole_sphere() -> None:
    lat = np.degrees(np.arcsin(np.polynomial.legendre.leggauss(160)[0]))
    assert lat[-1] == pytest.approx(89.14, abs=0.01)  # nearer to the pole than to the row before
    assert grid.cell_area(lat, np.arange(0, 360, 1.125)).sum() == pytest.approx(
        4 * np.pi * grid.EARTH_RADIUS**2, rel=1e-12
    )


def test_a_grid_that_ends_a_row_before_the_pole_stays_open_there() -> None:
    np.testing.assert_allclose(grid.cell_edges(np.arange(-89.0, 90.0))[[0, -1]], [-89.5, 89.5])
