"""The vocabulary: the channels with CF standard names and units, and the three classes.

The 16 of CAM5 come first and in their order. A new channel is one row here, its recipes in ``sources/recipes.py``, and
its names in each source's table.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Channel:
    """One physical field on one level.

    Attributes:
        name: The CAM5 variable name, also the name in canonical Datasets, stores and checkpoints.
        long_name: What a plot says.
        standard_name: From the CF standard name table; empty where that has none.
        units: Canonical units (UDUNITS spelling); sources convert to them.
        plausible: Smallest and largest value that a right unit can give. Narrow enough that a global field in Celsius
            for kelvin, hPa for Pa, mm for m or g/kg for kg/kg does not fit, and wide enough for any weather: the
            extremes over 121,266 CAM5 samples (the statistics of DeepCAM) lie within, and so do the records of the
            World Meteorological Organization (-89.2 and 56.7 degrees Celsius, 870 and 1084 hPa at sea level, 305 mm of
            rain in 42 minutes).
        level_hpa: Pressure level in hPa, or None for surface, near-surface and column fields.
    """

    name: str
    long_name: str
    standard_name: str
    units: str
    plausible: tuple[float, float]
    level_hpa: int | None = None

    @property
    def attributes(self) -> dict[str, str]:
        """CF attributes of a canonical variable."""
        names = {"long_name": self.long_name, "standard_name": self.standard_name, "units": self.units}
        return {key: text for key, text in names.items() if text}


# The first 16 in the order of Kurth et al. 2018 and of the DeepCAM data set: models count on it.
CHANNELS: Final[dict[str, Channel]] = {
    c.name: c
    for c in (
        Channel(
            "TMQ",
            "vertically integrated water vapour",
            "atmosphere_mass_content_of_water_vapor",
            "kg m-2",
            (-1.0, 150.0),
        ),
        Channel("U850", "eastward wind at 850 hPa", "eastward_wind", "m s-1", (-120.0, 120.0), 850),
        Channel("V850", "northward wind at 850 hPa", "northward_wind", "m s-1", (-120.0, 120.0), 850),
        Channel("UBOT", "eastward wind at the lowest model level", "eastward_wind", "m s-1", (-120.0, 120.0)),
        Channel("VBOT", "northward wind at the lowest model level", "northward_wind", "m s-1", (-120.0, 120.0)),
        Channel("QREFHT", "specific humidity at 2 m", "specific_humidity", "kg kg-1", (-0.002, 0.2)),
        Channel("PS", "surface pressure", "surface_air_pressure", "Pa", (3e4, 1.15e5)),
        Channel("PSL", "mean sea level pressure", "air_pressure_at_mean_sea_level", "Pa", (8e4, 1.15e5)),
        Channel("T200", "air temperature at 200 hPa", "air_temperature", "K", (150.0, 280.0), 200),
        Channel("T500", "air temperature at 500 hPa", "air_temperature", "K", (180.0, 310.0), 500),
        Channel("PRECT", "precipitation rate (liquid water)", "lwe_precipitation_rate", "m s-1", (-1e-7, 1.3e-4)),
        Channel("TS", "surface (skin) temperature", "surface_temperature", "K", (90.0, 370.0)),
        Channel("TREFHT", "air temperature at 2 m", "air_temperature", "K", (90.0, 345.0)),
        Channel("Z1000", "geopotential height at 1000 hPa", "geopotential_height", "m", (-1500.0, 6500.0), 1000),
        Channel("Z200", "geopotential height at 200 hPa", "geopotential_height", "m", (9000.0, 14000.0), 200),
        Channel("ZBOT", "height of the lowest model level", "height", "m", (1.0, 500.0)),
        # Not among CAM5's 16: read or derived where they are asked for.
        Channel(
            "IVT",
            "magnitude of the vertically integrated water vapour transport",
            "",  # the CF table names its components only
            "kg m-1 s-1",
            (0.0, 1e4),
        ),
        Channel(
            "UIVT",
            "eastward vertically integrated water vapour transport",
            "eastward_atmosphere_water_vapor_transport_across_unit_distance",
            "kg m-1 s-1",
            (-1e4, 1e4),
        ),
        Channel(
            "VIVT",
            "northward vertically integrated water vapour transport",
            "northward_atmosphere_water_vapor_transport_across_unit_distance",
            "kg m-1 s-1",
            (-1e4, 1e4),
        ),
        Channel("Z300", "geopotential height at 300 hPa", "geopotential_height", "m", (7000.0, 11000.0), 300),
        Channel("Z500", "geopotential height at 500 hPa", "geopotential_height", "m", (4000.0, 6800.0), 500),
        Channel("VRT850", "relative vorticity at 850 hPa", "atmosphere_relative_vorticity", "s-1", (-0.05, 0.05), 850),
        Channel("WS850", "wind speed at 850 hPa", "wind_speed", "m s-1", (0.0, 150.0), 850),
    )
}
CAM5_CHANNELS: Final = tuple(CHANNELS)[:16]

# The name of the mask that a file may bring along (ClimateNet) and that the store keeps.
LABELS: Final = "LABELS"

# Class numbers are positions: 0 background, 1 tropical cyclone, 2 atmospheric river (as Kurth, ClimateNet and DeepCAM).
BACKGROUND: Final = 0
TROPICAL_CYCLONE: Final = 1
ATMOSPHERIC_RIVER: Final = 2
# In a mask: no class could be told here (a missing value in the fields). Loss and scores leave such pixels out.
MISSING_LABEL: Final = -1
CLASSES: Final = ("background", "tropical_cyclone", "atmospheric_river")
CLASS_ABBREVIATIONS: Final = ("BG", "TC", "AR")
