"""Boxes, caps, rays and rings round a point."""

import numpy as np
import pytest

from climseg.labels.windows import box, cap, ring_means, smallest_rise

LAT, LON = np.arange(-90.0, 91.0), np.arange(360.0)
OPEN_LAT, OPEN_LON = np.arange(0.0, 41.0), np.arange(340.0, 401.0)


def test_a_box_goes_on_over_the_seam_from_west_to_east() -> None:
    window = box(LAT, LON, 10.0, 1.0, 1.5, 3.0)
    assert window is not None
    assert LAT[window.rows].tolist() == [9, 10, 11]
    assert LON[window.columns].tolist() == [358, 359, 0, 1, 2, 3, 4]


def test_a_box_beyond_a_pole_ends_there() -> None:
    window = box(LAT, LON, 89.0, 50.0, 3.0, 2.0)
    assert window is not None
    assert LAT[window.rows].tolist() == [86, 87, 88, 89, 90]


@pytest.mark.parametrize(
    ("lat", "lon", "exists"),
    [
        (20.0, 370.0, True),
        (5.5, 345.5, True),
        (5.4, 370.0, False),
        (35.6, 370.0, False),
        (20.0, 345.4, False),
        (20.0, 394.7, False),
    ],
)
def test_a_box_beyond_the_outer_cells_of_an_open_grid_does_not_exist(lat: float, lon: float, exists: bool) -> None:
    assert (box(OPEN_LAT, OPEN_LON, lat, lon, 6.0, 6.0) is not None) is exists


def test_a_cap_holds_the_cells_within_its_radius() -> None:
    found = cap(LAT, LON, 60.0, 359.0, 3.0)
    assert found is not None
    window, distance = found
    # All cells of the globe by the law of cosines.
    phi, lam = np.radians(LAT)[:, None], np.radians(LON - 359.0)[None, :]
    angle = np.degrees(np.arccos(np.clip(np.sin(np.pi / 3) * np.sin(phi) + 0.5 * np.cos(phi) * np.cos(lam), -1, 1)))
    inside = np.zeros(angle.shape, dtype=bool)
    inside[window.cells] = distance <= 3.0
    np.testing.assert_array_equal(inside, angle <= 3.0 + 1e-6)
    np.testing.assert_allclose(distance, angle[window.cells], atol=1e-5)


@pytest.mark.parametrize("lat", [-60.3, -20.1, 0.0, 20.1, 60.3])
@pytest.mark.parametrize("step", [0.1, 0.3, 0.25])
def test_what_lies_at_the_radius_but_for_rounding_belongs_to_the_cap(lat: float, step: float) -> None:
    rows = lat + step * np.arange(-20, 21)
    found = cap(rows, np.arange(0.0, 360.0, step), float(rows[20]), 90.0, 10 * step)
    assert found is not None
    window, distance = found
    inside = (distance <= 10 * step)[:, window.columns == round(90 / step)][:, 0]
    assert window.rows[inside].tolist() == list(range(10, 31))


def test_a_cap_over_the_pole_holds_every_longitude() -> None:
    found = cap(LAT, LON, 89.0, 10.0, 3.0)
    assert found is not None
    window, distance = found
    assert window.columns.size == 360
    assert distance[LAT[window.rows] == 88.0, LON[window.columns] == 190.0] == pytest.approx(3.0)
    assert cap(LAT, np.arange(300.0), 89.0, 150.0, 3.0) is None


@pytest.mark.parametrize("column", [0, 359, 100])
def test_the_smallest_rise_is_that_of_the_lowest_direction(column: int) -> None:
    along = (LON - LON[column] + 180.0) % 360.0 - 180.0
    # A valley that runs eastward from the cell: no rise there.
    field = np.where((along > 0)[None, :] & (np.abs(LAT) < 0.5)[:, None], 0.0, np.abs(along) + np.abs(LAT)[:, None])
    field[90, column] = 0.0
    assert smallest_rise(field, LAT, LON, 90, column, 5.0) == pytest.approx(0.0, abs=1e-2)
    cone = np.abs(along)[None, :] + np.abs(LAT)[:, None]
    assert smallest_rise(cone, LAT, LON, 90, column, 5.0) == pytest.approx(5.0, rel=1e-6)


def test_a_missing_value_on_a_ray_makes_the_rise_missing() -> None:
    field = np.zeros((181, 360))
    field[92, 10] = np.nan
    assert np.isnan(smallest_rise(field, LAT, LON, 90, 10, 5.0))
    assert smallest_rise(field, LAT, LON, 90, 20, 5.0) == 0.0


def test_ring_means_average_what_lies_in_the_ring() -> None:
    distance = np.array([[0.2, 0.9, 1.1], [1.9, 2.5, 9.0]])
    values = np.array([[1.0, 3.0, 10.0], [np.nan, 7.0, 100.0]])
    radii, means = ring_means(values, distance, 3.0, 1.0)
    np.testing.assert_allclose(radii, [0.5, 1.5, 2.5])
    np.testing.assert_allclose(means, [2.0, 10.0, 7.0])


def test_rings_finer_than_the_cells_leave_no_false_zero() -> None:
    radii, means = ring_means(np.array([[4.0, 2.0]]), np.array([[0.05, 0.75]]), 1.0, 0.1)
    np.testing.assert_allclose(radii, [0.05, 0.75])
    np.testing.assert_allclose(means, [4.0, 2.0])
