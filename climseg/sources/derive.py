"""The formulas by which a source derives a channel that its files lack.

Fields are (time, lat, lon), columns (time, level, lat, lon) whatever the level axis is called; both are float32, in
memory or of dask. The ``pressure`` (Pa) of a column's levels is (level,) float64 for pressure levels and a DataArray
(time, level, lat, lon) for hybrid ones. Nothing is computed here, and blocks along time stay as they are. A missing
value (NaN) makes its cell of the result missing. The caller gives a result its attributes.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from climseg.grid import GRAVITY, Floats, relative_vorticity

# Of dry air in CAM (J kg-1 K-1).
GAS_CONSTANT: Final = 287.0423
# The hybrid coordinate of CAM5's lowest level: the pressure there over that at the surface.
LOWEST_LEVEL: Final = 0.992556
# Of liquid water (kg m-3): what turns its mass on a square metre into its depth, as in CAM's PRECT.
WATER_DENSITY: Final = 1000.0

Field = NDArray[Any]
Pressure = Floats | xr.DataArray


def specific_humidity(dewpoint: xr.DataArray, pressure: xr.DataArray) -> xr.DataArray:
    """Specific humidity in kg kg-1 from the dew point in K and the pressure in Pa.

    Saturation over water: IFS documentation (ECMWF), part IV, chapter 7, equations 7.4 and 7.5.
    """
    exponent: xr.DataArray = 17.502 * (dewpoint - 273.16) / (dewpoint - 32.19)
    vapour_pressure: xr.DataArray = 611.21 * xr.ufuncs.exp(exponent)
    return 0.621981 * vapour_pressure / (pressure - 0.378019 * vapour_pressure)


def specific_humidity_from_relative(
    relative_humidity: xr.DataArray, temperature: xr.DataArray, pressure: Pressure
) -> xr.DataArray:
    """Specific humidity in kg kg-1 from the relative humidity in % (over water), the temperature in K, and Pa.

    With the vapour pressure e = RH / 100 * e_s(T) of :func:`specific_humidity`, q = 0.622 e / (p - 0.378 e) is that of
    air saturated at T under the pressure p * 100 / RH.

    Args:
        relative_humidity: Column or field. Below 0 degrees C some models, such as GFS, mean saturation over ice or a
            mixture: there the result is too large.
        temperature: The same shape.
        pressure: Of the levels, or of every point, as the column or field has.
    """
    saturating = _blockwise(_saturating_pressure, relative_humidity, _on_levels(pressure, relative_humidity))
    return specific_humidity(temperature, saturating).drop_attrs(deep=False)


def lowest_level_height(temperature: xr.DataArray) -> xr.DataArray:
    """Height in m of CAM5's lowest level above ground, hypsometric from the temperature in K of the layer below it."""
    return temperature * (GAS_CONSTANT / GRAVITY * math.log(1.0 / LOWEST_LEVEL))


def column_water_vapour(
    q: xr.DataArray, pressure: Pressure, surface_pressure: xr.DataArray | None = None
) -> xr.DataArray:
    """Water vapour of the column (time, lat, lon) in kg m-2: 1/g times the integral of q dp, by the trapezoidal rule.

    Nothing counts above the top level. With ``surface_pressure`` the integral ends at the surface: levels below it
    (p > surface pressure) do not count, not even when they are missing, and the layer between the lowest level above
    ground and the surface has that level's value; a cell all of whose levels are below ground is NaN. Without it the
    integral ends at the lowest level, and levels below ground count like others.

    Args:
        q: (time, level, lat, lon) specific humidity in kg kg-1.
        pressure: Pa, (level,) in any order or (time, level, lat, lon) in either order.
        surface_pressure: (time, lat, lon) Pa.
    """
    level = _level_axis(q)
    surface = () if surface_pressure is None else (surface_pressure,)
    return _blockwise(_column_mass, q, _on_levels(pressure, q), *surface, core=(level,))


def integrated_vapour_transport(
    q: xr.DataArray,
    u: xr.DataArray,
    v: xr.DataArray,
    pressure: Pressure,
    surface_pressure: xr.DataArray | None = None,
) -> xr.DataArray:
    """Magnitude (time, lat, lon) in kg m-1 s-1 of 1/g times the integral of q (u, v) dp.

    As in Zhu and Newell 1998. The integral and its ends are those of :func:`column_water_vapour`.

    Args:
        q: (time, level, lat, lon) specific humidity in kg kg-1.
        u: Eastward wind in m s-1, the same shape.
        v: Northward wind in m s-1, the same shape.
        pressure: Pa, (level,) in any order or (time, level, lat, lon) in either order.
        surface_pressure: (time, lat, lon) Pa.
    """
    eastward, northward = (vapour_transport(q, wind, pressure, surface_pressure) for wind in (u, v))
    return transport_magnitude(eastward, northward)


def vapour_transport(
    q: xr.DataArray, wind: xr.DataArray, pressure: Pressure, surface_pressure: xr.DataArray | None = None
) -> xr.DataArray:
    """Vapour transport (time, lat, lon) in kg m-1 s-1 by one part of the wind: 1/g times the integral of q wind dp.

    The arguments and the ends of the integral are those of :func:`integrated_vapour_transport`.
    """
    return column_water_vapour(_blockwise(np.multiply, q, wind), pressure, surface_pressure)


def transport_magnitude(eastward: xr.DataArray, northward: xr.DataArray) -> xr.DataArray:
    """Magnitude of a vertically integrated vapour transport in kg m-1 s-1 from its two parts in the same units."""
    return _blockwise(np.hypot, eastward, northward)


def wind_speed(u: xr.DataArray, v: xr.DataArray) -> xr.DataArray:
    """Speed in m s-1 of the wind (u, v) in m s-1."""
    return _blockwise(np.hypot, u, v)


def vorticity(u: xr.DataArray, v: xr.DataArray) -> xr.DataArray:
    """Relative vorticity (time, lat, lon) in s-1 of a wind in m s-1, by :func:`climseg.grid.relative_vorticity`.

    Args:
        u: (time, lat, lon) eastward wind with its coordinates in degrees: at least 3 latitudes in either order,
            longitudes ascending and evenly spaced, closing over the seam or not. A missing value makes its neighbours
            missing too.
        v: Northward wind, the same shape.
    """
    return _blockwise(_vorticity, u, v, u["lat"], u["lon"], core=("lat", "lon"), kept=("lat", "lon"))


def hybrid_pressure(
    hyam: xr.DataArray, hybm: xr.DataArray, reference_pressure: float, surface_pressure: xr.DataArray
) -> xr.DataArray:
    """Pressure (time, lev, lat, lon) in Pa at the hybrid levels of CAM: p = hyam * P0 + hybm * PS.

    Description of CAM 5.0 (Neale et al. 2012, NCAR/TN-486+STR).

    Args:
        hyam: (lev,) part of the pressure, in units of P0; the level axis of the result is named after this one.
        hybm: (lev,) part of the terrain.
        reference_pressure: P0 in Pa, 100000 in CAM.
        surface_pressure: (time, lat, lon) PS in Pa.
    """
    pressure: xr.DataArray = hyam * reference_pressure + hybm * surface_pressure
    return pressure.transpose("time", *hyam.dims, "lat", "lon").astype(np.float32).drop_attrs(deep=False)


def to_pressure_level(column: xr.DataArray, pressure: Pressure, level_pa: float) -> xr.DataArray:
    """A column's values (time, lat, lon) on one pressure level, in its own units: linear in log(pressure).

    Below the lowest level every quantity has that level's value (constant extrapolation), as in the pressure-level
    fields that CAM5 itself writes (``vertinterp``, which copies values at boundaries): so heights are clipped at the
    terrain, and Z1000 over a mountain is the height of the lowest level. NCL's ``vinth2p`` has missing values there.
    Above the top level the result is NaN.

    Args:
        column: (time, level, lat, lon); a missing value makes the result missing where it is one of the two levels
            that are interpolated between.
        pressure: Pa, (level,) in any order or (time, level, lat, lon) in either order.
        level_pa: The wanted pressure in Pa.
    """
    interpolate = partial(_interpolated, level_pa=level_pa)
    return _blockwise(interpolate, column, _on_levels(pressure, column), core=(_level_axis(column),))


def liquid_water_rate(mass_rate: xr.DataArray) -> xr.DataArray:
    """Precipitation as depth of liquid water in m s-1 from its mass in kg m-2 s-1, at 1000 kg m-3."""
    return _blockwise(np.divide, mass_rate, xr.DataArray(WATER_DENSITY))


def rate_from_accumulation(depth_m: xr.DataArray, seconds: float | Floats | xr.DataArray) -> xr.DataArray:
    """Precipitation rate in m s-1 from the depth in m that fell in a period.

    Args:
        depth_m: (time, lat, lon) depth of liquid water in m.
        seconds: Length of the period in s, above 0: one for all times, or (time,).
    """
    if not isinstance(seconds, xr.DataArray):
        seconds = xr.DataArray(seconds, dims="time" if np.ndim(seconds) else ())
    return _blockwise(np.divide, depth_m, seconds)


def _blockwise(
    function: Callable[..., Field], *arrays: xr.DataArray, core: Sequence[str] = (), kept: Sequence[str] = ()
) -> xr.DataArray:
    """Apply a function of numpy arrays block by block; float32, on the axes of the first array less the core.

    Args:
        function: Takes blocks whose last axes are those of ``core`` that the array has, and returns one with ``kept``
            last.
        arrays: Broadcast by name; coordinates that they share must be equal.
        core: Axes that a block has whole.
        kept: Those of them that the result has.
    """
    result: xr.DataArray = xr.apply_ufunc(
        partial(_as_float32, function),
        *arrays,
        input_core_dims=[[axis for axis in core if axis in array.dims] for array in arrays],
        output_core_dims=[list(kept)],
        dask="parallelized",
        dask_gufunc_kwargs={"allow_rechunk": True},  # of the core alone: levels that came from a file each
        output_dtypes=[np.float32],
        keep_attrs=False,
    )
    return result


def _as_float32(function: Callable[..., Field], *blocks: Field) -> NDArray[np.float32]:
    return np.asarray(function(*blocks), dtype=np.float32)


def _level_axis(column: xr.DataArray) -> str:
    (level,) = (str(axis) for axis in column.dims if axis not in ("time", "lat", "lon"))
    return level


def _on_levels(pressure: Pressure, column: xr.DataArray) -> xr.DataArray:
    """The pressure with its axes named, so that it broadcasts against the column."""
    if isinstance(pressure, xr.DataArray):
        return pressure
    return xr.DataArray(np.asarray(pressure, dtype=np.float64), dims=_level_axis(column))


def _top_first(pressure: Field) -> list[int]:
    """Positions of levels on the last axis by ascending pressure; every cell has them in the same order."""
    highest = np.fmax.reduce(pressure, axis=tuple(range(pressure.ndim - 1)))
    return [int(k) for k in np.argsort(highest)]


def _saturating_pressure(relative_humidity: Field, pressure: Field) -> Field:
    with np.errstate(divide="ignore"):  # perfectly dry air: an infinite pressure, and no vapour
        return np.asarray(pressure * 100.0 / relative_humidity)


def _column_mass(values: Field, pressure: Field, surface: Field | None = None) -> Field:
    """1/g times the integral of values (..., level) over pressure, from the top level to the surface.

    Every level below ground is moved up to the surface and takes the value of the one above it; the surface itself is
    the last of these levels. Without one it lies at the lowest level.
    """
    top, *others = order = _top_first(pressure)
    ground = pressure[..., order[-1]] if surface is None else surface
    value, at = np.where(pressure[..., top] > ground, np.nan, values[..., top]), pressure[..., top]
    total = np.zeros(value.shape)
    for k in others:
        below = pressure[..., k] > ground
        next_value, next_at = np.where(below, value, values[..., k]), np.where(below, ground, pressure[..., k])
        total += 0.5 * (value + next_value) * (next_at - at)
        value, at = next_value, next_at
    return np.asarray((total + value * (ground - at)) / GRAVITY)


def _interpolated(values: Field, pressure: Field, level_pa: float) -> Field:
    """Values (..., level) at one pressure, linear in its logarithm between the levels that bracket it."""
    shape = values.shape[:-1]
    upper, upper_pressure, lower, lower_pressure = (np.full(shape, np.nan) for _ in range(4))
    order = _top_first(pressure)
    for k in order:  # the last one that is not below the wanted pressure stays
        above = pressure[..., k] <= level_pa
        np.copyto(upper, values[..., k], where=above)
        np.copyto(upper_pressure, pressure[..., k], where=above)
    for k in reversed(order):
        below = pressure[..., k] > level_pa
        np.copyto(lower, values[..., k], where=below)
        np.copyto(lower_pressure, pressure[..., k], where=below)
    weight = np.log(level_pa / upper_pressure) / np.log(lower_pressure / upper_pressure)
    # On a level exactly, or below the lowest one (no weight): the upper value, whatever the lower one is.
    return np.where(weight > 0.0, upper + weight * (lower - upper), upper)


def _vorticity(u: Field, v: Field, lat: Field, lon: Field) -> Field:
    """(time, lat, lon) from (time, lat, lon)."""
    steps = [relative_vorticity(*step, lat, lon) for step in zip(u, v, strict=True)]
    return np.stack(steps) if steps else np.zeros(u.shape)
