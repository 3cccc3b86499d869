"""Masks that came with the file."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from climseg.canonical import to_canonical
from climseg.errors import InputError
from climseg.labels.from_file import from_file


def dataset(name: str) -> xr.Dataset:
    values = np.arange(12).reshape(1, 3, 4) % 3
    coords = {"time": pd.date_range("2000-01-01", periods=1), "lat": [0.0, 1.0, 2.0], "lon": [5.0, 6.0, 7.0, 8.0]}
    return to_canonical(xr.Dataset({name: (("time", "lat", "lon"), values)}, coords=coords), "made")


def test_labels_of_the_file_come_back_as_they_are() -> None:
    ds = dataset("LABELS")
    xr.testing.assert_identical(from_file(ds), ds["LABELS"])
    assert from_file(ds).dtype == np.int8


def test_a_file_without_labels_is_refused_with_what_it_holds_and_the_way_out() -> None:
    with pytest.raises(InputError, match=r"no variable LABELS; found: TMQ\..*labels=kurth2018"):
        from_file(dataset("TMQ"))
