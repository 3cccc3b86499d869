"""The rules that make class numbers of masks."""

import numpy as np
import pytest

from climseg.grid import EARTH_RADIUS, great_circle_distance
from climseg.labels.combine import combine, without_rivers_near

LAT, LON = np.arange(-88.0, 90.0, 4.0), np.arange(0.0, 360.0, 4.0)


def test_a_cyclone_overwrites_a_river_and_missing_overwrites_both() -> None:
    tc = np.array([0, 0, 1, 1, 0, 1, 0], dtype=bool)
    ar = np.array([0, 1, 0, 1, 0, 1, 1], dtype=bool)
    missing = np.array([0, 0, 0, 0, 1, 1, 1], dtype=bool)
    labels = combine(tc, ar, untold=np.zeros(7, dtype=bool), missing=missing)
    assert labels.tolist() == [0, 2, 1, 1, -1, -1, -1]
    assert labels.dtype == np.int8


def test_where_rivers_cannot_be_told_a_cyclone_still_is_one() -> None:
    tc, ar = np.array([1, 0, 0], dtype=bool), np.array([1, 1, 0], dtype=bool)
    labels = combine(tc, ar, untold=np.ones(3, dtype=bool), missing=np.zeros(3, dtype=bool))
    assert labels.tolist() == [1, -1, -1]


@pytest.mark.parametrize("centre", [(20.0, 120.0), (-18.0, 2.0), (33.0, 359.0), (84.0, 50.0)])
def test_rivers_end_at_a_distance_from_each_cyclone_over_seam_and_pole_too(centre: tuple[float, float]) -> None:
    everywhere = np.ones((LAT.size, LON.size), dtype=bool)
    other = (-40.0, 200.0)
    away = [
        np.degrees(great_circle_distance(*point, LAT[:, None], LON[None, :]) / EARTH_RADIUS)
        for point in (centre, other)
    ]
    left = without_rivers_near(everywhere, LAT, LON, [centre, other], 8.5)
    np.testing.assert_array_equal(left, (away[0] > 8.5) & (away[1] > 8.5))
    assert everywhere.all()


def test_a_river_cell_at_the_distance_itself_goes() -> None:
    everywhere = np.ones((LAT.size, LON.size), dtype=bool)
    left = without_rivers_near(everywhere, LAT, LON, [(20.0, 120.0)], 8.0)
    assert not left[LAT == 28.0, LON == 120.0]
    assert left[LAT == 32.0, LON == 120.0]


def test_on_an_open_grid_what_lies_beyond_the_edge_is_no_matter() -> None:
    lat, lon = np.arange(0.0, 41.0, 4.0), np.arange(100.0, 141.0, 4.0)
    left = without_rivers_near(np.ones((11, 11), dtype=bool), lat, lon, [(0.0, 100.0)], 5.0)
    assert np.argwhere(~left).tolist() == [[0, 0], [0, 1], [1, 0]]


def test_no_distance_and_no_cyclone_take_nothing() -> None:
    everywhere = np.ones((LAT.size, LON.size), dtype=bool)
    assert without_rivers_near(everywhere, LAT, LON, [(20.0, 120.0)], 0.0).all()
    assert without_rivers_near(everywhere, LAT, LON, [], 8.0).all()
