"""The rule that makes class numbers of masks."""

import numpy as np

from climseg.labels.combine import combine


def test_a_cyclone_overwrites_a_river_and_missing_overwrites_both() -> None:
    tc = np.array([0, 0, 1, 1, 0, 1], dtype=bool)
    ar = np.array([0, 1, 0, 1, 0, 1], dtype=bool)
    missing = np.array([0, 0, 0, 0, 1, 1], dtype=bool)
    labels = combine(tc, ar, missing)
    assert labels.tolist() == [0, 2, 1, 1, -1, -1]
    assert labels.dtype == np.int8
