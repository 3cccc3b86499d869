"""Bilinear interpolation between regular latitude-longitude grids, to predict on another grid than the network's."""

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from climseg.grid import is_periodic, spacing


def interpolate(ds: xr.Dataset, lat: NDArray[np.float64], lon: NDArray[np.float64]) -> xr.Dataset:
    """Interpolate bilinearly to other latitudes and longitudes, around the globe when the grid closes.

    Args:
        ds: Variables with the dims lat and lon (ascending), and any others.
        lat: Target latitudes in degrees; beyond the outermost row its values are taken (a pole).
        lon: Target longitudes in degrees, in the convention of ``ds``.

    Returns:
        A Dataset on the new grid; dtypes are kept.
    """
    if is_periodic(ds["lon"].values):
        first, last = ds.isel(lon=[0]), ds.isel(lon=[-1])
        ds = xr.concat(
            [last.assign_coords(lon=last["lon"] - 360.0), ds, first.assign_coords(lon=first["lon"] + 360.0)], dim="lon"
        )
    inside = np.clip(lat, float(ds["lat"][0]), float(ds["lat"][-1]))
    out = ds.interp(lat=inside, lon=lon, method="linear").assign_coords(lat=lat)
    return out.astype({name: ds[name].dtype for name in ds.data_vars})


def grid_within(
    lat: NDArray[np.float64], lon: NDArray[np.float64], region: xr.Dataset
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The rows and columns of a grid that lie within the area of another one.

    Args:
        lat: Latitudes of the grid wanted, ascending.
        lon: Longitudes of the grid wanted, ascending.
        region: Canonical Dataset; its longitudes may go on beyond 360.

    Returns:
        Latitudes and longitudes in the convention of ``region``.
    """
    south, north = (float(region["lat"][i]) for i in (0, -1))
    half = spacing(region["lat"].values) / 2  # the first row of a cell-centred global grid is half a step from the pole
    rows = lat[(lat >= south - half) & (lat <= north + half)]
    if is_periodic(region["lon"].values):
        return rows, lon
    west, east = (float(region["lon"][i]) for i in (0, -1))
    columns = np.sort(np.concatenate([lon, lon + 360.0]))
    return rows, columns[(columns >= west) & (columns <= east)]
