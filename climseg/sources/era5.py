"""ERA5 netCDF as the Climate Data Store serves it: names and conversions as tables, little code.

Channels that ERA5 does not have are approximated (UBOT, VBOT, ZBOT) or derived (QREFHT, PRECT, Z1000, Z200); the
``comment`` attribute of the variable says so. Z1000 is extrapolated below ground, where CAM clips it at the terrain:
over high ground the two differ by up to kilometres.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import xarray as xr

from climseg.canonical import to_canonical
from climseg.channels import CHANNELS
from climseg.errors import InputError
from climseg.grid import GRAVITY
from climseg.sources.axes import name_axes, on_grid
from climseg.sources.combine import combine_files, fuse
from climseg.sources.files import Input, expand_paths, open_netcdf
from climseg.sources.request import check_request
from climseg.units import convert_units, is_convertible

# Of dry air in CAM (J kg-1 K-1).
GAS_CONSTANT: Final = 287.0423
# The hybrid coordinate of CAM5's lowest level: the pressure there over that at the surface.
LOWEST_LEVEL: Final = 0.992556


@dataclass(frozen=True)
class _Variable:
    """What ERA5 calls one quantity in files of several origins, and the units it is converted to when read."""

    names: tuple[str, ...]
    units: str


# Key: short name of the Climate Data Store. Names: short name, GRIB short name, long name.
_VARIABLES: Final = {
    "tcwv": _Variable(("tcwv", "total_column_water_vapour"), "kg m-2"),
    "u": _Variable(("u", "u_component_of_wind"), "m s-1"),
    "v": _Variable(("v", "v_component_of_wind"), "m s-1"),
    "t": _Variable(("t", "temperature"), "K"),
    "z": _Variable(("z", "geopotential", "zg", "gh", "geopotential_height"), "m"),
    "u10": _Variable(("u10", "10u", "10m_u_component_of_wind"), "m s-1"),
    "v10": _Variable(("v10", "10v", "10m_v_component_of_wind"), "m s-1"),
    "d2m": _Variable(("d2m", "2d", "2m_dewpoint_temperature"), "K"),
    "t2m": _Variable(("t2m", "2t", "2m_temperature"), "K"),
    "sp": _Variable(("sp", "surface_pressure"), "Pa"),
    "msl": _Variable(("msl", "mean_sea_level_pressure"), "Pa"),
    "skt": _Variable(("skt", "skin_temperature"), "K"),
    "tp": _Variable(("tp", "total_precipitation"), "m"),
    "mtpr": _Variable(("mtpr", "avg_tprate", "mean_total_precipitation_rate"), "kg m-2 s-1"),
}
# For other sources to recognise a file of ERA5 by.
ERA5_NAMES: Final = frozenset(name for variable in _VARIABLES.values() for name in variable.names)

_LEVEL_AXES: Final = ("pressure_level", "level", "isobaricInhPa", "isobaricInPa", "plev")


@dataclass(frozen=True)
class _Field:
    """One variable of the table above, on one pressure level or on none."""

    variable: str
    level_hpa: int | None = None

    def __str__(self) -> str:
        return self.variable if self.level_hpa is None else f"{self.variable} at {self.level_hpa} hPa"


@dataclass(frozen=True)
class _Recipe:
    """How one channel comes from fields; a channel with several takes the first whose fields are all there."""

    channel: str
    needs: tuple[_Field, ...]
    comment: str = ""
    compute: Callable[..., xr.DataArray] = lambda field: field


def specific_humidity(dewpoint: xr.DataArray, pressure: xr.DataArray) -> xr.DataArray:
    """Specific humidity in kg kg-1 from the dew point in K and the pressure in Pa.

    Saturation over water: IFS documentation (ECMWF), part IV, chapter 7, equations 7.4 and 7.5.
    """
    exponent: xr.DataArray = 17.502 * (dewpoint - 273.16) / (dewpoint - 32.19)
    vapour_pressure: xr.DataArray = 611.21 * xr.ufuncs.exp(exponent)
    return 0.621981 * vapour_pressure / (pressure - 0.378019 * vapour_pressure)


def lowest_level_height(temperature: xr.DataArray) -> xr.DataArray:
    """Height in m of CAM5's lowest level above ground, hypsometric from the temperature in K of the layer below it."""
    return temperature * (GAS_CONSTANT / GRAVITY * math.log(1.0 / LOWEST_LEVEL))


def _recipes(accumulation_hours: float) -> tuple[_Recipe, ...]:
    wind = "approximation: {} (wind at 10 m) stands in for the wind at the lowest model level"
    height = "derived: from z at {} hPa; below ground ERA5 extrapolates, CAM clips at the terrain"
    seconds = accumulation_hours * 3600.0
    return (
        _Recipe("TMQ", (_Field("tcwv"),)),
        _Recipe("U850", (_Field("u", 850),)),
        _Recipe("V850", (_Field("v", 850),)),
        _Recipe("UBOT", (_Field("u10"),), wind.format("u10")),
        _Recipe("VBOT", (_Field("v10"),), wind.format("v10")),
        _Recipe(
            "QREFHT",
            (_Field("d2m"), _Field("sp")),
            "derived: from the dew point at 2 m (d2m) and the surface pressure (sp), saturation over water",
            specific_humidity,
        ),
        _Recipe("PS", (_Field("sp"),)),
        _Recipe("PSL", (_Field("msl"),)),
        _Recipe("T200", (_Field("t", 200),)),
        _Recipe("T500", (_Field("t", 500),)),
        # The rate first: it needs no word about the period of accumulation. 1 kg m-2 of water is 1 mm deep.
        _Recipe("PRECT", (_Field("mtpr"),), "derived: mtpr / 1000 kg m-3", lambda rate: rate / 1000.0),
        _Recipe(
            "PRECT",
            (_Field("tp"),),
            f"derived: tp, accumulated over {accumulation_hours:g} h, / {seconds:g} s",
            lambda depth: depth / seconds,
        ),
        _Recipe("TS", (_Field("skt"),)),
        _Recipe("TREFHT", (_Field("t2m"),)),
        _Recipe("Z1000", (_Field("z", 1000),), height.format(1000)),
        _Recipe("Z200", (_Field("z", 200),), height.format(200)),
        _Recipe(
            "ZBOT",
            (_Field("t2m"),),
            "approximation: hypsometric height of CAM5's lowest level, the temperature at 2 m (t2m) standing in for "
            "that of the layer",
            lowest_level_height,
        ),
    )


def open_era5(
    input: Input,
    *,
    channels: Sequence[str] | None = None,
    labels: bool = False,
    time: str | None = None,
    accumulation_hours: float = 1.0,
) -> xr.Dataset:
    """Open ERA5 netCDF files as one canonical Dataset.

    Both layouts of the Climate Data Store are read, that of before 2024 (int16 packed) and that of since then; fields
    of ERA5 and of the preliminary ERA5T in one file (``expver``) are joined, the final ones where they are.

    Args:
        input: Paths or patterns of netCDF files: of several times, variables or levels.
        channels: Names of channels, in the wanted order; None takes all that the files give.
        labels: Must be False: ERA5 carries none. Every source has this option.
        time: The time of a single file that has none, for example ``"2011-10-11T00"``.
        accumulation_hours: The period over which ``tp`` was accumulated: 1 for hourly ERA5, 3 for its ensemble.

    Returns:
        A canonical Dataset of dask arrays; nothing but coordinates has been read.

    Raises:
        InputError: A file, its grid, its times, its units or its variables do not fit, by name.
    """
    if labels:
        raise InputError("ERA5 files carry no labels; make them with a heuristic, for example labels=kurth2018.")
    paths = expand_paths(input)
    check_request(paths, channels, time)
    if not accumulation_hours > 0.0:
        raise InputError(f"source.accumulation_hours is {accumulation_hours}; expected hours above 0.")

    recipes = [r for r in _recipes(accumulation_hours) if channels is None or r.channel in channels]
    fields = {field for recipe in recipes for field in recipe.needs}
    files = [(path, name_axes(open_netcdf(path), str(path), time)) for path in paths]
    found = [(path, _find_fields(ds, fields, str(path))) for path, ds in files]
    chosen = _choose(recipes, channels, {field for _, here in found for field in here}, files)

    needed = {field for recipe in chosen for field in recipe.needs}
    parts = [
        (path, {str(f): _read(array, f, str(path)) for f, array in here.items() if f in needed}) for path, here in found
    ]
    raw = combine_files(parts)
    out = xr.Dataset({recipe.channel: _compute(recipe, raw) for recipe in chosen})
    out["time"].encoding = dict(raw["time"].encoding)
    canonical = to_canonical(out, str(paths[0]))
    canonical.attrs = {"source": "ERA5 netCDF"}
    return fuse(canonical)


def _find_fields(ds: xr.Dataset, fields: set[_Field], origin: str) -> dict[_Field, xr.DataArray]:
    """Those of the wanted fields that one file has, as they are in it."""
    found = {}
    for field in sorted(fields, key=str):
        name = next((n for n in _VARIABLES[field.variable].names if n in ds.data_vars), None)
        if name is None:
            continue
        array: xr.DataArray | None = ds[name]
        if field.level_hpa is not None:
            array = _select_level(ds[name], field.level_hpa, origin)
        if array is not None:
            found[field] = array
    return found


def _select_level(variable: xr.DataArray, level_hpa: int, origin: str) -> xr.DataArray | None:
    """The variable on one pressure level, or None where it has other levels only or is a surface field."""
    axis = _level_axis(variable)
    if axis is None:
        return None
    levels = convert_units(variable[axis], "hPa", origin)
    index = np.flatnonzero(np.isclose(levels.values, level_hpa, rtol=0.0, atol=0.01))
    if index.size == 0:
        return None
    return variable.isel({axis: int(index[0])}) if axis in variable.dims else variable


def _level_axis(variable: xr.DataArray) -> str | None:
    return next((name for name in _LEVEL_AXES if name in variable.coords), None)


def _choose(
    recipes: Sequence[_Recipe],
    channels: Sequence[str] | None,
    found: set[_Field],
    files: Sequence[tuple[Path, xr.Dataset]],
) -> list[_Recipe]:
    """One recipe per channel; refused when a channel that is asked for, or all of them, cannot be had."""
    possible: dict[str, _Recipe] = {}
    for recipe in recipes:
        if found.issuperset(recipe.needs):
            possible.setdefault(recipe.channel, recipe)
    missing = [c for c in (channels or ()) if c not in possible]
    if possible and not missing:
        return [possible[c] for c in (channels or possible)]

    where = str(files[0][0]) if len(files) == 1 else f"The input of {len(files)} files from {files[0][0]} on"
    names = {str(name) for _, ds in files for name in ds.data_vars}
    has = ", ".join(sorted({_describe(v) for _, ds in files for v in ds.data_vars.values()})) or "no variable"
    hint = " These are names of CAM5: try source=cam5." if names & CHANNELS.keys() and not found else ""
    if missing:
        reason = "; ".join(f"{channel} needs {_needs(channel, recipes)}" for channel in missing)
    else:
        reason = "no channel can be had from it"
    raise InputError(f"{where}: {reason}. It has: {has}.{hint}")


def _describe(variable: xr.DataArray) -> str:
    """A variable's name with its pressure levels, such as ``u at 850, 500 hPa``."""
    axis = _level_axis(variable)
    if axis is None:
        return str(variable.name)
    levels = np.atleast_1d(variable[axis].values)
    return f"{variable.name} at {', '.join(f'{level:g}' for level in levels)} {variable[axis].attrs.get('units', '')}"


def _needs(channel: str, recipes: Sequence[_Recipe]) -> str:
    return " or ".join(" and ".join(map(str, r.needs)) for r in recipes if r.channel == channel)


def _read(variable: xr.DataArray, field: _Field, origin: str) -> xr.DataArray:
    """One field on (time, lat, lon), in the units of the table."""
    on_axes = on_grid(_join_versions(variable, origin), origin)
    units = _VARIABLES[field.variable].units
    if field.variable == "z" and is_convertible(on_axes.attrs.get("units"), "m2 s-2"):
        on_axes = convert_units(on_axes, "m2 s-2", origin)
        on_axes = (on_axes / GRAVITY).assign_attrs(units="m")
    return convert_units(on_axes, units, origin)


def _join_versions(variable: xr.DataArray, origin: str) -> xr.DataArray:
    """Final values (expver 1) where there are, preliminary ones (expver 5) elsewhere, never their sum."""
    if "expver" not in variable.dims:
        return variable
    versions = [str(v).lstrip("0") for v in variable["expver"].values]
    unknown = sorted(set(versions) - {"1", "5"})
    if unknown or len(set(versions)) != len(versions):
        raise InputError(f"{origin}: expver holds {', '.join(versions)}; expected 1 (final) and 5 (preliminary).")
    final, *preliminary = (variable.isel(expver=versions.index(v), drop=True) for v in sorted(versions))
    return final.fillna(preliminary[0]).assign_attrs(variable.attrs) if preliminary else final


def _compute(recipe: _Recipe, raw: xr.Dataset) -> xr.DataArray:
    channel = recipe.compute(*(raw[str(field)] for field in recipe.needs))
    comment = {"comment": recipe.comment} if recipe.comment else {}
    channel = channel.copy()
    channel.attrs = {"units": CHANNELS[recipe.channel].units} | comment
    return channel
