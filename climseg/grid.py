"""The sphere: all arithmetic on latitude and longitude stands here.

Latitudes and longitudes are in degrees, lengths in metres, areas in square metres.
"""

from collections import defaultdict
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

# Mean radius used by TECA, TempestExtremes and CAM (m).
EARTH_RADIUS: Final = 6_371_220.0
# Standard gravity (m s-2), CGPM 1901.
GRAVITY: Final = 9.80665


def spacing(coordinate: ArrayLike) -> float:
    """Mean distance in degrees between neighbours of a 1-D, increasing or decreasing coordinate (0.0 for one point)."""
    values = np.asarray(coordinate, dtype=np.float64)
    return abs(float(values[-1] - values[0])) / (values.size - 1) if values.size > 1 else 0.0


def is_periodic(lon: ArrayLike) -> bool:
    """Whether a longitude axis closes: its last point and its first one, 360 degrees on, are one step apart.

    Args:
        lon: (lon,) degrees, monotonic, evenly spaced, no point twice.
    """
    values = np.asarray(lon, dtype=np.float64)
    step = spacing(values)
    return values.size > 2 and abs(values.size * step - 360.0) < 0.5 * step


def cell_edges(lat: ArrayLike) -> Floats:
    """Edges (lat + 1,) of latitude cells in degrees: midway between centres, never beyond the poles.

    The outermost cells reach as far outward as inward, or to the pole where it is nearer than another row would be, as
    on a Gaussian grid.
    """
    centres = np.asarray(lat, dtype=np.float64)
    if centres.size == 1:
        raise ValueError("one latitude has no cell edges; at least two are needed")
    middles = 0.5 * (centres[1:] + centres[:-1])
    edges = np.concatenate([[2 * centres[0] - middles[0]], middles, [2 * centres[-1] - middles[-1]]])
    for end, inner in ((0, 1), (-1, -2)):
        if 90.0 - abs(centres[end]) < 0.999 * abs(centres[end] - centres[inner]):
            edges[end] = np.copysign(90.0, centres[end])
    return np.asarray(np.clip(edges, -90.0, 90.0))


def rim(lat: ArrayLike, lon: ArrayLike) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """The rows (lat,) and columns (lon,) of a grid beyond which the sphere goes on and the grid does not.

    A row whose cells end at the pole (:func:`cell_edges`) has nothing beyond.
    """
    edges, columns = cell_edges(lat), np.zeros(np.asarray(lon).size, dtype=np.bool_)
    rows = np.zeros(edges.size - 1, dtype=np.bool_)
    rows[[0, -1]] = np.abs(edges[[0, -1]]) < 90.0
    columns[[0, -1]] = not is_periodic(lon)
    return rows, columns


def cell_area(lat: ArrayLike, lon: ArrayLike) -> Floats:
    """Exact area (lat, lon) of every cell in m2: R^2 dlon (sin(north) - sin(south)).

    On a global grid the areas sum to 4 pi R^2.
    """
    return np.repeat(row_cell_area(lat, lon)[:, None], np.asarray(lon).size, axis=1)


def row_cell_area(lat: ArrayLike, lon: ArrayLike) -> Floats:
    """Exact area (lat,) in m2 of a cell of each row: that of :func:`cell_area`."""
    bands = np.abs(np.diff(np.sin(np.radians(cell_edges(lat)))))
    return np.asarray(EARTH_RADIUS**2 * np.radians(spacing(lon)) * bands)


def area_weights(lat: ArrayLike) -> Floats:
    """Relative cell area (lat,) of the rows of a grid, with mean 1: proportional to cos(latitude)."""
    bands = np.abs(np.diff(np.sin(np.radians(cell_edges(lat)))))
    return np.asarray(bands / bands.mean())


def great_circle_distance(lat1: ArrayLike, lon1: ArrayLike, lat2: ArrayLike, lon2: ArrayLike) -> Floats:
    """Great-circle distance in m between points in degrees; arguments broadcast.

    The haversine formula (Sinnott 1984), which stays exact for near points.
    """
    p1, l1, p2, l2 = (np.radians(np.asarray(a, dtype=np.float64)) for a in (lat1, lon1, lat2, lon2))
    h = np.sin((p2 - p1) / 2) ** 2 + np.cos(p1) * np.cos(p2) * np.sin((l2 - l1) / 2) ** 2
    return np.asarray(2 * EARTH_RADIUS * np.arcsin(np.sqrt(np.clip(h, 0.0, 1.0))))


def longitude_difference(lon1: ArrayLike, lon2: ArrayLike) -> Floats:
    """Signed difference lon1 - lon2 in degrees by the shorter way round, in [-180, 180)."""
    return np.asarray((np.asarray(lon1, dtype=np.float64) - np.asarray(lon2, dtype=np.float64) + 180.0) % 360.0 - 180.0)


def relative_vorticity(u: ArrayLike, v: ArrayLike, lat: ArrayLike, lon: ArrayLike) -> Floats:
    """Relative vorticity (lat, lon) in 1/s of a wind on the sphere, by differences of second order.

    ``zeta = (dv/dlambda / cos(phi) - du/dphi + u tan(phi)) / R``, whose last term comes from the meridians drawing
    together. A row at a pole takes the circulation round the next row over the area that row encloses.

    Args:
        u: (lat, lon) eastward wind in m/s; missing values (NaN) make their neighbours missing.
        v: (lat, lon) northward wind in m/s.
        lat: (lat,) degrees, monotonic, at least 3.
        lon: (lon,) degrees, ascending and evenly spaced, at least 3. Differences reach over the seam on a closed grid
            only; the outer columns of an open one take one-sided differences, and a row at a pole is NaN there.
    """
    phi = np.radians(np.asarray(lat, dtype=np.float64))
    eastward, northward = np.asarray(u, dtype=np.float64), np.asarray(v, dtype=np.float64)
    closed, step = is_periodic(lon), np.radians(spacing(lon))
    if closed:
        slope = (np.roll(northward, -1, axis=1) - np.roll(northward, 1, axis=1)) / (2 * step)
    else:
        slope = np.gradient(northward, step, axis=1, edge_order=2)
    pole = np.isclose(np.abs(phi), np.pi / 2, atol=1e-6)
    cosine, sine = np.where(pole, np.nan, np.cos(phi))[:, None], np.sin(phi)[:, None]
    zeta = (slope + eastward * sine) / cosine - np.gradient(eastward, phi, axis=0, edge_order=2)
    for row in np.flatnonzero(pole) if closed else ():
        ring = 1 if row == 0 else row - 1
        zeta[row] = np.sign(phi[row]) * eastward[ring].mean() * cosine[ring] / (1 - abs(sine[ring]))
    return np.asarray(zeta / EARTH_RADIUS)


def destination(lat: ArrayLike, lon: ArrayLike, bearing: ArrayLike, distance: ArrayLike) -> tuple[Floats, Floats]:
    """Where a great circle leads: latitude and longitude in degrees, the longitude within 180 degrees of the start's.

    Args:
        lat: Latitude of the start in degrees; all arguments broadcast.
        lon: Longitude of the start in degrees.
        bearing: Direction at the start in degrees, clockwise from north.
        distance: Degrees of arc.
    """
    phi, beta, delta = (np.radians(np.asarray(a, dtype=np.float64)) for a in (lat, bearing, distance))
    sine = np.sin(phi) * np.cos(delta) + np.cos(phi) * np.sin(delta) * np.cos(beta)
    # Both parts without their common factor cos(phi), so that at a pole the bearings still lead to all meridians.
    ahead = np.cos(phi) * np.cos(delta) - np.sin(phi) * np.sin(delta) * np.cos(beta)
    turn = np.arctan2(np.sin(beta) * np.sin(delta), ahead)
    return np.degrees(np.arcsin(np.clip(sine, -1.0, 1.0))), np.asarray(lon, dtype=np.float64) + np.degrees(turn)


def ring_laplacian(field: ArrayLike, lat: ArrayLike, lon: ArrayLike, radius: float = 10.0) -> Floats:
    """Laplacian (lat, lon) of a field over rings of 8 points: ``sum_k (4 / 8) (f_k - f_0) / d^2``, d in radians.

    As in TempestExtremes (Ullrich et al. 2021, SpineARs), in the field's unit per square radian. The points lie at
    ``radius`` in the directions of the compass, over the poles and over the seam where the grid closes; their values
    are interpolated bilinearly, where TempestExtremes takes the nearest cell.

    Args:
        field: (lat, lon); a missing value (NaN) makes every cell whose ring needs it missing.
        lat: (lat,) degrees, ascending, at least 2. The grid goes on beyond a pole that its outermost row lies on, or is
            nearer to than to the next row (as in a Gaussian grid).
        lon: (lon,) degrees, ascending and evenly spaced. On an open grid a cell is NaN whose ring leaves the area
            between the outer cell centres.
        radius: d in degrees of arc.
    """
    rows, columns = np.asarray(lat, dtype=np.float64), np.asarray(lon, dtype=np.float64)
    closed, width = is_periodic(columns), columns.size
    centre = np.asarray(field, dtype=np.float64)
    beyond = centre if closed else np.full_like(centre, np.nan)
    # A shift of the columns is a slice of the field beside itself, or between missing values on an open grid.
    tripled = np.concatenate([beyond, centre, beyond], axis=1)
    result, term = np.zeros_like(centre), np.empty(width)
    for row, ring in enumerate(_rings(rows.tobytes(), spacing(columns), width, closed, radius)):
        total = result[row]
        for source, start, weight in ring:
            np.multiply(tripled[source, start : start + width], weight, out=term)
            total += term
        if not ring:
            total[:] = np.nan
    return np.asarray(4.0 / np.radians(radius) ** 2 * (result - centre))


@lru_cache(maxsize=4)
def _rings(
    lat_bytes: bytes, step: float, width: int, closed: bool, radius: float
) -> tuple[tuple[tuple[int, int, float], ...], ...]:
    """For each latitude what the mean over its ring takes: source row, first column of the tripled field, weight.

    A ring that leaves the latitudes of the grid takes nothing.
    """
    lat = np.frombuffer(lat_bytes)
    gap, between = 90.0 - np.abs(lat[[0, -1]]), np.abs(np.diff(lat)[[0, -1]])
    south, north = (gap > 1e-6) & (gap < between - 1e-6)
    # Rows with those beyond the poles: the outermost ones again, half a turn on.
    source = np.arange(-1 if south else 0, lat.size + (1 if north else 0))
    known = np.concatenate([[-180.0 - lat[0]] if south else [], lat, [180.0 - lat[-1]] if north else []])
    rings: list[tuple[tuple[int, int, float], ...]] = []
    for latitude in lat:
        to_lat, turn = destination(latitude, 0.0, np.arange(8) * 45.0, radius)
        if to_lat.min() < known[0] - 1e-9 or to_lat.max() > known[-1] + 1e-9:
            rings.append(())
            continue
        weights: defaultdict[tuple[int, int], float] = defaultdict(float)
        for position, east in zip(np.interp(to_lat, known, np.arange(known.size)), turn / step, strict=True):
            for index, share in _shares(position):
                row = int(np.clip(source[index], 0, lat.size - 1))
                for column, part in _shares(east if source[index] == row else east + 180.0 / step):
                    start = width + (column % width if closed else int(np.clip(column, -width, width)))
                    weights[row, start] += share * part / 8.0
        rings.append(tuple((*place, weight) for place, weight in weights.items()))
    return tuple(rings)


def _shares(position: float) -> list[tuple[int, float]]:
    """The two neighbours of a position and their weights in a linear interpolation; one of them on a whole number."""
    below = int(np.floor(position + 1e-9))
    part = float(position - below)
    return [(below, 1.0)] if part < 1e-9 else [(below, 1.0 - part), (below + 1, part)]


def unit_vectors(lat: ArrayLike, lon: ArrayLike) -> Floats:
    """Points (..., 3) on the unit sphere for latitudes and longitudes in degrees; the chord stands for the distance."""
    phi, lam = np.broadcast_arrays(*(np.radians(np.asarray(a, dtype=np.float64)) for a in (lat, lon)))
    return np.stack([np.cos(phi) * np.cos(lam), np.cos(phi) * np.sin(lam), np.sin(phi)], axis=-1)


def chord(degrees: float) -> float:
    """Straight distance between two points on the unit sphere that lie so many degrees of arc apart."""
    return float(2.0 * np.sin(np.radians(degrees) / 2.0))


def rotational_wind(psi: ArrayLike, lat: ArrayLike, lon: ArrayLike) -> tuple[Floats, Floats]:
    """Wind (u, v) in m/s of a stream function: ``u = -1/R dpsi/dphi``, ``v = 1/(R cos(phi)) dpsi/dlambda``.

    Centred differences of second order; on a row at a pole v is taken from the next row.

    Args:
        psi: (..., lat, lon) stream function in m2/s on a closed grid.
        lat: (lat,) degrees, monotonic, at least 3.
        lon: (lon,) degrees, ascending, evenly spaced, closing over the seam.
    """
    field = np.asarray(psi, dtype=np.float64)
    phi = np.radians(np.asarray(lat, dtype=np.float64))
    u = -np.gradient(field, phi, axis=-2, edge_order=2) / EARTH_RADIUS
    cosine = np.cos(phi)
    inner = np.abs(phi) < np.pi / 2 - 1e-6
    cosine[~inner] = 1.0
    step = np.radians(spacing(lon))
    v = (np.roll(field, -1, axis=-1) - np.roll(field, 1, axis=-1)) / (2 * step * EARTH_RADIUS * cosine[:, None])
    for row in np.flatnonzero(~inner):
        v[..., row, :] = v[..., 1 if row == 0 else row - 1, :]
    return np.asarray(u), np.asarray(v)


def away_from(lat0: ArrayLike, lon0: ArrayLike, lat: ArrayLike, lon: ArrayLike) -> tuple[Floats, Floats, Floats]:
    """Great-circle distance from a centre, and at every point the direction that leads away from it; all broadcast.

    Args:
        lat0: Latitude of the centre in degrees.
        lon0: Longitude of the centre in degrees.
        lat: Latitudes of the points in degrees.
        lon: Longitudes of the points in degrees.

    Returns:
        Distance in m, and the eastward and northward parts of the unit vector (0, 0 at the centre itself).
    """
    centre = np.radians(np.asarray(lat0, dtype=np.float64))
    phi = np.radians(np.asarray(lat, dtype=np.float64))
    turn = np.radians(np.asarray(lon, dtype=np.float64) - np.asarray(lon0, dtype=np.float64))
    sine, cosine, ahead = np.sin(phi), np.cos(phi), np.cos(turn)
    east = np.cos(centre) * np.sin(turn) + 0.0 * phi
    north = np.cos(centre) * sine * ahead - np.sin(centre) * cosine
    arc = np.hypot(east, north)
    distance = EARTH_RADIUS * np.arctan2(arc, np.sin(centre) * sine + np.cos(centre) * cosine * ahead)
    arc = np.maximum(arc, 1e-300)
    return distance, np.asarray(east / arc), np.asarray(north / arc)
