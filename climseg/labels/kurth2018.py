"""The label heuristic of Kurth et al. 2018: rivers from TMQ, cyclones from TECA's candidates, step by step."""

import inspect
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from climseg.canonical import DIMS, LABEL_ATTRIBUTES, check_canonical
from climseg.channels import LABELS
from climseg.errors import InputError, near_matches
from climseg.grid import Floats, cell_area, is_periodic, spacing
from climseg.labels.candidates import CANDIDATE_CHANNELS, Candidate, Field, teca_candidates
from climseg.labels.combine import combine
from climseg.labels.needs import Needs, needs
from climseg.labels.regions import Mask, label_regions, largest_region, measure_regions
from climseg.labels.windows import box, cap, ring_means

RIVER_CHANNELS: Final = ("TMQ",)
COMMENT: Final = "Kurth et al. 2018 heuristic; per time step; without the two-day track rule"
CYCLONE_CHANNELS: Final = (*CANDIDATE_CHANNELS, "TMQ", "PRECT")
# Grids coarser than this are warned of.
COARSE_DEGREES: Final = 1.0
_RIVERS_OPTION: Final = "labels.tropical_cyclones=false"
_RIVERS_ALONE: Final = f"Tropical cyclones need that; set {_RIVERS_OPTION} to label rivers alone."
logger = logging.getLogger(__name__)


def needs_of_kurth2018(*, tropical_cyclones: bool = True, **thresholds: object) -> Needs:
    """The channels that :func:`kurth2018` needs under its options; thresholds make no difference."""
    if not tropical_cyclones:
        return Needs(RIVER_CHANNELS)
    return Needs(CYCLONE_CHANNELS, RIVER_CHANNELS, _RIVERS_OPTION, _RIVERS_ALONE)


@needs(needs_of_kurth2018)
def kurth2018(
    ds: xr.Dataset,
    *,
    ar: Mapping[str, float] | None = None,
    tc: Mapping[str, float] | None = None,
    tropical_cyclones: bool = True,
) -> xr.DataArray:
    """Label every time step of a canonical Dataset by itself: **without TECA's two-day track rule**.

    A storm counts in each step in which it fulfils all criteria at once, and a short-lived one counts too. Rivers and
    cyclones are those of :func:`atmospheric_rivers` and :func:`mark_cyclones`; a cyclone overwrites a river. A cell
    where any field in use is missing (NaN) is ``channels.MISSING_LABEL``.

    Args:
        ds: Canonical, with ``CYCLONE_CHANNELS``, or with TMQ alone if ``tropical_cyclones`` is false.
        ar: Thresholds of :func:`atmospheric_rivers` that differ from its defaults.
        tc: Thresholds of :func:`mark_cyclones` and :func:`~climseg.labels.candidates.teca_candidates` that differ.
        tropical_cyclones: False marks rivers alone.

    Returns:
        LABELS (time, lat, lon) int8, lazy when ``ds`` is. ``comment`` says how they were made, ``definition`` adds the
        thresholds.

    Raises:
        InputError: ``ds`` is not canonical, a channel is missing or a threshold has an unknown name.

    Source: Kurth et al. 2018 (arXiv:1810.01993) and the criteria of TECA.
    """
    check_canonical(ds)
    river_thresholds = _thresholds("ar", ar, atmospheric_rivers)
    cyclone_thresholds = _thresholds("tc", tc, mark_cyclones, teca_candidates) if tropical_cyclones else None
    channels = CYCLONE_CHANNELS if tropical_cyclones else RIVER_CHANNELS
    _require(ds, channels)
    lat, lon = (np.asarray(ds[axis].values, dtype=np.float64) for axis in ("lat", "lon"))
    relaxed = river_thresholds["max_width_m"] > _thresholds("ar", None, atmospheric_rivers)["max_width_m"]
    _warn_if_coarse(lat, lon, tropical_cyclones, relaxed)

    def label(*arrays: Field) -> NDArray[np.int8]:  # each (time, lat, lon)
        masks = [
            _label_step(dict(zip(channels, step, strict=True)), lat, lon, river_thresholds, cyclone_thresholds)
            for step in zip(*arrays, strict=True)
        ]
        return np.stack(masks) if masks else np.zeros(arrays[0].shape, dtype=np.int8)

    whole = ds[list(channels)].chunk({"lat": -1, "lon": -1}) if ds.chunks else ds
    labels: xr.DataArray = xr.apply_ufunc(
        label,
        *(whole[channel] for channel in channels),
        input_core_dims=[["lat", "lon"]] * len(channels),
        output_core_dims=[["lat", "lon"]],
        dask="parallelized",
        output_dtypes=[np.int8],
        keep_attrs=False,
    )
    return (
        labels.transpose(*DIMS)
        .rename(LABELS)
        .assign_attrs(
            LABEL_ATTRIBUTES | {"comment": COMMENT, "definition": _definition(river_thresholds, cyclone_thresholds)}
        )
    )


def atmospheric_rivers(
    tmq: Field,
    lat: Floats,
    lon: Floats,
    *,
    threshold: float = 24.0,
    damping_degrees: float = 19.0,
    min_diagonal_m: float = 1.5e6,
    max_width_m: float = 1.0e6,
) -> Mask:
    """Mark (lat, lon) long and narrow regions of much water vapour outside the tropics.

    TMQ is damped towards the equator by ``1 - exp(-lat^2 / (2 damping_degrees^2))``; of the regions above ``threshold``
    (4 neighbours, over the seam of a closed grid) those stay whose bounding box has a diagonal longer than
    ``min_diagonal_m`` and whose area over its north-south extent is below ``max_width_m``. The box and the extent reach
    to the outer edges of the cells, so that area over extent is the mean width from west to east.

    Args:
        tmq: (lat, lon) kg/m2; missing values (NaN) are no river.
        lat: (lat,) degrees, ascending.
        lon: (lon,) degrees, ascending.
        threshold: kg/m2. The authors' second set of labels has 21.
        damping_degrees: Degrees of latitude.
        min_diagonal_m: m.
        max_width_m: m.
    """
    damped = tmq * (1.0 - np.exp(-(lat**2) / (2.0 * damping_degrees**2)))[:, None]
    labels = label_regions(damped > threshold, is_periodic(lon), connectivity=4)
    measures = measure_regions(labels, lat, lon)
    width = measures.area / measures.north_south_extent
    kept = np.concatenate([[False], (measures.diagonal > min_diagonal_m) & (width < max_width_m)])
    return np.asarray(kept[labels])


def mark_cyclones(
    fields: Mapping[str, Field],
    lat: Floats,
    lon: Floats,
    *,
    box_margin_degrees: float = 6.6,
    percentile: float = 93.0,
    radius_wind: float = 17.5,
    max_radius_degrees: float = 6.0,
    **criteria: float,
) -> Mask:
    """Mark (lat, lon) the storms among TECA's candidates.

    Round the pressure minimum of each storm lies a box of half-width (degrees of latitude and of longitude)
    :func:`storm_radius` + ``box_margin_degrees``. In it each of TMQ, abs(U850), abs(V850) and PRECT gives the cells
    above its ``percentile``, of these the largest connected region (8 neighbours); of the four regions together again
    the largest connected region is marked. A storm never removes another one's cells. A storm whose box reaches beyond
    an open grid is not marked.

    Args:
        fields: ``CYCLONE_CHANNELS``, each (lat, lon), in canonical units; missing values are not marked.
        lat: (lat,) degrees, ascending.
        lon: (lon,) degrees, ascending.
        box_margin_degrees: Degrees.
        percentile: 0 to 100.
        radius_wind: m/s.
        max_radius_degrees: Degrees of arc.
        criteria: Thresholds of :func:`~climseg.labels.candidates.teca_candidates`.
    """
    mask = np.zeros((lat.size, lon.size), dtype=np.bool_)
    area = cell_area(lat, lon)
    wind = np.hypot(fields["UBOT"], fields["VBOT"])
    for candidate in teca_candidates(fields, lat, lon, **criteria):
        window = None
        if not candidate.rejected_by:
            radius = storm_radius(wind, candidate, lat, lon, radius_wind, max_radius_degrees)
            half_width = box_margin_degrees + (radius or 0.0)
            window = None if radius is None else box(lat, lon, candidate.lat, candidate.lon, half_width, half_width)
        if window is not None:
            cells = window.cells
            tests = (fields["TMQ"], np.abs(fields["U850"]), np.abs(fields["V850"]), fields["PRECT"])
            regions = [_upper_region(field[cells], area[cells], percentile) for field in tests]
            mask[cells] |= largest_region(np.logical_or.reduce(regions), area[cells], periodic=False)
        elif candidate.rejected_by in ((), ("leaves the grid",)):
            logger.info(
                "no cyclone marked at lat %.2f, lon %.2f: what must be seen round it reaches beyond the grid",
                candidate.lat,
                candidate.lon,
            )
    return mask


def storm_radius(
    wind: Field, storm: Candidate, lat: Floats, lon: Floats, radius_wind: float, max_radius_degrees: float
) -> float | None:
    """Radius r0 in degrees of arc at which the mean wind speed round a storm falls below ``radius_wind``.

    As TECA's ``teca_tc_wind_radii`` has it: outward from the ring with the strongest mean, interpolated between rings;
    0 when no ring reaches ``radius_wind`` (63 km/h, where a tropical depression ends). Unlike there, no ring is finer
    than the grid, and a storm whose mean wind does not fall that far has ``max_radius_degrees``, not 0.

    Args:
        wind: (lat, lon) m/s at the lowest model level.
        storm: Its place is the centre.
        lat: (lat,) degrees, ascending.
        lon: (lon,) degrees, ascending.
        radius_wind: m/s.
        max_radius_degrees: Degrees of arc, how far to look.

    Returns:
        None when the cap of ``max_radius_degrees`` reaches beyond an open grid.
    """
    around = cap(lat, lon, storm.lat, storm.lon, max_radius_degrees)
    if around is None:
        return None
    window, distance = around
    # 32 rings in TECA.
    ring_width = max(max_radius_degrees / 32, spacing(lat), spacing(lon))
    radii, means = ring_means(wind[window.cells], distance, max_radius_degrees, ring_width)
    peak = int(means.argmax())
    if means[peak] < radius_wind:
        return 0.0
    below = peak + np.flatnonzero(means[peak:] < radius_wind)
    if below.size == 0:
        return max_radius_degrees
    outer = int(below[0])
    return float(np.interp(-radius_wind, -means[outer - 1 : outer + 1], radii[outer - 1 : outer + 1]))


def _upper_region(values: Field, area: Floats, percentile: float) -> Mask:
    """The largest connected region of the cells above a percentile of the values that are present."""
    present = values[np.isfinite(values)]
    above = values > np.percentile(present, percentile) if present.size else np.zeros(values.shape, dtype=np.bool_)
    return largest_region(above, area, periodic=False)


def _label_step(
    fields: Mapping[str, Field],
    lat: Floats,
    lon: Floats,
    river_thresholds: Mapping[str, float],
    cyclone_thresholds: Mapping[str, float] | None,
) -> NDArray[np.int8]:
    """Class numbers (lat, lon) of one time step; without cyclone thresholds rivers alone."""
    rivers = atmospheric_rivers(fields["TMQ"], lat, lon, **river_thresholds)
    if cyclone_thresholds is None:
        cyclones = np.zeros_like(rivers)
    else:
        cyclones = mark_cyclones(fields, lat, lon, **cyclone_thresholds)
    missing = np.logical_or.reduce([np.isnan(field) for field in fields.values()])
    return combine(cyclones, rivers, missing)


def _thresholds(group: str, given: Mapping[str, float] | None, *functions: Callable[..., Any]) -> dict[str, float]:
    """The keyword defaults of the functions, overridden by what is given; an unknown name is refused."""
    defaults = {
        name: parameter.default
        for function in functions
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }
    for name in given or {}:
        if name not in defaults:
            raise InputError(
                f"labels.{group}: {name!r} is not a threshold{near_matches(name, defaults)} "
                f"(known: {', '.join(defaults)})."
            )
    return defaults | dict(given or {})


def _require(ds: xr.Dataset, channels: tuple[str, ...]) -> None:
    """Refuse a Dataset that lacks channels, naming them and the way to do with fewer."""
    try:
        check_canonical(ds, channels=channels)
    except InputError as error:
        if channels != RIVER_CHANNELS and not set(RIVER_CHANNELS) - set(ds.data_vars):
            raise InputError(f"{error} {_RIVERS_ALONE}") from error
        raise


def _warn_if_coarse(lat: Floats, lon: Floats, tropical_cyclones: bool, relaxed: bool) -> None:
    """Say once which criteria mean little on a grid coarser than 1 degree."""
    step = max(spacing(lat), spacing(lon))
    if step <= COARSE_DEGREES:
        return
    missed = "wide rivers" + (" and most tropical cyclones" if tropical_cyclones else "")
    logger.warning(
        "Warning: a grid of %g degrees is coarse for the thresholds of Kurth et al. 2018, made for 0.25 degrees: "
        "widths count in whole cells, vorticity, wind and warm core are smoothed, so %s may be missed.%s",
        step,
        missed,
        "" if relaxed else " labels=kurth2018_coarse relaxes what matters most.",
    )


def _definition(river_thresholds: Mapping[str, float], cyclone_thresholds: Mapping[str, float] | None) -> str:
    """The heuristic and its thresholds in words."""

    def listed(thresholds: Mapping[str, float]) -> str:
        return ", ".join(f"{name} {value:g}" for name, value in thresholds.items())

    cyclones = "not looked for" if cyclone_thresholds is None else listed(cyclone_thresholds)
    return f"{COMMENT}; atmospheric rivers: {listed(river_thresholds)}; tropical cyclones: {cyclones}"
