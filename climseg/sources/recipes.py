"""How each channel comes from what files hold: the variable itself, or others by a formula. Preferred ways come first.

What is not the variable itself says so in the ``comment`` of the channel: ``derived: ...`` where a formula gives it,
``approximation: ...`` where something else stands in for it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import xarray as xr

from climseg.channels import CHANNELS
from climseg.grid import GRAVITY
from climseg.sources import derive

# What files hold beside channels, and the units to which it is converted when read.
INGREDIENTS: Final = {
    "u": "m s-1",  # eastward wind on pressure or hybrid levels
    "v": "m s-1",  # northward wind on levels
    "t": "K",  # air temperature on levels
    "z": "m",  # geopotential height on levels, or the geopotential
    "q": "kg kg-1",  # specific humidity on levels
    "r": "%",  # relative humidity over water on levels
    "u10": "m s-1",  # eastward wind at 10 m
    "v10": "m s-1",  # northward wind at 10 m
    "d2m": "K",  # dew point at 2 m
    "rain": "m",  # precipitation accumulated over a period that the file must say
    "PRECC": "m s-1",  # convective precipitation rate
    "PRECL": "m s-1",  # large-scale precipitation rate
    "viwve": "kg m-1 s-1",  # eastward water vapour flux through the column
    "viwvn": "kg m-1 s-1",  # northward water vapour flux through the column
}
# What may stand for a quantity by its units: units, factor to the canonical ones, words. 1 kg m-2 of water is 1 mm
# deep.
_GEOPOTENTIAL: Final = ("m2 s-2", 1.0 / GRAVITY, f"/ {GRAVITY} m s-2")
_MASS_FLUX: Final = ("kg m-2 s-1", 1e-3, "/ 1000 kg m-3")
EQUIVALENTS: Final = {
    "z": _GEOPOTENTIAL,
    "Z1000": _GEOPOTENTIAL,
    "Z200": _GEOPOTENTIAL,
    "Z300": _GEOPOTENTIAL,
    "Z500": _GEOPOTENTIAL,
    "PRECT": _MASS_FLUX,
    "PRECC": _MASS_FLUX,
    "PRECL": _MASS_FLUX,
    "rain": ("kg m-2", 1e-3, "/ 1000 kg m-3"),
}

# Where on the vertical a field is taken, beside a single pressure level in hPa.
PRESSURE_LEVELS: Final = "pressure levels"
MODEL_LEVELS: Final = "model levels"
LOWEST_LEVEL: Final = "lowest model level"


@dataclass(frozen=True)
class Field:
    """One ingredient or channel as files hold it.

    Attributes:
        name: A key of ``INGREDIENTS`` or ``CHANNELS``.
        where: None for fields without levels, a pressure level in hPa, ``PRESSURE_LEVELS`` or ``MODEL_LEVELS`` for the
            whole column, ``LOWEST_LEVEL``.
    """

    name: str
    where: int | str | None = None

    @property
    def units(self) -> str:
        """Units to which it is converted."""
        return INGREDIENTS[self.name] if self.name in INGREDIENTS else CHANNELS[self.name].units


@dataclass(frozen=True)
class Recipe:
    """One way to a channel.

    Attributes:
        needs: Fields, and names of channels that are made by recipes of their own.
        compute: From the arrays of ``needs``, in their order, to the channel in canonical units.
        comment: What the channel's comment says; ``{0}``, ``{1}`` are the names of what is needed, as in the files.
    """

    needs: tuple[Field | str, ...]
    compute: Callable[..., xr.DataArray] = lambda field: field
    comment: str = ""


def _itself(name: str) -> Recipe:
    return Recipe((Field(name),))


def _levels(channel: str, ingredient: str, note: str = "") -> tuple[Recipe, ...]:
    """A channel on one pressure level: itself, picked from pressure levels, or interpolated between hybrid levels."""
    level = CHANNELS[channel].level_hpa
    assert level is not None
    return (
        _itself(channel),
        Recipe((Field(ingredient, level),), comment=f"derived: from {{0}}{note}" if note else ""),
        Recipe(
            (Field(ingredient, MODEL_LEVELS), "PS"),
            lambda column, ps: derive.to_pressure_level(column, _pressure(column, ps), level * 100.0),
            f"derived: {{0}}, interpolated to {level} hPa linearly in log(pressure)",
        ),
    )


def _lowest(channel: str, ingredient: str, stand_in: str) -> tuple[Recipe, ...]:
    return (
        _itself(channel),
        Recipe((Field(ingredient, LOWEST_LEVEL),), comment="derived: {0}"),
        Recipe(
            (Field(stand_in),),
            comment="approximation: {0} (wind at 10 m) stands in for the wind at the lowest model level",
        ),
    )


def _pressure(column: xr.DataArray, ps: xr.DataArray | None = None) -> Any:
    """Pressure in Pa of a column's levels: (level,) for pressure levels, (time, level, lat, lon) for hybrid ones."""
    if "pressure" in column.coords:
        return column["pressure"].values
    assert ps is not None
    return derive.hybrid_pressure(column["a"], column["b"], float(column["reference"]), ps)


def _common_levels(*columns: xr.DataArray) -> tuple[xr.DataArray, ...]:
    """The pressure levels that all columns have."""
    common = np.array(sorted(set.intersection(*(set(c["pressure"].values.tolist()) for c in columns))))
    return tuple(
        c
        if np.array_equal(c["pressure"].values, common)
        else c.isel(level=np.argsort(c["pressure"].values)[np.isin(np.sort(c["pressure"].values), common)])
        for c in columns
    )


def _water(q: xr.DataArray, ps: xr.DataArray | None = None) -> xr.DataArray:
    return derive.column_water_vapour(q, _pressure(q, ps), ps)


def _transport(q: xr.DataArray, u: xr.DataArray, v: xr.DataArray, ps: xr.DataArray | None = None) -> xr.DataArray:
    if "pressure" in q.coords:
        q, u, v = _common_levels(q, u, v)
    return derive.integrated_vapour_transport(q, u, v, _pressure(q, ps), ps)


def _water_of_relative(r: xr.DataArray, t: xr.DataArray, ps: xr.DataArray) -> xr.DataArray:
    r, t = _common_levels(r, t)
    return _water(_humidity(r, t), ps)


def _transport_of_relative(
    r: xr.DataArray, t: xr.DataArray, u: xr.DataArray, v: xr.DataArray, ps: xr.DataArray
) -> xr.DataArray:
    r, t, u, v = _common_levels(r, t, u, v)
    return _transport(_humidity(r, t), u, v, ps)


def _part_of_transport(q: xr.DataArray, wind: xr.DataArray, ps: xr.DataArray | None = None) -> xr.DataArray:
    if "pressure" in q.coords:
        q, wind = _common_levels(q, wind)
    return derive.vapour_transport(q, wind, _pressure(q, ps), ps)


def _part_of_transport_of_relative(
    r: xr.DataArray, t: xr.DataArray, wind: xr.DataArray, ps: xr.DataArray
) -> xr.DataArray:
    r, t, wind = _common_levels(r, t, wind)
    return _part_of_transport(_humidity(r, t), wind, ps)


def _transport_part(channel: str, flux: str, wind: str) -> tuple[Recipe, ...]:
    """One of the two parts of the transport: itself, the flux under its other name, or the integral of q times wind."""
    on_pressure = (Field("q", PRESSURE_LEVELS), Field(wind, PRESSURE_LEVELS))
    return (
        _itself(channel),
        Recipe((Field(flux),)),
        Recipe(
            (*on_pressure, "PS"), _part_of_transport, "derived: {0} with {1}, integrated to the surface pressure {2}"
        ),
        Recipe(on_pressure, _part_of_transport, "derived: {0} with {1}, integrated to the lowest of them"),
        Recipe(
            (Field("q", MODEL_LEVELS), Field(wind, MODEL_LEVELS), "PS"),
            _part_of_transport,
            "derived: {0} with {1}, integrated",
        ),
        Recipe(
            (*_RELATIVE, on_pressure[1], "PS"),
            _part_of_transport_of_relative,
            "derived: {0} with {1} and {2}, saturation over water, integrated to {3}",
        ),
    )


def _humidity(r: xr.DataArray, t: xr.DataArray) -> xr.DataArray:
    """Specific humidity of a column on pressure levels."""
    q = derive.specific_humidity_from_relative(r, t, _pressure(r))
    return q.assign_coords(pressure=r["pressure"])


def _rain_rate(depth: xr.DataArray) -> xr.DataArray:
    return derive.rate_from_accumulation(depth, depth["accumulation_seconds"])


_CLIPPED: Final = "; below ground {0} is extrapolated, CAM clips at the terrain"
_FLUX: Final = tuple(Field(name, PRESSURE_LEVELS) for name in ("q", "u", "v"))
_RELATIVE: Final = tuple(Field(name, PRESSURE_LEVELS) for name in ("r", "t"))
_MODEL_FLUX: Final = tuple(Field(name, MODEL_LEVELS) for name in ("q", "u", "v"))

RECIPES: Final[dict[str, tuple[Recipe, ...]]] = {
    "TMQ": (
        _itself("TMQ"),
        Recipe((Field("q", PRESSURE_LEVELS), "PS"), _water, "derived: {0}, integrated to the surface pressure {1}"),
        Recipe((Field("q", PRESSURE_LEVELS),), _water, "derived: {0}, integrated to the lowest of them"),
        Recipe((Field("q", MODEL_LEVELS), "PS"), _water, "derived: {0}, integrated"),
        Recipe(
            (*_RELATIVE, "PS"), _water_of_relative, "derived: {0} with {1}, saturation over water, integrated to {2}"
        ),
    ),
    "U850": _levels("U850", "u"),
    "V850": _levels("V850", "v"),
    "UBOT": _lowest("UBOT", "u", "u10"),
    "VBOT": _lowest("VBOT", "v", "v10"),
    "QREFHT": (
        _itself("QREFHT"),
        Recipe(
            (Field("d2m"), "PS"),
            derive.specific_humidity,
            "derived: from the dew point at 2 m ({0}) and the surface pressure ({1}), saturation over water",
        ),
    ),
    "PS": (_itself("PS"),),
    "PSL": (_itself("PSL"),),
    "T200": _levels("T200", "t"),
    "T500": _levels("T500", "t"),
    "PRECT": (
        _itself("PRECT"),
        Recipe((Field("PRECC"), Field("PRECL")), lambda c, large: c + large, "derived: {0} + {1}"),
        Recipe((Field("rain"),), _rain_rate, "derived: {0}, accumulated, / its period of accumulation"),
    ),
    "TS": (_itself("TS"),),
    "TREFHT": (_itself("TREFHT"),),
    "Z1000": _levels("Z1000", "z", _CLIPPED),
    "Z200": _levels("Z200", "z", _CLIPPED),
    "Z300": _levels("Z300", "z", _CLIPPED),
    "Z500": _levels("Z500", "z", _CLIPPED),
    "ZBOT": (
        _itself("ZBOT"),
        Recipe(
            ("TREFHT",),
            derive.lowest_level_height,
            "approximation: hypsometric height of CAM5's lowest level, the temperature at 2 m ({0}) standing in for "
            "that of the layer",
        ),
    ),
    "IVT": (
        _itself("IVT"),
        Recipe((Field("viwve"), Field("viwvn")), derive.transport_magnitude, "derived: magnitude of {0} and {1}"),
        Recipe((Field("UIVT"), Field("VIVT")), derive.transport_magnitude, "derived: magnitude of {0} and {1}"),
        Recipe((*_FLUX, "PS"), _transport, "derived: {0} with {1} and {2}, integrated to the surface pressure {3}"),
        Recipe(_FLUX, _transport, "derived: {0} with {1} and {2}, integrated to the lowest of them"),
        Recipe((*_MODEL_FLUX, "PS"), _transport, "derived: {0} with {1} and {2}, integrated"),
        Recipe(
            (*_RELATIVE, *_FLUX[1:], "PS"),
            _transport_of_relative,
            "derived: {0} with {1}, {2} and {3}, saturation over water, integrated to {4}",
        ),
    ),
    "UIVT": _transport_part("UIVT", "viwve", "u"),
    "VIVT": _transport_part("VIVT", "viwvn", "v"),
    "VRT850": (
        _itself("VRT850"),
        Recipe(("U850", "V850"), derive.vorticity, "derived: relative vorticity of {0} and {1}"),
    ),
    "WS850": (_itself("WS850"), Recipe(("U850", "V850"), derive.wind_speed, "derived: speed of {0} and {1}")),
}
