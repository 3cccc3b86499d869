"""The Laplacian over rings against closed forms: on a sphere the mean of Y_l over a circle is P_l(cos d) Y_l."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from climseg.grid import destination, ring_laplacian

D = np.radians(10.0)
LAT, LON = np.linspace(-90.0, 90.0, 181), np.arange(360.0)
GAUSSIAN_LAT = np.degrees(np.arcsin(np.polynomial.legendre.leggauss(180)[0]))
CENTRED_LAT, CENTRED_LON = np.arange(-89.5, 90.0), np.arange(0.5, 360.0)
Harmonic = Callable[[np.ndarray, np.ndarray], np.ndarray]

# Spherical harmonics of latitude and longitude in radians, and the Legendre polynomial of their degree at cos(d).
HARMONICS: list[tuple[Harmonic, float]] = [
    (lambda phi, lam: np.sin(phi) + 0 * lam, np.cos(D)),
    (lambda phi, lam: np.cos(phi) * np.cos(lam), np.cos(D)),
    (lambda phi, lam: np.sin(phi) * np.cos(phi) * np.sin(lam), 1.5 * np.cos(D) ** 2 - 0.5),
    (lambda phi, lam: np.cos(phi) ** 3 * np.cos(3 * lam), 2.5 * np.cos(D) ** 3 - 1.5 * np.cos(D)),
]


def on_grid(harmonic: Harmonic, lat: np.ndarray, lon: np.ndarray) -> np.ndarray:
    return harmonic(np.radians(lat)[:, None], np.radians(lon)[None, :])


@pytest.mark.parametrize(("harmonic", "legendre"), HARMONICS)
@pytest.mark.parametrize(
    ("lat", "lon"), [(LAT, LON), (CENTRED_LAT, CENTRED_LON), (LAT, np.arange(359) * 360 / 359), (GAUSSIAN_LAT, LON)]
)
def test_a_spherical_harmonic_gives_the_mean_over_its_circle_at_the_poles_and_over_the_seam_too(
    harmonic: Harmonic, legendre: float, lat: np.ndarray, lon: np.ndarray
) -> None:
    field = on_grid(harmonic, lat, lon)
    # Linear interpolation between cells of 1 degree is off by up to (pi/180)^2 / 8 of the second derivatives.
    tolerance = 4 / D**2 * 2 * 9 * np.radians(1) ** 2 / 8
    np.testing.assert_allclose(ring_laplacian(field, lat, lon), 4 * (legendre - 1) / D**2 * field, atol=tolerance)
    assert abs(4 * (legendre - 1) / D**2) > 20 * tolerance


@pytest.mark.parametrize("row", [0, 1, 40, 90, 137, 179, 180])
def test_it_is_the_sum_over_eight_points_of_a_field_that_is_linear_between_cells(row: int) -> None:
    # A bilinear field has its exact value at every point; the absolute latitude is one, and so is 90 - |lat| beyond a
    # pole of the grid.
    field = np.abs(LAT)[:, None] + 0 * LON
    points = np.abs(destination(LAT[row], 0.0, np.arange(8) * 45.0, 10.0)[0])
    expected = 4 / 8 / D**2 * (points - abs(LAT[row])).sum()
    np.testing.assert_allclose(ring_laplacian(field, LAT, LON)[row], expected, rtol=1e-9)


def test_a_single_cell_is_seen_by_the_cells_north_and_south_of_it_in_full() -> None:
    field = np.zeros((181, 360))
    field[130, 77] = 8.0
    laplacian = ring_laplacian(field, LAT, LON)
    assert laplacian[130, 77] == pytest.approx(-4 * 8.0 / D**2)
    assert laplacian[120, 77] == laplacian[140, 77] == pytest.approx(4 / D**2)
    assert laplacian[125, 77] == 0.0


def test_a_constant_field_has_no_laplacian() -> None:
    np.testing.assert_allclose(ring_laplacian(np.full((181, 360), 7.0), LAT, LON), 0.0, atol=1e-9)


@settings(max_examples=10, deadline=None)
@given(shift=st.integers(1, 89), seed=st.integers(0, 1000))
def test_a_roll_of_the_columns_rolls_the_result_bit_for_bit(shift: int, seed: int) -> None:
    lat, lon = np.linspace(-90, 90, 46), np.arange(90) * 4.0
    field = np.random.default_rng(seed).random((46, 90), dtype=np.float32)
    rolled = ring_laplacian(np.roll(field, shift, axis=1), lat, lon)
    np.testing.assert_array_equal(rolled, np.roll(ring_laplacian(field, lat, lon), shift, axis=1))


def test_on_an_open_grid_a_cell_whose_ring_leaves_it_is_missing_and_others_are_as_on_the_globe() -> None:
    field = on_grid(HARMONICS[2][0], LAT, LON)
    rows, columns = slice(100, 151), slice(200, 281)  # 10 to 60 degrees north, 200 to 280 degrees east
    part = ring_laplacian(field[rows, columns], LAT[rows], LON[columns])
    told = np.isfinite(part)
    np.testing.assert_allclose(part[told], ring_laplacian(field, LAT, LON)[rows, columns][told], atol=1e-11)
    assert not told[:10].any()
    assert not told[-10:].any()
    for row in range(10, 41):
        turn = destination(LAT[100 + row], 0.0, np.arange(8) * 45.0, 10.0)[1].max()
        expected = (np.arange(81) >= turn - 1e-9) & (np.arange(81) <= 80 - turn + 1e-9)
        np.testing.assert_array_equal(told[row], expected)


def test_a_belt_of_a_closed_grid_is_missing_where_the_ring_leaves_its_latitudes() -> None:
    belt = ring_laplacian(np.ones((81, 360)), LAT[50:131], LON)
    np.testing.assert_array_equal(np.isfinite(belt).all(axis=1), (np.abs(LAT[50:131]) <= 30))
    np.testing.assert_array_equal(np.isfinite(belt).any(axis=1), (np.abs(LAT[50:131]) <= 30))


def test_a_missing_value_makes_missing_what_needs_it_and_nothing_else() -> None:
    field = np.ones((181, 360))
    field[130, 77] = np.nan
    missing = np.isnan(ring_laplacian(field, LAT, LON))
    assert missing[130, 77]
    assert missing[120, 77]
    assert missing[140, 77]
    rows, columns = np.nonzero(missing)
    arc = np.degrees(
        np.arccos(
            np.clip(
                np.sin(np.radians(40)) * np.sin(np.radians(LAT[rows]))
                + np.cos(np.radians(40)) * np.cos(np.radians(LAT[rows])) * np.cos(np.radians(columns - 77.0)),
                -1,
                1,
            )
        )
    )
    own = (rows == 130) & (columns == 77)
    assert np.abs(arc[~own] - 10.0).max() < 1.5
    assert np.isnan(ring_laplacian(np.full((181, 360), np.nan), LAT, LON)).all()


@pytest.mark.parametrize("lat", [90.0, -90.0])
def test_from_a_pole_every_bearing_leads_to_a_meridian_of_its_own(lat: float) -> None:
    to_lat, to_lon = destination(lat, 20.0, np.arange(8) * 45.0, 10.0)
    np.testing.assert_allclose(to_lat, np.sign(lat) * 80.0)
    assert np.unique(np.round(to_lon % 360.0, 6)).size == 8
