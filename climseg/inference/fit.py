"""Does this Dataset fit this network? What does not is refused by name, before any computing."""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from climseg.canonical import check_canonical
from climseg.errors import InputError
from climseg.grid import spacing
from climseg.regrid import Grid, grid_within
from climseg.training.contract import Contract

# Grids count as equal up to this relative difference of their spacings (721 and 720 rows of 0.25 degrees: 0.1 %).
SPACING_TOLERANCE = 0.02


@dataclass(frozen=True)
class Fit:
    """A Dataset as the network wants it.

    Attributes:
        images: Canonical Dataset with just the network's channels in its order, on the input's grid; lazy.
        grid: The grid on which the network works.
        regrid: Whether it differs from the input's.
    """

    images: xr.Dataset
    grid: Grid
    regrid: bool


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

    here, there = Grid.of(ds), Grid(np.asarray(contract.lat), np.asarray(contract.lon))
    same = all(
        abs(spacing(mine) - spacing(theirs)) <= SPACING_TOLERANCE * spacing(theirs)
        for mine, theirs in ((here.lat, there.lat), (here.lon, there.lon))
    )
    if same:
        return Fit(images, here, regrid=False)
    if not regrid:
        raise InputError(
            f"{origin}: the grid is {spacing(here.lat):.4g} x {spacing(here.lon):.4g} degrees (lat x lon); the network "
            f"was trained on {spacing(there.lat):.4g} x {spacing(there.lon):.4g}. Add regrid=true to interpolate the "
            "fields to that grid and the masks back."
        )
    grid = grid_within(there, here)
    if min(grid.shape) < 2:
        raise InputError(f"{origin}: the input covers less than 2 x 2 cells of the network's grid; give more.")
    if not _spans(grid, here):
        raise InputError(
            f"{origin}: the input, {here}, reaches beyond the region of the network's training, {there}; cut it to "
            "that region."
        )
    return Fit(images, grid, regrid=True)


def _spans(grid: Grid, area: Grid) -> bool:
    """Whether a grid leaves out less than one of its steps at each border of an area."""
    axes = [(grid.lat, area.lat)] if grid.periodic else [(grid.lat, area.lat), (grid.lon, area.lon)]
    return all(max(a[0] - b[0], b[-1] - a[-1]) < spacing(a) for a, b in axes)
