"""The weather without objects: random fields from spherical harmonics that drift eastward and renew themselves.

A field is drawn on one fixed internal grid of 1.5 degrees up to degree 60, whatever grid was asked for, and then
interpolated to it. So the weather at a point depends on the seed and the time alone.
"""

from dataclasses import dataclass
from functools import cache
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.ndimage import map_coordinates
from scipy.special import sph_legendre_p_all

from climseg.grid import EARTH_RADIUS, GRAVITY, rotational_wind
from climseg.synthetic.climate import zonal_mean

Floats: TypeAlias = NDArray[np.float64]
Complex: TypeAlias = NDArray[np.complex128]

AIR_DENSITY: Final = 1.15  # kg/m3, near the surface

DEGREES: Final = 61  # n and m run from 0 to 60
LATITUDES: Final = np.linspace(-90.0, 90.0, 121)
LONGITUDES: Final = np.arange(240) * 1.5
_STEP: Final = 1.5

# New coefficients every so many days; between, the two neighbours are blended so that the variance stays.
_RENEWAL_DAYS: Final = 3.0
_DRIFT: Final = 7.0  # degrees of longitude per day, eastward
_LEAN: Final = 14.0  # degrees of longitude by which the upper wave lies west of the lower one
_STREAM: Final = 1  # of random numbers; catalogue.py uses 2
# Days may be negative; seeds may not.
_OFFSET: Final = 1_000_000

# Eddy wind (m/s, root of the mean square of one component) at 850 hPa by latitude: January, July.
_STORMINESS: Final = (
    (-90, -70, -55, -40, -25, -10, 0, 10, 25, 40, 55, 70, 90),
    (0.0, 5.0, 8.5, 6.5, 3.5, 2.5, 2.3, 2.8, 4.5, 7.5, 8.0, 5.5, 0.0),
    (0.0, 6.0, 9.5, 8.5, 4.5, 2.8, 2.3, 2.6, 2.8, 4.5, 5.5, 4.5, 0.0),
)


@dataclass(frozen=True)
class Eddies:
    """Random fields (lat, lon) on the grid asked for.

    Attributes:
        u: Eastward eddy wind at 850 hPa in m/s.
        v: Northward eddy wind at 850 hPa in m/s.
        height: Height anomaly in m near the surface, geostrophic to (u, v): f psi / g.
        thickness: Anomaly in m of the layer between there and 200 hPa.
        origin: How far north of here in degrees the low-level air was a day and a half ago.
        humidity: Dimensionless texture, carried along with that air, variance about 1.
        convection: Dimensionless texture, finer, variance about 1.
    """

    u: Floats
    v: Floats
    height: Floats
    thickness: Floats
    origin: Floats
    humidity: Floats
    convection: Floats


def eddies(seed: int, day: float, season: float, lat: Floats, lon: Floats) -> Eddies:
    """The random fields of one time on the rows ``lat`` and columns ``lon`` (degrees)."""
    psi, upper, humidity, convection = _synthesis(_coefficients(seed, day))
    storminess = _storminess(season)[:, None]
    psi = psi * storminess
    upper = 2.2 * upper * storminess
    u, v = rotational_wind(psi, LATITUDES, LONGITUDES)
    balance = coriolis(LATITUDES)[:, None] / GRAVITY
    rows, columns = _departure(u + zonal_mean("U850", LATITUDES, season)[:, None], v)
    origin = _STEP * (rows - np.arange(LATITUDES.size)[:, None])
    carried = _look_up(humidity, rows, columns)
    fields = np.stack([u, v, balance * psi, balance * (upper - psi), origin, carried, convection])
    return Eddies(*interpolate(fields, lat, lon))


def coriolis(lat: ArrayLike) -> Floats:
    """Coriolis parameter 2 Omega sin(phi) in 1/s."""
    return np.asarray(2 * 7.292e-5 * np.sin(np.radians(np.asarray(lat, dtype=np.float64))))


def energy_spectrum(n: ArrayLike) -> Floats:
    """Kinetic energy per degree n, unscaled: largest at n = 7, falling as n^-3 beyond (Nastrom and Gage 1985)."""
    x = np.asarray(n, dtype=np.float64) / 7.0
    return np.asarray(x**3 / (1.0 + x**6))


def interpolate(fields: Floats, lat: Floats, lon: Floats) -> Floats:
    """Cubic convolution (Keys 1981, a = -1/2) from the internal grid (F, 121, 240) to (F, lat, lon).

    Every value comes from its own 16 neighbours by the same sums, so it does not depend on the other points asked for.
    """
    rows, row_weights = _taps((lat + 90.0) / _STEP)
    columns, column_weights = _taps((lon % 360.0) / _STEP)
    rows = np.clip(rows, 0, LATITUDES.size - 1)
    columns %= LONGITUDES.size
    along = sum(row_weights[k][:, None] * fields[:, rows[k], :] for k in range(4))
    return np.asarray(sum(column_weights[k] * along[:, :, columns[k]] for k in range(4)))


def _departure(u: Floats, v: Floats) -> tuple[Floats, Floats]:
    """Where air came from: fractional rows and columns of the internal grid, by going back three steps of 12 hours.

    The wind is taken as steady. This draws textures out into the tongues and filaments of real moisture fields.
    """
    metres = np.radians(_STEP) * EARTH_RADIUS
    east = 43_200.0 / metres * u / np.maximum(np.cos(np.radians(LATITUDES)), 0.1)[:, None]
    north = 43_200.0 / metres * v
    rows, columns = np.meshgrid(np.arange(LATITUDES.size) * 1.0, np.arange(LONGITUDES.size) * 1.0, indexing="ij")
    back = north, east
    for _ in range(2):
        rows, columns = np.clip(rows - back[0], 0.0, LATITUDES.size - 1.0), columns - back[1]
        back = _look_up(north, rows, columns), _look_up(east, rows, columns)
    return np.clip(rows - back[0], 0.0, LATITUDES.size - 1.0), columns - back[1]


def _look_up(field: Floats, rows: Floats, columns: Floats) -> Floats:
    """Bilinear interpolation of an internal field at fractional rows and columns, periodic in longitude."""
    closed = np.concatenate([field, field[:, :1]], axis=1)
    return np.asarray(map_coordinates(closed, [rows, columns % LONGITUDES.size], order=1, mode="nearest"))


def _taps(position: Floats) -> tuple[NDArray[np.int64], Floats]:
    """The four neighbours (4, points) of fractional indices and their weights."""
    start = np.floor(position)
    x = position - start
    weights = 0.5 * np.stack(
        [
            -x + 2 * x**2 - x**3,
            2 - 5 * x**2 + 3 * x**3,
            x + 4 * x**2 - 3 * x**3,
            -(x**2) + x**3,
        ]
    )
    return start.astype(np.int64) + np.arange(-1, 3)[:, None], weights


def _storminess(season: float) -> Floats:
    lat, january, july = _STORMINESS
    share = 0.5 * (1.0 + season)
    return np.asarray(np.interp(LATITUDES, lat, (1.0 - share) * np.array(january) + share * np.array(july)))


def _coefficients(seed: int, day: float) -> Complex:
    """Coefficients (4, m, n) of: stream function, upper stream function, humidity, convection."""
    age = day / _RENEWAL_DAYS
    node = int(np.floor(age))
    turn = 0.5 * np.pi * (age - node)
    drawn = np.cos(turn) * _draw(seed, node) + np.sin(turn) * _draw(seed, node + 1)
    m = np.arange(DEGREES)[:, None]
    lower, other, humidity, convection = drawn * np.exp(-1j * np.radians(_DRIFT * day) * m)
    # The upper wave is partly the lower one, leaning westward with height, as growing waves do.
    upper = 0.75 * lower * np.exp(1j * np.radians(_LEAN) * m) + 0.66 * other
    return np.stack([lower, upper, humidity, convection])


def _draw(seed: int, node: int) -> Complex:
    """Fresh coefficients (4, m, n); wind components of the first two have mean square 1, the textures variance 1."""
    rng = np.random.default_rng([seed, _STREAM, node + _OFFSET])
    parts = rng.standard_normal((2, 4, DEGREES, DEGREES))
    return np.asarray((parts[0] + 1j * parts[1]) * _amplitudes())


@cache
def _amplitudes() -> Floats:
    n = np.arange(DEGREES, dtype=np.float64)
    safe = np.maximum(n, 1.0)
    # Energy per degree E = n(n+1)/(2 R^2) * variance of psi per degree; two components of mean square 1 make E = 1.
    energy = energy_spectrum(n)
    psi = 2 * EARTH_RADIUS**2 * energy / energy.sum() / (safe * (safe + 1))
    humidity = n / (1.0 + (n / 8.0) ** 3)
    convection = n / (1.0 + (n / 25.0) ** 3)
    variance = np.stack([psi, psi, humidity / humidity.sum(), convection / convection.sum()])
    variance[:, 0] = 0.0
    m = np.arange(DEGREES)[:, None]
    kept = n[None, :] >= m
    # Shared by the 2n+1 orders; scipy's harmonics have mean square 1/(4 pi), and orders m > 0 count twice.
    share = 4 * np.pi * variance[:, None, :] / (2 * n + 1) * np.where(m == 0, 1.0, 0.5)
    return np.asarray(np.sqrt(share) * kept)


@cache
def _legendre() -> Floats:
    """Normalised associated Legendre functions (m, n, lat) on the internal rows."""
    table = sph_legendre_p_all(DEGREES - 1, DEGREES - 1, np.radians(90.0 - LATITUDES))[0]  # (n, m, lat)
    return np.ascontiguousarray(np.moveaxis(table[:, :DEGREES], 1, 0))


def _synthesis(coefficients: Complex) -> Floats:
    """Fields (4, lat, lon) = Re sum over m of (coefficient x Legendre) e^(i m lambda), m > 0 twice."""
    by_row = np.matmul(np.moveaxis(coefficients, 1, 0), _legendre())  # (m, 4, lat)
    spectrum = np.zeros((4, LATITUDES.size, LONGITUDES.size // 2 + 1), dtype=np.complex128)
    spectrum[:, :, :DEGREES] = np.moveaxis(by_row, 0, -1)
    return np.asarray(np.fft.irfft(spectrum, n=LONGITUDES.size, axis=-1) * LONGITUDES.size)
