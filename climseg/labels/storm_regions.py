"""The cells that are marked for one tropical cyclone at one time step."""

import numpy as np

from climseg.grid import Floats, area_weights, away_from, spacing
from climseg.labels.needs import Needs, needs
from climseg.labels.regions import Mask, largest_region
from climseg.labels.step import Candidate, Field, Step, StormRegion
from climseg.labels.windows import Window, box, cap, ring_means, within


@needs(Needs(("TMQ", "U850", "V850", "PRECT", "UBOT", "VBOT")))
def percentile_region(
    step: Step,
    candidate: Candidate,
    *,
    box_margin_degrees: float = 6.6,
    percentile: float = 93.0,
    radius_wind: float = 17.5,
    max_radius_degrees: float = 6.0,
) -> StormRegion:
    """Mark a storm by what is extreme round it, as Kurth et al. 2018 (arXiv:1810.01993) do.

    Round the candidate lies a box of half-width (degrees of latitude and of longitude) :func:`storm_radius` +
    ``box_margin_degrees``. In it each of TMQ, abs(U850), abs(V850) and PRECT gives the cells above its ``percentile``,
    of these the largest connected region (8 neighbours); of the four regions together again the largest connected
    region is marked.

    Args:
        step: With TMQ, U850, V850, PRECT, UBOT and VBOT; missing values are not marked.
        candidate: Its place is the middle of the box.
        box_margin_degrees: Degrees.
        percentile: 0 to 100.
        radius_wind: m/s.
        max_radius_degrees: Degrees of arc.

    Returns:
        Not ``told`` where the box, or the cap in which the radius is looked for, reaches beyond an open grid.
    """
    fields, lat, lon = step.fields, step.lat, step.lon
    radius = storm_radius(step, candidate, radius_wind, max_radius_degrees)
    half_width = box_margin_degrees + (radius or 0.0)
    window = box(lat, lon, candidate.lat, candidate.lon, half_width, half_width)
    if radius is None or window is None:
        return _untold(step, candidate, box_margin_degrees + max_radius_degrees)
    cells = window.cells
    area = np.broadcast_to(area_weights(lat)[window.rows, None], (window.rows.size, window.columns.size))
    tests = (fields["TMQ"][cells], abs(fields["U850"][cells]), abs(fields["V850"][cells]), fields["PRECT"][cells])
    regions = [_upper_region(values, area, percentile) for values in tests]
    return StormRegion(window, largest_region(np.logical_or.reduce(regions), area, periodic=False), radius)


def storm_radius(step: Step, candidate: Candidate, radius_wind: float, max_radius_degrees: float) -> float | None:
    """Radius r0 in degrees of arc at which the mean wind speed round a storm falls below ``radius_wind``.

    As TECA's ``teca_tc_wind_radii`` has it: outward from the ring with the strongest mean, interpolated between rings;
    0 when no ring reaches ``radius_wind`` (63 km/h, where a tropical depression ends). Unlike there, no ring is finer
    than the grid, and a storm whose mean wind does not fall that far has ``max_radius_degrees``, not 0.

    Args:
        step: With UBOT and VBOT.
        candidate: Its place is the centre.
        radius_wind: m/s.
        max_radius_degrees: Degrees of arc, how far to look.

    Returns:
        None when the cap of ``max_radius_degrees`` reaches beyond an open grid.
    """
    around = cap(step.lat, step.lon, candidate.lat, candidate.lon, max_radius_degrees)
    if around is None:
        return None
    window, distance = around
    wind = np.hypot(step.fields["UBOT"][window.cells], step.fields["VBOT"][window.cells])
    # 32 rings in TECA.
    ring_width = max(max_radius_degrees / 32, spacing(step.lat), spacing(step.lon))
    radii, means = ring_means(wind, distance, max_radius_degrees, ring_width)
    if means.size == 0 or means.max() < radius_wind:
        return 0.0
    crossing = _falls_below(radii, means, int(means.argmax()), radius_wind)
    return max_radius_degrees if crossing is None else crossing


@needs(Needs(("UBOT", "VBOT")))
def wind_disk(
    step: Step,
    candidate: Candidate,
    *,
    radius_wind: float = 8.0,
    ring_degrees: float = 0.125,
    max_radius_degrees: float = 10.0,
) -> StormRegion:
    """Mark the disk within which a storm's own wind stays strong, as TempestExtremes does.

    The radius r8 is that of :func:`wind_radius`; cells whose centres lie within it are marked. Where no ring reaches
    ``radius_wind``, the radius is 0 and the mask is empty.

    Args:
        step: With UBOT and VBOT.
        candidate: Its place is the centre.
        radius_wind: m/s.
        ring_degrees: Degrees of arc; 0.125 and 159 rings in TempestExtremes' examples for ERA5.
        max_radius_degrees: Degrees of arc, how far to look: 1,100 km, the gale radius of Tip (1979), the largest storm
            on record. TempestExtremes' examples look 19.875 degrees far, where other weather begins.

    Returns:
        Not ``told`` where the wind has not fallen so far before the rim of an open grid.
    """
    radius = wind_radius(step, candidate, radius_wind, ring_degrees, max_radius_degrees)
    around = None if radius is None else cap(step.lat, step.lon, candidate.lat, candidate.lon, radius)
    if radius is None or around is None:
        return _untold(step, candidate, max_radius_degrees)
    window, distance = around
    return StormRegion(window, (distance <= radius) & (radius > 0.0), radius)


def wind_radius(
    step: Step, candidate: Candidate, radius_wind: float, ring_degrees: float, max_radius_degrees: float
) -> float | None:
    """Largest radius in degrees of arc at which the azimuthal-mean wind round a storm still exceeds a value.

    The wind is its part along the circle round the centre, positive in the cyclonic sense, as in TempestExtremes'
    ``radial_wind_profile``: a uniform wind over the storm has no mean along a circle, while it would raise the mean
    speed everywhere. TempestExtremes then takes the last ring above the value anywhere (``lastwhere(rprof,>,8)``).
    Here the radius is where the profile first falls back to the value outside the innermost ring that exceeds it: the
    same for a storm alone, and "still" holds when a jet or another storm lifts the mean again further out. It is
    interpolated between rings, and no ring is finer than the grid: a ring of few cells or none would make a false 0.

    Args:
        step: With UBOT and VBOT; missing values are left out of the means.
        candidate: Its place is the centre.
        radius_wind: m/s.
        ring_degrees: Degrees of arc, the width of a ring on a fine grid.
        max_radius_degrees: Degrees of arc, how far to look; the radius where the wind falls nowhere.

    Returns:
        0 where no ring exceeds the value; None where that cannot be told, since rings reach beyond an open grid.
    """
    width = max(ring_degrees, spacing(step.lat), spacing(step.lon))
    seen = _widest_cap(step, candidate, width, max_radius_degrees)
    if seen is None:
        return None
    window, distance, radius = seen
    u, v = (step.fields[name][window.cells] for name in ("UBOT", "VBOT"))
    east, north = away_from(candidate.lat, candidate.lon, step.lat[window.rows][:, None], step.lon[window.columns])[1:]
    along = (v * east - u * north) * (-1.0 if candidate.lat < 0 else 1.0)
    radii, means = ring_means(along, np.where(distance > 0, distance, np.inf), radius, width)
    strong = np.flatnonzero(means > radius_wind)
    seen_whole = radius == max_radius_degrees
    if not strong.size:
        return 0.0 if seen_whole else None
    crossing = _falls_below(radii, means, int(strong[0]), radius_wind)
    return max_radius_degrees if crossing is None and seen_whole else crossing


def _untold(step: Step, candidate: Candidate, radius: float) -> StormRegion:
    """The cells within a distance, in degrees of arc, of which it cannot be told whether they are of the storm."""
    window, distance = within(step.lat, step.lon, candidate.lat, candidate.lon, radius)
    return StormRegion(window, distance <= radius, np.nan, told=False)


def _falls_below(radii: Floats, means: Floats, start: int, value: float) -> float | None:
    """Where a profile first falls below a value outward from a ring that reaches it, interpolated; None: nowhere."""
    below = start + np.flatnonzero(means[start:] < value)
    if below.size == 0:
        return None
    outer = int(below[0])
    return float(np.interp(-value, -means[outer - 1 : outer + 1], radii[outer - 1 : outer + 1]))


def _widest_cap(step: Step, candidate: Candidate, width: float, radius: float) -> tuple[Window, Floats, float] | None:
    """The cap of a radius, or of as many whole rings as an open grid holds: window, distances, radius."""
    for tried in (radius, *np.arange(int(radius / width), 0, -1) * width):
        around = cap(step.lat, step.lon, candidate.lat, candidate.lon, float(tried))
        if around is not None:
            return *around, float(tried)
    return None


def _upper_region(values: Field, area: Floats, percentile: float) -> Mask:
    """The largest connected region of the cells above a percentile of the values that are present."""
    present = values[np.isfinite(values)]
    above = values > np.percentile(present, percentile) if present.size else np.zeros(values.shape, dtype=np.bool_)
    return largest_region(above, area, periodic=False)
