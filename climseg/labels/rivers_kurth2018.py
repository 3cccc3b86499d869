"""The rivers of Kurth et al. 2018: a flood fill of column water vapour."""

import numpy as np

from climseg.grid import is_periodic
from climseg.labels.needs import Needs, needs
from climseg.labels.regions import label_regions, marked, measure_regions
from climseg.labels.step import RegionTable, Rivers, Step


@needs(Needs(("TMQ",)))
def atmospheric_rivers(
    step: Step,
    *,
    threshold: float = 24.0,
    damping_degrees: float = 19.0,
    min_diagonal_m: float = 1.5e6,
    max_width_m: float = 1.0e6,
) -> Rivers:
    """Mark long and narrow regions of much water vapour outside the tropics.

    TMQ is damped towards the equator by ``1 - exp(-lat^2 / (2 damping_degrees^2))``; of the regions above ``threshold``
    (4 neighbours, over the seam of a closed grid) those stay whose bounding box has a diagonal longer than
    ``min_diagonal_m`` and whose area over its north-south extent is below ``max_width_m``. The box and the extent reach
    to the outer edges of the cells, so that area over extent is the mean width from west to east.

    Args:
        step: With TMQ; missing values (NaN) are no river, and untold.
        threshold: kg/m2. The authors' second set of labels has 21.
        damping_degrees: Degrees of latitude.
        min_diagonal_m: m; criterion "diagonal".
        max_width_m: m; criterion "width".

    Source: Kurth et al. 2018 (arXiv:1810.01993).
    """
    tmq = step.fields["TMQ"]
    damped = tmq * (1.0 - np.exp(-(step.lat**2) / (2.0 * damping_degrees**2)))[:, None]
    labels = label_regions(damped > threshold, is_periodic(step.lon), connectivity=4)
    found = measure_regions(labels, step.lat, step.lon)
    width = found.area / found.north_south_extent
    regions = RegionTable(
        measures={
            "lat": found.lat,
            "lon": found.lon,
            "area_km2": found.area / 1e6,
            "diagonal_km": found.diagonal / 1e3,
            "width_km": width / 1e3,
        },
        failed={"diagonal": ~(found.diagonal > min_diagonal_m), "width": ~(width < max_width_m)},
    )
    return Rivers(marked(labels, regions.kept), np.isnan(tmq), regions)
