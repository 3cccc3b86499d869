"""Candidates for tropical cyclones at one time step, by the criteria of TECA."""

from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from scipy.spatial import cKDTree

from climseg.grid import Floats, chord, is_periodic, relative_vorticity, unit_vectors
from climseg.labels.needs import Needs, criteria, needs
from climseg.labels.step import Candidate, Field, Step
from climseg.labels.windows import Window, cap, smallest_rise

CHANNELS: Final = ("U850", "V850", "UBOT", "VBOT", "PSL", "T200", "T500", "Z1000", "Z200")
# Share of the vorticity asked for down to which maxima are listed where explanations are asked for.
_LOOKED_AT: Final = 0.25
# Rows whose vorticity is computed at once: they fit into a processor's cache.
_ROWS: Final = 32
# Peaks whose neighbours are held at once: noise has 100,000 peaks with 1,000 neighbours each.
_PEAKS: Final = 1000


@criteria("vorticity", "leaves the grid", "pressure minimum", "pressure rise", "warm core", "thickness", "wind")
@needs(Needs(CHANNELS))
def teca_candidates(
    step: Step,
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
    - "warm core": (T500 + T200)/2 has a local maximum within ``core_degrees`` of the pressure minimum, on the same side
      of the equator, and falls from there by ``core_fall_k`` within ``core_fall_degrees`` in 8 directions;
    - "thickness": Z200 - Z1000 likewise, by ``thickness_fall_m`` within ``thickness_degrees``;
    - "wind": the wind at the lowest model level (UBOT, VBOT: TECA's surface wind) reaches ``min_wind`` in the window.

    TECA asks for the last three on two days of a track, not of a candidate: a track may hold candidates that fail these
    alone. "leaves the grid" means that a window, cap or ray would reach beyond an open grid, and that nothing further
    was judged. A missing value (NaN) fails the criterion that meets it.

    Args:
        step: With ``CHANNELS``.
        min_vorticity: 1/s. Where ``step.explain`` is set, maxima of a quarter of it are judged too, and rejected by
            "vorticity".
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
        The candidates, the strongest vorticity first and one for each pressure minimum (the vorticity maximum, where
        there is no such minimum). ``wind`` is the strongest within the vorticity window. ``measures``:
        ``vorticity_per_s``, positive is cyclonic in both hemispheres; ``pressure_rise_pa``, ``core_fall_k`` and
        ``thickness_fall_m``, the smallest of 8 directions.
    """
    fields, lat, lon = step.fields, step.lat, step.lon
    psl = fields["PSL"]
    # The negative fields: all three have their extreme as a minimum, and rise from there.
    coldness, thinness = -0.5 * (fields["T500"] + fields["T200"]), fields["Z1000"] - fields["Z200"]
    reach = max(pressure_degrees, core_degrees + max(core_fall_degrees, thickness_degrees))

    def judge(row: int, column: int, vorticity: float) -> Candidate:
        weak = ("vorticity",) if vorticity < min_vorticity else ()
        measures = {"vorticity_per_s": vorticity} | dict.fromkeys(
            ("pressure_rise_pa", "core_fall_k", "thickness_fall_m"), np.nan
        )
        peak = Candidate(row, column, float(lat[row]), float(lon[column]), measures=measures)
        window = cap(lat, lon, peak.lat, peak.lon, window_degrees / 2)
        if window is None or cap(lat, lon, peak.lat, peak.lon, core_degrees) is None:
            return replace(peak, rejected_by=(*weak, "leaves the grid"))
        well = _lowest_minimum(psl, lat, lon, row, column, core_degrees)
        if well is None:
            return replace(peak, rejected_by=(*weak, "pressure minimum"))
        storm = replace(
            peak, row=well[0], column=well[1], lat=float(lat[well[0]]), lon=float(lon[well[1]]), psl=float(psl[well])
        )
        if cap(lat, lon, storm.lat, storm.lon, reach) is None:
            return replace(storm, rejected_by=(*weak, "leaves the grid"))

        def rise(field: Field, radius: float) -> float:
            bottom = _lowest_minimum(field, lat, lon, *well, core_degrees)
            return smallest_rise(field, lat, lon, *bottom, radius) if bottom else np.nan

        measures = measures | {
            "pressure_rise_pa": smallest_rise(psl, lat, lon, *well, pressure_degrees),
            "core_fall_k": rise(coldness, core_fall_degrees),
            "thickness_fall_m": rise(thinness, thickness_degrees),
        }
        cells = window[0].cells
        speed = np.hypot(fields["UBOT"][cells], fields["VBOT"][cells])
        wind = float(speed[window[1] <= window_degrees / 2].max())
        fulfils = {
            "pressure rise": measures["pressure_rise_pa"] >= pressure_rise_pa,
            "warm core": measures["core_fall_k"] >= core_fall_k,
            "thickness": measures["thickness_fall_m"] >= thickness_fall_m,
            "wind": wind >= min_wind,
        }
        rejected_by = tuple(name for name, fulfilled in fulfils.items() if not fulfilled)
        return replace(storm, wind=wind, measures=measures, rejected_by=weak + rejected_by)

    found: dict[tuple[int, int], Candidate] = {}
    least = min_vorticity * _LOOKED_AT if step.explain else min_vorticity
    for row, column, vorticity in _vorticity_maxima(step, least, window_degrees / 2, max_latitude):
        candidate = judge(row, column, vorticity)
        found.setdefault((candidate.row, candidate.column), candidate)
    return list(found.values())


def _vorticity_maxima(step: Step, least: float, radius: float, max_latitude: float) -> list[tuple[int, int, float]]:
    """Cells of at least ``least`` that no cell within ``radius`` degrees of arc exceeds, the strongest first."""
    lat, lon = step.lat, step.lon
    if min(lat.size, lon.size) < 3:  # too few for a difference, and for any storm
        return []
    strong = _strong_cells(step, least)
    rows, columns = np.nonzero(strong > -np.inf)
    if rows.size == 0:
        return []
    values = strong[rows, columns]
    points = unit_vectors(lat[rows], lon[columns])
    # A tree of the few strong cells: what lies below the threshold cannot exceed them.
    tree = cKDTree(points)
    is_peak = _exceeded_by_no_neighbour(strong, rows, columns, is_periodic(lon)) & (np.abs(lat[rows]) <= max_latitude)
    peaks = np.flatnonzero(is_peak)
    near = chord(radius)
    maxima = []
    for first in range(0, peaks.size, _PEAKS):
        some = peaks[first : first + _PEAKS]
        around = tree.query_ball_point(points[some], near)
        maxima += [index for index, cells in zip(some, around, strict=True) if values[index] >= values[cells].max()]
    return [(int(rows[i]), int(columns[i]), float(values[i])) for i in sorted(maxima, key=lambda i: -values[i])]


def _strong_cells(step: Step, least: float) -> Floats:
    """Cyclonic vorticity (lat, lon) in 1/s where it reaches ``least``, minus infinity elsewhere."""
    u, v, lat = step.fields["U850"], step.fields["V850"], step.lat
    strong = np.full(u.shape, -np.inf)
    for first in range(0, lat.size, _ROWS):
        last = min(first + _ROWS, lat.size)
        # Two more rows on either side: differences at the ends are one-sided, with three points.
        rows = slice(max(first - 2, 0), min(last + 2, lat.size))
        zeta = relative_vorticity(u[rows], v[rows], lat[rows], step.lon)[first - rows.start : last - rows.start]
        cyclonic = zeta * np.sign(lat[first:last])[:, None]
        np.copyto(strong[first:last], cyclonic, where=cyclonic >= least)
    return strong


def _exceeded_by_no_neighbour(
    strong: Floats, rows: NDArray[np.int64], columns: NDArray[np.int64], closed: bool
) -> NDArray[np.bool_]:
    """Where (n,) none of the 8 neighbours is higher; what is not there is not."""
    height, width = strong.shape
    result = np.ones(rows.shape, dtype=np.bool_)
    for north in (-1, 0, 1):
        for east in (-1, 0, 1):
            row = np.clip(rows + north, 0, height - 1)
            column = (columns + east) % width if closed else np.clip(columns + east, 0, width - 1)
            result &= strong[row, column] <= strong[rows, columns]
    return result


def _lowest_minimum(
    field: Field, lat: Floats, lon: Floats, row: int, column: int, radius: float
) -> tuple[int, int] | None:
    """The lowest local minimum within ``radius`` degrees of arc of a cell, on its side of the equator, or None.

    A local minimum is a cell that none of its present neighbours (of 8) is below.
    """
    near = cap(lat, lon, float(lat[row]), float(lon[column]), radius)
    assert near is not None  # the callers have seen to it
    window, distance = near
    allowed = (distance <= radius) & (lat[window.rows] * lat[row] > 0)[:, None]
    values = np.where(allowed & _local_minima(field, window, is_periodic(lon)), field[window.cells], np.inf)
    best = np.unravel_index(values.argmin(), values.shape)
    if values[best] == np.inf:
        return None
    return int(window.rows[best[0]]), int(window.columns[best[1]])


def _local_minima(field: Field, window: Window, closed: bool) -> NDArray[np.bool_]:
    """Cells (rows, columns) of a window that none of their present neighbours in the field is below."""
    rows = np.arange(window.rows[0] - 1, window.rows[-1] + 2).clip(0, field.shape[0] - 1)
    west, east = window.columns[0] - 1, window.columns[-1] + 1
    ends = np.array([west, east])
    ends = ends % field.shape[1] if closed else ends.clip(0, field.shape[1] - 1)
    wider = Window(rows, np.concatenate([ends[:1], window.columns, ends[1:]]))
    values = field[wider.cells]
    present = np.where(np.isfinite(values), values, np.inf)
    lowest = ndimage.minimum_filter(present, size=3)[1:-1, 1:-1]
    return np.asarray((present[1:-1, 1:-1] == lowest) & np.isfinite(values[1:-1, 1:-1]))
