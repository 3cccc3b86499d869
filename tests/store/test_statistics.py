import numpy as np

from climseg.store.statistics import merge_statistics, sample_statistics


def test_merged_moments_equal_those_of_all_values_at_once() -> None:
    rng = np.random.default_rng(1)
    images = rng.normal([[[100_800.0]], [[5.0]]], [[[1.5]], [[8.0]]], (7, 2, 11, 13)).astype(np.float32)
    masks = rng.integers(0, 3, (7, 11, 13)).astype(np.int8)
    statistics, counts = merge_statistics(sample_statistics(i, m) for i, m in zip(images, masks, strict=True))
    whole = images.astype(np.float64)
    np.testing.assert_allclose(statistics.mean, whole.mean(axis=(0, 2, 3)), rtol=1e-12)
    # A spread of 1.5 Pa on 100,800 Pa: E[x^2] - E[x]^2 in float32 has no correct digit of it.
    np.testing.assert_allclose(statistics.std, whole.std(axis=(0, 2, 3)), rtol=1e-9)
    np.testing.assert_array_equal(statistics.minimum, whole.min(axis=(0, 2, 3)))
    np.testing.assert_array_equal(statistics.maximum, whole.max(axis=(0, 2, 3)))
    assert counts == [int((masks == k).sum()) for k in range(3)]


def test_cells_without_a_class_are_not_counted() -> None:
    mask = np.array([[-1, 0, 0], [1, 2, 2]], dtype=np.int8)
    assert sample_statistics(np.zeros((1, 2, 3), np.float32), mask).class_pixels == [2, 1, 2]
