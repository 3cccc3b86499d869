"""Made fields with storms of known shape."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from climseg.canonical import to_canonical
from climseg.grid import EARTH_RADIUS, great_circle_distance, longitude_difference

Fields = dict[str, np.ndarray]


def still_air(lat: np.ndarray, lon: np.ndarray) -> Fields:
    """Uniform fields, canonical units."""
    values = {"PSL": 101_300.0, "TMQ": 20.0, "T200": 220.0, "T500": 260.0, "Z1000": 100.0, "Z200": 12_000.0}
    winds = {"U850": 0.0, "V850": 0.0, "UBOT": 0.0, "VBOT": 0.0, "PRECT": 0.0}
    return {name: np.full((lat.size, lon.size), value) for name, value in (values | winds).items()}


def add_storm(
    fields: Fields,
    lat: np.ndarray,
    lon: np.ndarray,
    centre: tuple[float, float],
    *,
    wind: float = 40.0,
    surface_wind: float = 40.0,
    depth: float = 3000.0,
    warmth: float = 4.0,
    thickening: float = 200.0,
    rotation: float | None = None,
    low_at: tuple[float, float] | None = None,
    warm_at: tuple[float, float] | None = None,
    thick_at: tuple[float, float] | None = None,
) -> None:
    """Add a storm: wind ``2 x / (1 + x^2)`` times its maximum, x in degrees of arc; Gaussians of 1.5 degrees else.

    ``rotation`` is 1 for anticlockwise, by default what is cyclonic in the centre's hemisphere; ``low_at``, ``warm_at``
    and ``thick_at`` put the pressure minimum, the warm core and the thick layer elsewhere.
    """

    def distance(point: tuple[float, float]) -> np.ndarray:
        return np.degrees(great_circle_distance(*point, lat[:, None], lon[None, :]) / EARTH_RADIUS)

    def bump(point: tuple[float, float] | None) -> np.ndarray:
        return np.exp(-((distance(point or centre) / 1.5) ** 2))

    turn = np.sign(centre[0]) if rotation is None else rotation
    x = distance(centre)
    north = (lat - centre[0])[:, None] * np.ones(lon.size)
    east = longitude_difference(lon, centre[1])[None, :] * np.cos(np.radians(lat))[:, None]
    length = np.maximum(np.hypot(north, east), 1e-9)
    speed = turn * 2 * x / (1 + x**2)
    for u, v, strongest in (("U850", "V850", wind), ("UBOT", "VBOT", surface_wind)):
        fields[u] = fields[u] - strongest * speed * north / length
        fields[v] = fields[v] + strongest * speed * east / length
    fields["PSL"] = fields["PSL"] - depth * bump(low_at)
    fields["T500"] = fields["T500"] + 2 * warmth * bump(warm_at)
    fields["Z200"] = fields["Z200"] + thickening * bump(thick_at)
    fields["TMQ"] = fields["TMQ"] + 40.0 * bump(None)
    fields["PRECT"] = fields["PRECT"] + 1e-6 * bump(None)


@pytest.fixture(scope="session")
def stormy() -> Callable[..., Fields]:
    """``stormy(lat, lon, centres, **storm)``: still air with storms, one shape for all."""

    def make(lat: np.ndarray, lon: np.ndarray, centres: Iterable[tuple[float, float]], **storm: Any) -> Fields:
        fields = still_air(lat, lon)
        for centre in centres:
            add_storm(fields, lat, lon, centre, **storm)
        return fields

    return make


@pytest.fixture(scope="session")
def canonical() -> Callable[..., xr.Dataset]:
    """``canonical(lat, lon, *steps)``: fields of one or more time steps as a canonical Dataset."""

    def make(lat: np.ndarray, lon: np.ndarray, *steps: Fields) -> xr.Dataset:
        stacked = {name: (("time", "lat", "lon"), np.stack([step[name] for step in steps])) for name in steps[0]}
        times = pd.date_range("2001-09-01", periods=len(steps), freq="6h")
        return to_canonical(xr.Dataset(stacked, coords={"time": times, "lat": lat, "lon": lon}), "made")

    return make
