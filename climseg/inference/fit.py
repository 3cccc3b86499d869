"""Does this Dataset fit this network? What does not is refused by name, before any computing."""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from climseg.canonical import check_canonical
from climseg.errors import InputError
from climseg.grid import is_periodic, spacing
from climseg.inference.regrid import grid_within
from climseg.training.contract import Contract

# Grids count as equal up to this relative difference of their spacings (721 and 720 rows of 0.25 degrees: 0.1 %).
SPACING_TOLERANCE = 0.02


@dataclass(frozen=True)
class Fit:
    """A Dataset as the network wants it.

    Attributes:
        images: Canonical Dataset with just the network's channels in its order, on the input's grid; lazy.
        lat: Latitudes on which the network works, degrees.
        lon: Longitudes on which the network works, degrees.
        regrid: Whether these differ from the input's.
    """

    images: xr.Dataset
    lat: np.ndarray[tuple[int], np.dtype[np.float64]]
    lon: np.ndarray[tuple[int], np.dtype[np.float64]]
    regrid: bool

    @property
    def periodic(self) -> bool:
        """Whether the grid on which the network works closes."""
        return is_periodic(self.lon)


def fit_to_network(ds: xr.Dataset, contract: Contract, *, regrid: bool = False, origin: str = "input") -> Fit:
    """Choose the network's channels and see that units and grid are those of its training.

    Args:
        ds: Canonical Dataset.
        contract: The checkpoint's.
        regrid: Allow another grid: fields are interpolated to the training grid, probabilities back.
        origin: The input to name in an error.

    Raises:
        InputError: A channel is missing, its unit differs, or the grid's spacing differs and ``regrid`` is off.
    """
    missing = [c for c in contract.channels if c not in ds.data_vars]
    if missing:
        raise InputError(
            f"{origin}: the network needs the channel {', '.join(missing)}, which the input does not provide "
            f"(found: {', '.join(str(v) for v in ds.data_vars) or 'none'}). Add the missing fields, or train a network "
            "without them: climseg prepare ... channels=[...]."
        )
    for channel, units in zip(contract.channels, contract.units, strict=True):
        if ds[channel].attrs.get("units") != units:
            raise InputError(
                f"{origin}: {channel} is in {ds[channel].attrs.get('units')!r}; the network was trained with {units!r}."
            )
    images = ds[contract.channels]
    check_canonical(images, contract.channels, origin)

    grid_lat, grid_lon = np.asarray(contract.lat), np.asarray(contract.lon)
    lat, lon = ds["lat"].values, ds["lon"].values
    same = all(
        abs(spacing(here) - spacing(there)) <= SPACING_TOLERANCE * spacing(there)
        for here, there in ((lat, grid_lat), (lon, grid_lon))
    )
    if same:
        return Fit(images, lat, lon, regrid=False)
    if not regrid:
        raise InputError(
            f"{origin}: the grid is {spacing(lat):.4g} x {spacing(lon):.4g} degrees (lat x lon); the network was "
            f"trained on {spacing(grid_lat):.4g} x {spacing(grid_lon):.4g}. Add regrid=true to interpolate the fields "
            "to that grid and the masks back."
        )
    lat, lon = grid_within(grid_lat, grid_lon, ds)
    if lat.size < 2 or lon.size < 2:
        raise InputError(f"{origin}: the input covers less than 2 x 2 cells of the network's grid; give more.")
    return Fit(images, lat, lon, regrid=True)
