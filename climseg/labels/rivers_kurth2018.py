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
    min_diagonal_km: float = 1500.0,
    max_width_km: float = 1000.0,
) -> Rivers:
    """Mark long and narrow regions of much water vapour outside the tropics.

    TMQ is damped towards the equator by ``1 - exp(-lat^2 / (2 damping_degrees^2))``; of the regions above ``threshold``
    (4 neighbours, over the seam of a closed grid) those stay whose bounding box has a diagonal longer than
    ``min_diagonal_km`` and whose area over its north-south extent is below ``max_width_km``. The box and the extent
    reach to the outer edges of the cells, so that area over extent is the mean width from west to east.

    Args:
        step: With TMQ; missing values (NaN) are no river, and untold.
        threshold: kg/m2. The authors' second set of labels has 21.
        damping_degrees: Degrees of latitude.
        min_diagonal_km: km; criterion "diagonal".
        max_width_km: km; criterion "width".

    Source: Kurth et al. 2018 (arXiv:1810.01993).
    """
    tmq = step.fields["TMQ"]
    damped = tmq * (1.0 - np.exp(-(step.lat**2) / (2.0 * damping_degrees**2)))[:, None]
    labels = label_regions(damped > threshold, is_periodic(step.lon), connectivity=4)
    found = measure_regions(labels, step.lat, step.lon)
    width, diagonal = found.area / found.north_south_extent / 1e3, found.diagonal / 1e3
    regions = RegionTable(
        measures={
            "lat": found.lat,
            "lon": found.lon,
            "area_km2": found.area / 1e6,
            "diagonal_km": diagonal,
            "width_km": width,
        },
        failed={"diagonal": ~(diagonal > min_diagonal_km), "width": ~(width < max_width_km)},
    )
    return Rivers(marked(labels, regions.kept), np.isnan(tmq), regions)
