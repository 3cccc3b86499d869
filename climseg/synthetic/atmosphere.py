"""One state of the made atmosphere from its parts: climate, continents, eddies, lows, decoys, rivers, cyclones."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from climseg.canonical import DIMS, orient, to_canonical
from climseg.channels import ATMOSPHERIC_RIVER, CAM5_CHANNELS, LABELS, TROPICAL_CYCLONE
from climseg.errors import InputError
from climseg.grid import GRAVITY
from climseg.synthetic.canvas import Fields, Floats, window
from climseg.synthetic.catalogue import objects_at
from climseg.synthetic.climate import zonal_mean
from climseg.synthetic.clock import model_days, season, time_axis
from climseg.synthetic.cyclones import CycloneState, paint_cyclone
from climseg.synthetic.decoys import paint_blob, paint_plume
from climseg.synthetic.eddies import AIR_DENSITY, Eddies, eddies
from climseg.synthetic.further import FURTHER_CHANNELS, GAS_CONSTANT, add_further_channels
from climseg.synthetic.lows import paint_low
from climseg.synthetic.rivers import LABEL_EXCESS, LABEL_LATITUDE, Filament, paint_river
from climseg.synthetic.surface import continents

# Adds a thing to the fields on the rows and columns of a grid.
Painter: TypeAlias = Callable[[Fields, Floats, Floats], None]
LAPSE_RATE: Final = 0.0065  # K/m
# Height of the lowest model level over 2 m temperature in CAM5, m/K: 0.2202 +- 0.0006 at the ClimateNet expert points.
ZBOT_PER_KELVIN: Final = 0.2202


@dataclass(frozen=True)
class Grid:
    """Rows and columns in degrees with the continents on them (lat, lon): land fraction and surface height in m."""

    lat: Floats
    lon: Floats
    land: Floats
    height: Floats


def prepare_grid(lat: ArrayLike, lon: ArrayLike, all_sea: bool = False) -> Grid:
    """Make the axes canonical and put the continents on them, or none.

    Raises:
        InputError: They have fewer than two points, are not monotonic, leave the sphere, or have gaps in longitude.
    """
    asked = xr.Dataset(coords={"time": [0], "lat": np.asarray(lat), "lon": np.asarray(lon)})
    canonical = orient(asked, "the grid asked for")
    rows, columns = canonical["lat"].values, canonical["lon"].values
    if all_sea:
        return Grid(rows, columns, np.zeros((rows.size, columns.size)), np.zeros((rows.size, columns.size)))
    return Grid(rows, columns, *continents(rows[:, None], columns[None, :]))


def make_atmosphere(
    times: Iterable[Any], lat: ArrayLike, lon: ArrayLike, seed: int = 0, *, more_channels: bool = False
) -> xr.Dataset:
    """Make a canonical Dataset with all 16 channels and LABELS (time, lat, lon).

    Every value depends on the seed, the time and the place alone, whatever other times and places are asked for.
    Values are those at the points, not means over cells.

    Args:
        times: Increasing dates, datetime64, pandas, datetime or cftime. The same date in two calendars counts other
            days and sees other weather.
        lat: (lat,) degrees, at least two.
        lon: (lon,) degrees, evenly spaced, at least two. The result has both axes in canonical order.
        seed: Names the world, 0 or more.
        more_channels: Make IVT, UIVT, VIVT, Z300 and Z500 too (``further``).

    Raises:
        InputError: The axes or the seed are not as said.
    """
    return make_on_grid(time_axis(times), prepare_grid(lat, lon), seed, more_channels)


def make_on_grid(axis: xr.DataArray, grid: Grid, seed: int, more_channels: bool) -> xr.Dataset:
    """``make_atmosphere`` with the results of ``time_axis`` and ``prepare_grid``."""
    if seed < 0:
        raise InputError(f"seed is {seed}; expected 0 or more.")
    days, year_length = model_days(axis)
    channels = (*CAM5_CHANNELS, *FURTHER_CHANNELS) if more_channels else CAM5_CHANNELS
    steps = [_step(grid, float(day), year_length, seed, channels) for day in days]
    return as_dataset(steps, axis, grid)


def as_dataset(steps: Sequence[dict[str, NDArray[Any]]], axis: xr.DataArray, grid: Grid) -> xr.Dataset:
    """The canonical Dataset of the steps of a time axis, each with the same names, (lat, lon)."""
    data = {name: (DIMS, np.stack([step[name] for step in steps])) for name in steps[0]}
    raw = xr.Dataset(data, coords={"time": axis, "lat": grid.lat, "lon": grid.lon})
    return to_canonical(raw, origin="the synthetic atmosphere")


def _step(grid: Grid, day: float, year_length: float, seed: int, channels: tuple[str, ...]) -> dict[str, NDArray[Any]]:
    """The channels and LABELS (lat, lon) at one time."""
    sun = season(day, year_length)
    alive = objects_at(seed, day, year_length)
    rivers = [river.at(day) for _, river in alive.rivers]
    lows = [low for _, low in rivers] + [dry.at(day) for dry in alive.dry_lows]
    return paint_step(
        grid,
        eddies(seed, day, sun, grid.lat, grid.lon),
        sun,
        stirring=[partial(paint_low, low) for low in lows],
        moist=[partial(paint_blob, blob, day) for blob in alive.blobs]
        + [partial(paint_plume, plume.at(day)) for plume in alive.plumes],
        rivers=[river for river, _ in rivers],
        cyclones=[cyclone.at(day) for _, cyclone in alive.cyclones],
        channels=channels,
    )


def paint_step(
    grid: Grid,
    weather: Eddies,
    sun: float,
    *,
    stirring: Iterable[Painter],
    moist: Iterable[Painter],
    rivers: Sequence[Filament],
    cyclones: Sequence[CycloneState],
    channels: Sequence[str],
) -> dict[str, NDArray[Any]]:
    """Channels (lat, lon) float32 and LABELS int8 of one time from the things that live then.

    Args:
        grid: Where.
        weather: The random waves.
        sun: The season, -1 (January) to 1 (July).
        stirring: Unlabelled things whose wind brings air from elsewhere.
        moist: Unlabelled things added to the air as it then is.
        rivers: Labelled.
        cyclones: Labelled.
        channels: Names, of CAM5's and ``FURTHER_CHANNELS``.
    """
    lat, lon = grid.lat, grid.lon
    fields = {name: np.zeros((lat.size, lon.size)) for name in (*CAM5_CHANNELS, "DRY", "EXCESS")}
    _add_eddies(fields, weather)
    for paint in stirring:
        paint(fields, lat, lon)
    _turn_near_surface(fields, grid)
    _add_air_masses(fields, grid, weather, sun)
    for paint in moist:
        paint(fields, lat, lon)
    for river in rivers:
        paint_river(river, fields, lat, lon)
    fields["TMQ"] += fields["EXCESS"]
    fields["QREFHT"] *= 1.0 + 0.006 * fields["EXCESS"]
    for cyclone in cyclones:
        paint_cyclone(cyclone, fields, lat, lon)
    _add_climate(fields, grid, sun)
    if not fields.keys() >= set(channels):
        add_further_channels(fields)
    mask = _mask(fields["EXCESS"], cyclones, lat, lon)
    return {name: fields[name].astype(np.float32) for name in channels} | {LABELS: mask.astype(np.int8)}


def _mask(excess: Floats, cyclones: Iterable[CycloneState], lat: Floats, lon: Floats) -> NDArray[Any]:
    """Class numbers (lat, lon) by the rules that the package states."""
    mask = np.where((excess >= LABEL_EXCESS) & (np.abs(lat) >= LABEL_LATITUDE)[:, None], ATMOSPHERIC_RIVER, 0)
    for cyclone in cyclones:
        near = window(lat, lon, cyclone.lat, cyclone.lon, cyclone.label_radius)
        if near is not None and cyclone.label_radius > 0.0:
            mask[near.index] = np.where(near.distance <= cyclone.label_radius, TROPICAL_CYCLONE, mask[near.index])
    return mask


def _add_eddies(fields: Fields, weather: Eddies) -> None:
    """The random waves: a low is low at the surface and at 200 hPa, cold below the tropopause and warm above it."""
    fields["PSL"] += AIR_DENSITY * GRAVITY * weather.height
    fields["U850"] += weather.u
    fields["V850"] += weather.v
    fields["T500"] += 0.028 * weather.thickness
    fields["T200"] -= 0.03 * weather.thickness
    fields["Z200"] += weather.height + weather.thickness


def _turn_near_surface(fields: Fields, grid: Grid) -> None:
    """The wind at the lowest level: 850 hPa's, turned by 20 degrees towards low pressure, weaker, most so over land."""
    ratio = 0.85 - 0.3 * grid.land
    along, across = 0.94 * ratio, 0.34 * ratio * np.tanh(grid.lat / 10.0)[:, None]
    fields["UBOT"] += along * fields["U850"] - across * fields["V850"]
    fields["VBOT"] += along * fields["V850"] + across * fields["U850"]


def _add_air_masses(fields: Fields, grid: Grid, weather: Eddies, sun: float) -> None:
    """Moisture, temperature near the surface and showers: the air is that of the latitude the flow brings it from."""
    lat = grid.lat[:, None]
    pushed = np.tanh((fields["V850"] - weather.v) / 14.0)
    moisture = zonal_mean("TMQ", lat + 0.7 * weather.origin - 9.0 * pushed, sun)
    moisture *= np.exp(0.24 * weather.humidity) * (1.0 - np.minimum(fields["DRY"], 0.6))
    # A column cannot hold much more; water vapour has a scale height of about 2.2 km.
    moisture = np.minimum(moisture, 75.0)
    fields["TMQ"] += moisture * np.exp(-grid.height / 2200.0)

    # Continents are warmer in their summer and colder in their winter, most so in middle latitudes.
    contrast = 7.0 * np.tanh(lat / 15.0) * np.sin(np.radians(2.0 * lat)) ** 2 * sun
    sea_level = zonal_mean("TSEA", lat + (0.2 + 0.15 * grid.land) * weather.origin, sun) + grid.land * contrast
    fields["TREFHT"] += sea_level - LAPSE_RATE * grid.height
    fields["TS"] += fields["TREFHT"] + 0.4 + grid.land * (0.5 * weather.humidity - 0.3)
    relative_humidity = (0.80 - 0.15 * grid.land) * np.clip(1.0 + 0.13 * weather.humidity, 0.5, 1.2)
    fields["QREFHT"] += relative_humidity * saturation_humidity(fields["TREFHT"])

    # Showers where the fine texture is high, more of them in moist air.
    shower = np.maximum(weather.convection + 0.5 * weather.humidity - 0.5, 0.0)
    fields["PRECT"] += 9e-8 * (moisture / 40.0) ** 1.5 * shower**3


def _add_climate(fields: Fields, grid: Grid, sun: float) -> None:
    """Zonal means, and what follows hydrostatically from the rest: heights and the pressure at the ground."""
    for name in ("U850", "UBOT", "VBOT", "T500", "T200"):
        fields[name] += zonal_mean(name, grid.lat, sun)[:, None]
    fields["V850"] += 0.3 * zonal_mean("VBOT", grid.lat, sun)[:, None]
    fields["PSL"] += 100.0 * zonal_mean("PSL", grid.lat, sun)[:, None]
    at_sea_level = fields["TREFHT"] + LAPSE_RATE * grid.height
    column = fields["TREFHT"] + 0.5 * LAPSE_RATE * grid.height
    fields["PS"] = fields["PSL"] * np.exp(-GRAVITY * grid.height / (GAS_CONSTANT * column))
    fields["ZBOT"] = ZBOT_PER_KELVIN * fields["TREFHT"]
    # CAM gives no height below its lowest level: there Z1000 is that level's.
    height = GAS_CONSTANT / GRAVITY * at_sea_level * np.log(fields["PSL"] / 1e5)
    fields["Z1000"] = np.maximum(height, grid.height + fields["ZBOT"])
    fields["Z200"] += thickness_height(grid.lat, sun)[:, None]
    fields["PRECT"] = np.maximum(fields["PRECT"], 0.0)


def thickness_height(lat: Floats, sun: float) -> Floats:
    """Zonal-mean Z200 (lat,) in m: the hypsometric equation from mean sea level pressure to 200 hPa.

    The layer's mean temperature is 0.22 of the sea-level one, 0.5 of T500 and 0.28 of T200.
    """
    mean = (
        0.22 * zonal_mean("TSEA", lat, sun) + 0.5 * zonal_mean("T500", lat, sun) + 0.28 * zonal_mean("T200", lat, sun)
    )
    return np.asarray(GAS_CONSTANT / GRAVITY * mean * np.log(zonal_mean("PSL", lat, sun) / 200.0))


def saturation_humidity(temperature: Floats) -> Floats:
    """Saturation specific humidity over water at 1000 hPa in kg/kg for K (Bolton 1980, eq. 10)."""
    celsius = temperature - 273.15
    vapour = 6.112 * np.exp(17.67 * celsius / (celsius + 243.5))  # hPa
    return np.asarray(0.622 * vapour / (1000.0 - 0.378 * vapour))
