"""The rivers of TempestExtremes: ridges of the water vapour transport, by its Laplacian over rings of 10 degrees."""

import numpy as np

from climseg.grid import is_periodic, ring_laplacian
from climseg.labels.needs import Needs, needs
from climseg.labels.regions import label_regions, marked, measure_regions
from climseg.labels.step import RegionTable, Rivers, Step


@needs(Needs(("IVT",)))
def atmospheric_rivers(
    step: Step,
    *,
    max_laplacian: float = -20_000.0,
    radius_degrees: float = 10.0,
    min_latitude: float = 15.0,
    min_area_km2: float = 4.0e5,
) -> Rivers:
    """Mark large regions where the transport is much stronger than on the ring round the cell.

    The Laplacian is :func:`climseg.grid.ring_laplacian`, which interpolates bilinearly at the 8 points of the ring;
    TempestExtremes takes the cells nearest to them, so that a few cells at the regions' outlines differ. Regions have
    4 neighbours and go over the seam of a closed grid. (What TempestExtremes removes near its cyclones is for the
    caller who has them.)

    Args:
        step: With IVT. Where a value of the ring is missing, or the ring leaves an open grid, a cell poleward of
            ``min_latitude`` is no river, and untold.
        max_laplacian: kg/m/s/rad2; the Laplacian is at most this.
        radius_degrees: Degrees of arc.
        min_latitude: Degrees; cells nearer to the equator are no river.
        min_area_km2: km2; criterion "area".

    Source: Ullrich et al. 2021 (doi:10.5194/gmd-14-5023-2021), McClenny et al. 2020 (doi:10.1029/2020JD032421).
    """
    ivt = step.fields["IVT"]
    laplacian = ring_laplacian(ivt, step.lat, step.lon, radius_degrees)
    looked_at = (np.abs(step.lat) >= min_latitude)[:, None]
    labels = label_regions((laplacian <= max_laplacian) & looked_at, is_periodic(step.lon), connectivity=4)
    found = measure_regions(labels, step.lat, step.lon)
    area = found.area / 1e6
    regions = RegionTable(
        measures={"lat": found.lat, "lon": found.lon, "area_km2": area}, failed={"area": ~(area >= min_area_km2)}
    )
    untold = np.isnan(ivt) | (np.isnan(laplacian) & looked_at)
    return Rivers(marked(labels, regions.kept), untold, regions)
