"""Masks that came with the file (ClimateNet's expert labels)."""

import xarray as xr

from climseg.canonical import check_canonical
from climseg.channels import LABELS
from climseg.errors import InputError


def from_file(ds: xr.Dataset) -> xr.DataArray:
    """The mask LABELS (time, lat, lon) int8 of a canonical Dataset, as it is.

    Raises:
        InputError: The Dataset is not canonical or has no LABELS.
    """
    check_canonical(ds)
    if LABELS not in ds:
        raise InputError(
            f"the Dataset: has no variable {LABELS}; found: {', '.join(map(str, ds.data_vars)) or 'none'}. Give files "
            "that carry labels, or make labels with a heuristic (labels=kurth2018)."
        )
    return ds[LABELS]
