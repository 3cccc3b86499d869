"""Regions against scipy on a doubled grid, and their measures against formulas."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import ndimage

from climseg.grid import great_circle_distance
from climseg.labels.regions import label_regions, largest_region, marked, measure_regions

R = 6_371_220.0
LAT, LON = np.arange(-89.5, 90.0), np.arange(0.5, 360.0)
masks = arrays(np.bool_, st.tuples(st.integers(1, 7), st.integers(3, 9)))


def same_partition(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two label fields hold the same regions under whatever numbers."""
    pairs = {*zip(a.ravel(), b.ravel(), strict=True)}
    return len(pairs) == len(np.unique(a)) == len(np.unique(b)) and np.array_equal(a > 0, b > 0)


def joined_by_walking(mask: np.ndarray, connectivity: int) -> np.ndarray:
    """Regions over the seam by a flood fill cell by cell."""
    height, width = mask.shape
    steps = [(0, 1), (0, -1), (1, 0), (-1, 0)]
    if connectivity == 8:
        steps += [(1, 1), (1, -1), (-1, 1), (-1, -1)]
    labels, number = np.zeros(mask.shape, int), 0
    for start in zip(*np.nonzero(mask), strict=True):
        if labels[start]:
            continue
        number += 1
        labels[start], queue = number, [start]
        while queue:
            row, column = queue.pop()
            for down, right in steps:
                cell = (row + down, (column + right) % width)
                if 0 <= cell[0] < height and mask[cell] and not labels[cell]:
                    labels[cell] = number
                    queue.append(cell)
    return labels


@settings(max_examples=300, deadline=None)
@given(mask=masks, connectivity=st.sampled_from([4, 8]))
def test_regions_of_a_closed_grid_are_those_of_a_flood_fill_over_the_seam(mask: np.ndarray, connectivity: int) -> None:
    labels = label_regions(mask, True, connectivity)
    assert labels.dtype == np.int32
    assert set(np.unique(labels)) - {0} == set(range(1, labels.max() + 1))
    assert same_partition(labels, joined_by_walking(mask, connectivity))


@settings(deadline=None)
@given(mask=masks, connectivity=st.sampled_from([4, 8]))
def test_regions_of_an_open_grid_are_those_of_scipy(mask: np.ndarray, connectivity: int) -> None:
    expected, _ = ndimage.label(mask, np.ones((3, 3)) if connectivity == 8 else None)
    assert same_partition(label_regions(mask, False, connectivity), expected)


@settings(deadline=None)
@given(mask=masks, shift=st.integers(-9, 9), connectivity=st.sampled_from([4, 8]))
def test_a_roll_of_the_columns_keeps_the_partition(mask: np.ndarray, shift: int, connectivity: int) -> None:
    rolled = label_regions(np.roll(mask, shift, axis=1), True, connectivity)
    assert same_partition(np.roll(rolled, -shift, axis=1), label_regions(mask, True, connectivity))


def test_regions_on_a_doubled_grid_agree_where_scipy_sees_the_seam_whole() -> None:
    # No region of this mask goes round the globe, so that its doubled copy holds each of them whole somewhere.
    mask = np.random.default_rng(3).random((60, 120)) < 0.45
    doubled, _ = ndimage.label(np.concatenate([mask, mask], axis=1))
    whole_at_seam = doubled[:, 60:180]
    labels = label_regions(np.roll(mask, -60, axis=1), False)
    seam = labels[:, 59][labels[:, 59] == labels[:, 60]]
    assert seam.size > 0
    periodic = np.roll(label_regions(mask, True), -60, axis=1)
    for number in np.unique(seam[seam > 0]):
        cells = labels == number
        assert np.unique(periodic[cells]).size == 1
        assert np.unique(whole_at_seam[cells]).size == 1


def test_latitude_never_wraps_and_the_first_cell_has_neighbours() -> None:
    mask = np.zeros((4, 6), dtype=bool)
    mask[0, 0] = mask[0, 1] = mask[-1, 0] = True
    labels = label_regions(mask, True)
    assert labels[0, 0] == labels[0, 1] != labels[-1, 0]


def test_an_empty_mask_has_no_regions_and_no_measures() -> None:
    labels = label_regions(np.zeros((180, 360), dtype=bool), True)
    assert labels.max() == 0
    assert measure_regions(labels, LAT, LON).area.shape == (0,)
    assert measure_regions(labels, LAT, LON).diagonal.shape == (0,)


def band(south: float, north: float, west: float, east: float) -> np.ndarray:
    """Cells between four edges, the eastern one beyond 360 over the seam."""
    inside = (LON - west) % 360 < east - west
    return ((south < LAT) & (north > LAT))[:, None] & inside[None, :]


@pytest.mark.parametrize("west", [100.0, 355.0, 352.0, 0.0])
def test_measures_of_a_box_are_those_of_geometry_wherever_the_seam_is(west: float) -> None:
    labels = label_regions(band(40, 60, west, west + 8), True)
    measures = measure_regions(labels, LAT, LON)
    sin40, sin60, cos40, cos60 = np.sin(np.radians(40)), np.sin(np.radians(60)), np.cos(np.radians(40)), 0.5
    assert measures.area == pytest.approx(R**2 * np.radians(8) * (sin60 - sin40))
    assert measures.north_south_extent == pytest.approx(R * np.radians(20))
    assert measures.diagonal == pytest.approx(R * np.arccos(sin40 * sin60 + cos40 * cos60 * np.cos(np.radians(8))))
    assert (measures.south[0], measures.north[0], measures.width[0]) == (40, 60, 8)


@pytest.mark.parametrize("west", [100.0, 356.0, 0.0])
def test_the_middle_is_weighted_by_area_and_circular_in_longitude(west: float) -> None:
    measures = measure_regions(label_regions(band(-30, 30, west, west + 8), True), LAT, LON)
    assert measures.lat == pytest.approx(0.0, abs=1e-9)
    assert measures.lon == pytest.approx((west + 4) % 360)
    # Two rows of 1 degree: their latitudes weighted by the differences of the sines of their edges.
    north = measure_regions(label_regions(band(60, 62, west, west + 8), True), LAT, LON)
    sines = np.diff(np.sin(np.radians([60, 61, 62])))
    assert north.lat == pytest.approx((60.5 * sines[0] + 61.5 * sines[1]) / sines.sum())


def test_the_cells_of_kept_regions_are_marked() -> None:
    labels = label_regions(band(40, 60, 355, 363) | band(-10, -8, 100, 130), True)
    np.testing.assert_array_equal(marked(labels, np.array([True, False])), labels == 1)
    assert not marked(np.zeros_like(labels), np.zeros(0, dtype=bool)).any()


def test_two_regions_are_measured_each_for_itself() -> None:
    labels = label_regions(band(40, 60, 355, 363) | band(-10, -8, 100, 130), True)
    measures = measure_regions(labels, LAT, LON)
    order = np.argsort(measures.width)
    np.testing.assert_allclose(measures.width[order], [8, 30])
    np.testing.assert_allclose(measures.south[order], [40, -10])


def test_a_ring_round_the_globe_is_360_degrees_wide_and_has_the_diagonal_over_the_pole() -> None:
    measures = measure_regions(label_regions(band(59, 61, 0, 360), True), LAT, LON)
    assert measures.width[0] == 360
    assert measures.diagonal[0] == pytest.approx(R * np.radians(180 - 59 - 61))


def test_a_ring_with_a_gap_is_as_wide_as_its_box_without_the_gap() -> None:
    assert measure_regions(label_regions(band(59, 61, 30, 380), True), LAT, LON).width[0] == 350


def test_a_region_that_touches_both_edges_of_an_open_grid_is_two() -> None:
    lat, lon = LAT, np.arange(0.5, 300.0)
    mask = np.zeros((180, 300), dtype=bool)
    mask[100, :3] = mask[100, -2:] = True
    measures = measure_regions(label_regions(mask, False), lat, lon)
    np.testing.assert_allclose(measures.width, [3, 2])


def test_the_largest_region_is_that_with_the_largest_area_not_the_most_cells() -> None:
    mask = np.zeros((180, 360), dtype=bool)
    mask[175, 10:20] = True  # ten cells near the pole
    mask[90, 40:44] = True  # four at the equator
    area = R**2 * np.radians(1) * np.diff(np.sin(np.radians(np.arange(-90, 91))))[:, None] * np.ones(360)
    largest = largest_region(mask, area, periodic=True)
    assert largest.sum() == 4
    assert largest[90, 40:44].all()
    assert not largest_region(np.zeros_like(mask), area, periodic=True).any()


@pytest.mark.parametrize("edge", [60.0, 80.0])
def test_the_area_of_a_polar_cap_is_that_of_the_formula(edge: float) -> None:
    labels = np.broadcast_to((edge < LAT)[:, None], (LAT.size, LON.size)).astype(np.int32)
    assert measure_regions(labels, LAT, LON).area == pytest.approx(2 * np.pi * R**2 * (1 - np.sin(np.radians(edge))))


def test_the_area_of_a_cap_anywhere_is_that_of_the_formula_to_one_percent() -> None:
    away = great_circle_distance(35.0, 359.0, LAT[:, None], LON[None, :])
    labels = label_regions(away <= R * np.radians(15.0), periodic=True)
    assert measure_regions(labels, LAT, LON).area == pytest.approx(
        2 * np.pi * R**2 * (1 - np.cos(np.radians(15.0))), rel=1e-2
    )
