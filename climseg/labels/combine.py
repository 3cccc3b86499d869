"""The one place that says how masks of cyclones and rivers become class numbers."""

import numpy as np
from numpy.typing import NDArray

from climseg.channels import ATMOSPHERIC_RIVER, BACKGROUND, MISSING_LABEL, TROPICAL_CYCLONE


def combine(tc: NDArray[np.bool_], ar: NDArray[np.bool_], missing: NDArray[np.bool_]) -> NDArray[np.int8]:
    """Class numbers (int8) from two masks of the same shape: a cyclone overwrites a river, missing overwrites both.

    Args:
        tc: Where a tropical cyclone is.
        ar: Where an atmospheric river is.
        missing: Where a field needed to tell is missing.
    """
    conditions, classes = [missing, tc, ar], [MISSING_LABEL, TROPICAL_CYCLONE, ATMOSPHERIC_RIVER]
    return np.select(conditions, classes, BACKGROUND).astype(np.int8)
