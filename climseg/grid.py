"""The sphere: all arithmetic on latitude and longitude stands here.

Latitudes and longitudes are in degrees, lengths in metres, areas in square metres.
"""

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

    The outermost cells reach as far outward as inward, or to the pole if it is nearer.
    """
    centres = np.asarray(lat, dtype=np.float64)
    if centres.size == 1:
        raise ValueError("one latitude has no cell edges; at least two are needed")
    middles = 0.5 * (centres[1:] + centres[:-1])
    first = 2 * centres[0] - middles[0]
    last = 2 * centres[-1] - middles[-1]
    return np.asarray(np.clip(np.concatenate([[first], middles, [last]]), -90.0, 90.0))


def cell_area(lat: ArrayLike, lon: ArrayLike) -> Floats:
    """Exact area (lat, lon) of every cell in m2: R^2 dlon (sin(north) - sin(south)).

    On a global grid the areas sum to 4 pi R^2.
    """
    edges = np.radians(cell_edges(lat))
    bands = np.abs(np.diff(np.sin(edges)))
    columns = np.asarray(lon).size
    return np.repeat((EARTH_RADIUS**2 * np.radians(spacing(lon)) * bands)[:, None], columns, axis=1)


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
    turn = np.arctan2(np.sin(beta) * np.sin(delta) * np.cos(phi), np.cos(delta) - np.sin(phi) * sine)
    return np.degrees(np.arcsin(np.clip(sine, -1.0, 1.0))), np.asarray(lon, dtype=np.float64) + np.degrees(turn)


def unit_vectors(lat: ArrayLike, lon: ArrayLike) -> Floats:
    """Points (..., 3) on the unit sphere for latitudes and longitudes in degrees; the chord stands for the distance."""
    phi, lam = np.broadcast_arrays(*(np.radians(np.asarray(a, dtype=np.float64)) for a in (lat, lon)))
    return np.stack([np.cos(phi) * np.cos(lam), np.cos(phi) * np.sin(lam), np.sin(phi)], axis=-1)


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
