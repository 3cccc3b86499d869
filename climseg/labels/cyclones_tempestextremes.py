"""Candidates for tropical cyclones at one time step, by the criteria of TempestExtremes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from climseg.grid import GRAVITY, Floats, chord, is_periodic, longitude_difference, rim, unit_vectors
from climseg.labels.contours import Contour, follow_contour, may_close
from climseg.labels.needs import Choice, Needs, StandIn, criteria, needs
from climseg.labels.step import Candidate, Field, Step
from climseg.labels.windows import Indices, cap

# U.S. Standard Atmosphere 1976: K/m, and J/kg/K for dry air.
LAPSE_RATE: Final = 0.0065
GAS_CONSTANT: Final = 287.053
# Minima whose neighbours are looked up at once: of a noisy field there are a hundred thousand, each with hundreds.
_MINIMA: Final = 1000
_CORE: Final = Choice(
    ("Z300", "Z500"),
    (
        StandIn(("T200", "T500"), "(T200 + T500)/2 in place of Z300 - Z500"),
        StandIn(("Z200", "Z1000"), "Z200 - Z1000 in place of Z300 - Z500"),
    ),
)


@dataclass(frozen=True)
class _Core:
    """What is warm in a storm: the top is sought within ``near``, and the fall within ``fall_within`` degrees of it."""

    name: str
    warmth: Field
    fall: float
    fall_within: float
    near: float


def needs_of_tempestextremes(*, max_height_m: float | None = 150.0, **thresholds: object) -> Needs:
    """The channels of :func:`tempestextremes_candidates` under its options; other thresholds make no difference."""
    surface = () if max_height_m is None else ("PS", "TREFHT")
    return Needs(("PSL", "UBOT", "VBOT", *surface), (_CORE,))


@criteria("merged", "closed contour", "leaves the grid", "warm core", "wind", "latitude", "height")
@needs(needs_of_tempestextremes)
def tempestextremes_candidates(
    step: Step,
    *,
    merge_degrees: float = 6.0,
    pressure_rise_pa: float = 200.0,
    pressure_degrees: float = 5.5,
    core_fall_m: float = 6.0,
    core_fall_degrees: float = 6.5,
    core_degrees: float = 1.0,
    temperature_fall_k: float = 0.6,
    temperature_fall_degrees: float = 4.0,
    temperature_degrees: float = 0.3,
    thickness_fall_m: float = 50.0,
    thickness_fall_degrees: float = 4.0,
    thickness_degrees: float = 1.0,
    wind_degrees: float = 2.0,
    min_wind: float = 10.0,
    max_latitude: float = 50.0,
    max_height_m: float | None = 150.0,
) -> list[Candidate]:
    """Find the pressure minima of one time step and say which criteria of TempestExtremes each of them fails.

    Criteria, defaults and their order are those of ``DetectNodes`` and ``StitchNodes`` (Ullrich et al. 2021, for
    ERA5); every distance is a great circle:

    - A cell is a minimum of PSL when none of its 8 neighbours is lower; equal neighbours count once, and the rim of an
      open grid does not count, since what lies beyond may be lower.
    - "merged": a minimum with a lower pressure lies within ``merge_degrees``. As in TempestExtremes this comes first,
      so a storm next to a deeper low is lost even where that low is none. Of two equal minima the one nearer the
      equator stays, then the southern, then the western one.
    - "closed contour": a contour ``pressure_rise_pa`` above the minimum is closed within ``pressure_degrees``
      (:func:`~climseg.labels.contours.follow_contour`); nothing further is measured where it is not.
    - "warm core": from the maximum of Z300 - Z500 within ``core_degrees`` of the minimum, on the same side of the
      equator, a contour ``core_fall_m`` below it is closed within ``core_fall_degrees``. Where ``step`` lacks these
      heights, (T200 + T500)/2 stands in, with the thresholds ``temperature_*`` that are in use for CAM
      (``_AVG(T200,T500),-0.6,4,0.30``); where it lacks these too, Z200 - Z1000 with the fall that TECA asks for
      (``thickness_*``).
    - "wind": the strongest wind at the lowest model level within ``wind_degrees`` reaches ``min_wind``.
    - "latitude": the minimum lies within ``max_latitude`` of the equator.
    - "height": :func:`surface_height` at the minimum is at most ``max_height_m``; None does not ask.
    - "leaves the grid": a contour or the cap for the core or the wind reaches the rim of an open grid.

    "wind", "latitude" and "height" are what TempestExtremes asks of 10 steps of a track, not of a candidate: a track
    may hold candidates that fail these alone.

    Args:
        step: With the channels of :func:`needs_of_tempestextremes`. A missing value (NaN) fails the criterion that
            meets it.
        merge_degrees: Degrees of arc.
        pressure_rise_pa: Pa.
        pressure_degrees: Degrees of arc.
        core_fall_m: m of Z300 - Z500 (58.8 m2/s2 of geopotential).
        core_fall_degrees: Degrees of arc.
        core_degrees: Degrees of arc.
        temperature_fall_k: K of (T200 + T500)/2.
        temperature_fall_degrees: Degrees of arc.
        temperature_degrees: Degrees of arc.
        thickness_fall_m: m of Z200 - Z1000.
        thickness_fall_degrees: Degrees of arc.
        thickness_degrees: Degrees of arc.
        wind_degrees: Degrees of arc.
        min_wind: m/s.
        max_latitude: Degrees.
        max_height_m: m.

    Returns:
        All minima, the lowest pressure first. ``measures`` holds ``height_m`` and the value at the top of the core,
        ``core_m`` or ``core_k`` (K, where temperature stands in).
    """
    fields, lat, lon = step.fields, step.lat, step.lon
    psl = fields["PSL"]
    core = _core(
        fields,
        (core_fall_m, core_fall_degrees, core_degrees),
        (temperature_fall_k, temperature_fall_degrees, temperature_degrees),
        (thickness_fall_m, thickness_fall_degrees, thickness_degrees),
    )
    coldness = -core.warmth
    unmeasured = {"height_m": np.nan, core.name: np.nan}

    def judge(minimum: Candidate) -> Candidate:
        row, column = minimum.row, minimum.column
        contour = follow_contour(psl, lat, lon, row, column, pressure_rise_pa, pressure_degrees)
        if contour != "closed":
            return replace(minimum, rejected_by=(_reason(contour, "closed contour"),))
        top = _top(core, step, minimum)
        wind = _strongest_wind(step, minimum, wind_degrees)
        if top is None or wind is None:
            return replace(minimum, rejected_by=("leaves the grid",))
        contour = follow_contour(coldness, lat, lon, *top, core.fall, core.fall_within)
        height = np.nan if max_height_m is None else _height_at(fields, row, column)
        fulfils = {
            _reason(contour, "warm core"): contour == "closed",
            "wind": wind >= min_wind,
            "latitude": abs(minimum.lat) <= max_latitude,
            "height": max_height_m is None or height <= max_height_m,
        }
        return replace(
            minimum,
            wind=wind,
            measures={"height_m": height, core.name: float(core.warmth[top])},
            rejected_by=tuple(name for name, fulfilled in fulfils.items() if not fulfilled),
        )

    rows, columns = _local_minima(psl, lat, lon)
    values = psl[rows, columns]
    stays = ~_near_a_lower_one(values, lat[rows], lon[columns], merge_degrees)
    # On an open grid every contour is followed, so as to tell which of them leave it.
    followed = stays.copy()
    if not any(outer.any() for outer in rim(lat, lon)):
        followed[stays] = may_close(psl, lat, lon, rows[stays], columns[stays], pressure_rise_pa, pressure_degrees)
    candidates = []
    for index in np.lexsort((columns, rows, values)):
        row, column = int(rows[index]), int(columns[index])
        rejected_by = ("closed contour",) if stays[index] else ("merged",)
        minimum = Candidate(
            row, column, float(lat[row]), float(lon[column]), float(values[index]), np.nan, unmeasured, rejected_by
        )
        candidates.append(judge(minimum) if followed[index] else minimum)
    return candidates


def surface_height(surface_pressure: Field, sea_level_pressure: Field, temperature: Field) -> NDArray[np.float64]:
    """Height of the surface in m, from how its pressure differs from that at sea level: a stand-in for an orography.

    ``z = T/L ((p0/p)^(R L/g) - 1)``: the hypsometric equation for a temperature that falls with height by a constant
    lapse rate L (6.5 K/km), which is how models reduce pressure to sea level (Trenberth et al. 1993, NCAR/TN-396; U.S.
    Standard Atmosphere 1976).

    Args:
        surface_pressure: Pa, p.
        sea_level_pressure: Pa, p0.
        temperature: K, T, near the surface.
    """
    p, p0, t = (np.asarray(a, dtype=np.float64) for a in (surface_pressure, sea_level_pressure, temperature))
    return np.asarray(t / LAPSE_RATE * ((p0 / p) ** (GAS_CONSTANT * LAPSE_RATE / GRAVITY) - 1.0))


def _reason(contour: Contour, criterion: str) -> str:
    """How it is named that a contour is not closed."""
    return contour if contour == "leaves the grid" else criterion


def _core(
    fields: Mapping[str, Field],
    heights: tuple[float, float, float],
    temperatures: tuple[float, float, float],
    thickness: tuple[float, float, float],
) -> _Core:
    """The warm core that the fields allow, with its thresholds: fall, within which distance, and how near its top."""
    if {"Z300", "Z500"} <= fields.keys():
        return _Core("core_m", fields["Z300"] - fields["Z500"], *heights)
    if {"T200", "T500"} <= fields.keys():
        return _Core("core_k", 0.5 * (fields["T200"] + fields["T500"]), *temperatures)
    return _Core("core_m", fields["Z200"] - fields["Z1000"], *thickness)


def _top(core: _Core, step: Step, minimum: Candidate) -> tuple[int, int] | None:
    """The warmest cell near a minimum, on its side of the equator; None where the cap leaves the grid."""
    near = cap(step.lat, step.lon, minimum.lat, minimum.lon, core.near)
    if near is None:
        return None
    window, distance = near
    allowed = (distance <= core.near) & (step.lat[window.rows] * minimum.lat >= 0)[:, None]
    warmth = np.where(allowed, core.warmth[window.cells], -np.inf)
    best = np.unravel_index(warmth.argmax(), warmth.shape)  # a missing value, where there is one: it fails
    return int(window.rows[best[0]]), int(window.columns[best[1]])


def _strongest_wind(step: Step, minimum: Candidate, radius: float) -> float | None:
    """The strongest wind in m/s at the lowest model level within a distance; None where the cap leaves the grid."""
    near = cap(step.lat, step.lon, minimum.lat, minimum.lon, radius)
    if near is None:
        return None
    window, distance = near
    speed = np.hypot(step.fields["UBOT"][window.cells], step.fields["VBOT"][window.cells])
    return float(speed[distance <= radius].max())


def _height_at(fields: Mapping[str, Field], row: int, column: int) -> float:
    return float(surface_height(*(fields[name][row, column] for name in ("PS", "PSL", "TREFHT"))))


def _local_minima(field: Field, lat: Floats, lon: Floats) -> tuple[Indices, Indices]:
    """Rows and columns (n,) of the cells that no neighbour of 8 is below; of connected equal ones the middle one."""
    closed = is_periodic(lon)
    present = np.where(np.isnan(field), np.inf, field)
    padded = np.pad(present, ((0, 0), (1, 1)), mode="wrap" if closed else "edge")
    in_row = np.minimum(np.minimum(padded[:, :-2], padded[:, 2:]), present)
    lowest = in_row.copy()
    np.minimum(lowest[1:], in_row[:-1], out=lowest[1:])
    np.minimum(lowest[:-1], in_row[1:], out=lowest[:-1])
    is_minimum = (present == lowest) & np.isfinite(present)
    outer_rows, outer_columns = rim(lat, lon)
    is_minimum[outer_rows] = False
    is_minimum[:, outer_columns] = False
    rows, columns = np.nonzero(is_minimum)
    plateau = _plateaus(is_minimum, rows, columns, closed)
    one_each = _middles(plateau, lat[rows], lon[columns])
    return rows[one_each], columns[one_each]


def _plateaus(is_minimum: NDArray[np.bool_], rows: Indices, columns: Indices, closed: bool) -> NDArray[np.int32]:
    """The number (n,) of the plateau that each minimum belongs to: neighbours among minima are equal."""
    height, width = is_minimum.shape
    flat = rows * width + columns
    pairs = []
    for north, east in ((0, 1), (1, -1), (1, 0), (1, 1)):
        to_row, to_column = rows + north, columns + east
        exists = to_row < height
        exists &= closed | ((to_column >= 0) & (to_column < width))
        from_index = np.flatnonzero(exists)
        to_row, to_column = to_row[exists], to_column[exists] % width
        equal = is_minimum[to_row, to_column]
        to_index = np.searchsorted(flat, to_row[equal] * width + to_column[equal])
        pairs.append(np.stack([from_index[equal], to_index]))
    links = np.concatenate(pairs, axis=1)
    matrix = coo_matrix((np.ones(links.shape[1]), (links[0], links[1])), shape=(rows.size, rows.size))
    return np.asarray(connected_components(matrix, directed=False)[1], dtype=np.int32)


def _middles(group: NDArray[np.int32], lat: Floats, lon: Floats) -> Indices:
    """One point of each group, nearest to its middle; where the longitudes start makes no difference."""
    order = np.argsort(group, kind="stable")
    starts = np.flatnonzero(np.diff(group[order], prepend=-1))
    if starts.size == group.size:
        return np.asarray(order)
    points = unit_vectors(lat, lon)
    middle = np.add.reduceat(points[order], starts, axis=0)[group]
    middle_lon = np.degrees(np.arctan2(middle[:, 1], middle[:, 0]))
    # Rounded: equal distances must stay equal.
    nearness = np.round(-(points * middle).sum(axis=1), 6)
    eastward = np.round(longitude_difference(lon, middle_lon), 6)
    best = np.lexsort((eastward, lat, np.abs(lat), nearness, group))
    return np.asarray(best[np.flatnonzero(np.diff(group[best], prepend=-1))])


def _near_a_lower_one(values: Field, lat: Floats, lon: Floats, distance: float) -> NDArray[np.bool_]:
    """Where (n,) a point has a lower one within a distance in degrees of arc; equal ones: see the definition."""
    points = unit_vectors(lat, lon)
    tree = cKDTree(points)
    reach = chord(distance) * (1 + 1e-12)  # at the distance is within it, whatever the rounding
    lost = np.zeros(values.shape, dtype=np.bool_)
    for first in range(0, values.size, _MINIMA):
        near: Any = tree.query_ball_point(points[first : first + _MINIMA], reach)  # lists of indices
        one = np.repeat(np.arange(first, first + len(near)), [len(others) for others in near])
        other = np.concatenate(near).astype(np.int64)
        # Of two equal numbers the next one decides; the smaller stays.
        differences = (
            values[one].astype(np.float64) - values[other],
            np.abs(lat[one]) - np.abs(lat[other]),
            lat[one] - lat[other],
            longitude_difference(lon[one], lon[other]),
        )
        decides = np.zeros(one.shape)
        for difference in differences:
            decides = np.where(decides == 0, difference, decides)
        lost[one[decides > 0]] = True
    return lost
