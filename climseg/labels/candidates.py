"""Candidates for tropical cyclones at one time step, by the criteria of TECA."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from scipy.spatial import cKDTree

from climseg.grid import Floats, is_periodic, relative_vorticity, unit_vectors
from climseg.labels.windows import cap, smallest_rise

Field = NDArray[np.floating[Any]]
CANDIDATE_CHANNELS: Final = ("U850", "V850", "UBOT", "VBOT", "PSL", "T200", "T500", "Z1000", "Z200")


@dataclass(frozen=True)
class Candidate:
    """A maximum of vorticity and what was found round it. What a failed criterion keeps from being measured is NaN.

    Attributes:
        row: Latitude index of the pressure minimum, or of the vorticity maximum where there is no such minimum.
        column: Longitude index of the same point.
        lat: Degrees, of the same point.
        lon: Degrees, of the same point.
        vorticity: 1/s, the maximum at 850 hPa; positive is cyclonic in both hemispheres.
        rejected_by: The criteria that fail; none for a storm.
        psl: Pa, the pressure minimum.
        pressure_rise: Pa, the smallest rise along 8 rays from the pressure minimum.
        core_fall: K, the smallest fall of the core temperature along 8 rays from its maximum.
        thickness_fall: m, the smallest fall of the thickness along 8 rays from its maximum.
        wind: m/s, the strongest at the lowest level within the vorticity window.
    """

    row: int
    column: int
    lat: float
    lon: float
    vorticity: float
    rejected_by: tuple[str, ...] = ()
    psl: float = np.nan
    pressure_rise: float = np.nan
    core_fall: float = np.nan
    thickness_fall: float = np.nan
    wind: float = np.nan


def teca_candidates(
    fields: Mapping[str, Field],
    lat: Floats,
    lon: Floats,
    *,
    min_vorticity: float = 1.6e-4,
    window_degrees: float = 7.74446,
    core_degrees: float = 2.0,
    pressure_rise_pa: float = 400.0,
    pressure_degrees: float = 5.0,
    core_fall_k: float = 0.8,
    core_fall_degrees: float = 5.0,
    thickness_fall_m: float = 50.0,
    thickness_degrees: float = 4.0,
    min_wind: float = 17.0,
    max_latitude: float = 80.0,
) -> list[Candidate]:
    """Find the vorticity maxima of one time step and say which criteria of TECA each of them fails.

    The criteria and defaults are those of TECA's ``teca_tc_detect``, with great-circle distances in place of
    differences in degrees of latitude and longitude:

    - vorticity at 850 hPa, cyclonic in its hemisphere, that is the maximum of a window of ``window_degrees``;
    - "pressure minimum": PSL has a local minimum within ``core_degrees``, on the same side of the equator;
    - "pressure rise": PSL rises from there by ``pressure_rise_pa`` within ``pressure_degrees`` in 8 directions;
    - "warm core": (T500 + T200)/2 has a local maximum within ``core_degrees`` of the pressure minimum and falls from
      there by ``core_fall_k`` within ``core_fall_degrees`` in 8 directions;
    - "thickness": Z200 - Z1000 likewise, by ``thickness_fall_m`` within ``thickness_degrees``;
    - "wind": the wind at the lowest model level (UBOT, VBOT: TECA's surface wind) reaches ``min_wind`` in the window.

    TECA asks for the last three on two days of a track only, which needs more than one time step. "leaves the grid"
    means that a window, cap or ray would reach beyond an open grid, and that nothing further was judged. A missing
    value (NaN) fails the criterion that meets it.

    Args:
        fields: ``CANDIDATE_CHANNELS``, each (lat, lon), in canonical units.
        lat: (lat,) degrees, ascending.
        lon: (lon,) degrees, ascending.
        min_vorticity: 1/s. To learn why a weaker storm is not found, lower it and read ``rejected_by``.
        window_degrees: Degrees of arc, the whole width.
        core_degrees: Degrees of arc.
        pressure_rise_pa: Pa.
        pressure_degrees: Degrees of arc.
        core_fall_k: K.
        core_fall_degrees: Degrees of arc.
        thickness_fall_m: m.
        thickness_degrees: Degrees of arc.
        min_wind: m/s.
        max_latitude: Degrees; nearer to a pole no maximum of vorticity is a candidate.

    Returns:
        The candidates, the strongest vorticity first and one for each pressure minimum.
    """
    cyclonic = relative_vorticity(fields["U850"], fields["V850"], lat, lon) * np.sign(lat)[:, None]
    psl, wind = fields["PSL"], np.hypot(fields["UBOT"], fields["VBOT"])
    core, thickness = 0.5 * (fields["T500"] + fields["T200"]), fields["Z200"] - fields["Z1000"]
    closed = is_periodic(lon)
    wells, core_peaks, thickness_peaks = (_local_maxima(f, closed) for f in (-psl, core, thickness))
    reach = max(pressure_degrees, core_degrees + max(core_fall_degrees, thickness_degrees))

    def judge(row: int, column: int) -> Candidate:
        peak = Candidate(row, column, float(lat[row]), float(lon[column]), float(cyclonic[row, column]))
        window = cap(lat, lon, peak.lat, peak.lon, window_degrees / 2)
        if window is None or cap(lat, lon, peak.lat, peak.lon, core_degrees) is None:
            return replace(peak, rejected_by=("leaves the grid",))
        well = _highest(-psl, wells & (lat * peak.lat > 0)[:, None], lat, lon, row, column, core_degrees)
        if well is None:
            return replace(peak, rejected_by=("pressure minimum",))
        storm = replace(
            peak, row=well[0], column=well[1], lat=float(lat[well[0]]), lon=float(lon[well[1]]), psl=float(psl[well])
        )
        if cap(lat, lon, storm.lat, storm.lon, reach) is None:
            return replace(storm, rejected_by=("leaves the grid",))

        def peak_fall(field: Field, peaks: NDArray[np.bool_], radius: float) -> float:
            top = _highest(field, peaks, lat, lon, *well, core_degrees)
            return smallest_rise(-field, lat, lon, *top, radius) if top else np.nan

        storm = replace(
            storm,
            pressure_rise=smallest_rise(psl, lat, lon, *well, pressure_degrees),
            core_fall=peak_fall(core, core_peaks, core_fall_degrees),
            thickness_fall=peak_fall(thickness, thickness_peaks, thickness_degrees),
            wind=float(wind[window[0].cells][window[1] <= window_degrees / 2].max()),
        )
        criteria = {
            "pressure rise": storm.pressure_rise >= pressure_rise_pa,
            "warm core": storm.core_fall >= core_fall_k,
            "thickness": storm.thickness_fall >= thickness_fall_m,
            "wind": storm.wind >= min_wind,
        }
        return replace(storm, rejected_by=tuple(name for name, fulfilled in criteria.items() if not fulfilled))

    found: dict[tuple[int, int], Candidate] = {}
    for row, column in _vorticity_maxima(cyclonic, lat, lon, min_vorticity, window_degrees / 2, max_latitude):
        candidate = judge(row, column)
        found.setdefault((candidate.row, candidate.column), candidate)
    return list(found.values())


def _local_maxima(field: Field, closed: bool) -> NDArray[np.bool_]:
    """Cells (lat, lon) that none of their present neighbours exceeds."""
    present = np.where(np.isfinite(field), field, -np.inf)
    highest = ndimage.maximum_filter(present, size=3, mode=("nearest", "wrap" if closed else "nearest"))
    return np.asarray((present == highest) & np.isfinite(field))


def _vorticity_maxima(
    cyclonic: Floats, lat: Floats, lon: Floats, least: float, radius: float, max_latitude: float
) -> list[tuple[int, int]]:
    """Cells of at least ``least`` that no cell within ``radius`` degrees of arc exceeds, the strongest first."""
    strong = cyclonic >= least
    rows, columns = np.nonzero(strong)
    if rows.size == 0:
        return []
    values = cyclonic[rows, columns]
    points = unit_vectors(lat[rows], lon[columns])
    # A tree of the few strong cells: what lies below the threshold cannot exceed them.
    tree = cKDTree(points)
    is_peak = _local_maxima(cyclonic, is_periodic(lon))[rows, columns] & (np.abs(lat[rows]) <= max_latitude)
    peaks = np.flatnonzero(is_peak)
    chord = 2 * np.sin(np.radians(radius) / 2)
    maxima = [
        index
        for index, near in zip(peaks, tree.query_ball_point(points[peaks], chord), strict=True)
        if values[index] >= values[near].max()
    ]
    return [(int(rows[i]), int(columns[i])) for i in sorted(maxima, key=lambda i: -values[i])]


def _highest(
    field: Field, allowed: NDArray[np.bool_], lat: Floats, lon: Floats, row: int, column: int, radius: float
) -> tuple[int, int] | None:
    """The allowed cell with the highest value within ``radius`` degrees of arc of a cell, or None without one."""
    near = cap(lat, lon, float(lat[row]), float(lon[column]), radius)
    assert near is not None  # the callers have seen to it
    window, distance = near
    values = np.where(allowed[window.cells] & (distance <= radius), field[window.cells], -np.inf)
    best = np.unravel_index(values.argmax(), values.shape)
    if values[best] == -np.inf:
        return None
    return int(window.rows[best[0]]), int(window.columns[best[1]])
