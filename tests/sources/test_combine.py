from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cftime
import numpy as np
import pytest
import xarray as xr

from climseg.errors import InputError
from climseg.sources.combine import Part, combine_files

LAT = [0.0, 10.0]
LON = [0.0, 10.0, 20.0]


def _part(path: str, hours: Sequence[Any], *names: str, lat: Any = LAT, lon: Any = LON) -> Part:
    """Variables whose values are the hour since 2001 began; or, at cftime dates, the position in the file."""
    if hasattr(hours[0], "calendar"):
        times: Any = list(hours)
        values = np.arange(len(hours), dtype=float)
    else:
        times = np.datetime64("2001-01-01", "ns") + np.array(hours, "timedelta64[h]")
        values = np.array(hours, dtype=float)
    shape = (len(hours), len(lat), len(lon))
    field = np.broadcast_to(values.reshape(-1, 1, 1), shape)
    coords = {"time": times, "lat": lat, "lon": lon}
    dims = ("time", "lat", "lon")
    return Path(path), {name: xr.DataArray(field, coords, dims, name=name) for name in names}


def test_files_are_put_in_the_order_of_their_times_and_not_of_their_names() -> None:
    ds = combine_files([_part("a.nc", [12, 18], "TMQ"), _part("b.nc", [0, 6], "TMQ"), _part("c.nc", [24], "TMQ")])
    np.testing.assert_array_equal(ds["TMQ"][:, 0, 0], [0, 6, 12, 18, 24])
    assert ds.indexes["time"].is_monotonic_increasing


def test_files_whose_times_interleave_are_sorted_step_by_step() -> None:
    ds = combine_files([_part("a.nc", [0, 12], "TMQ"), _part("b.nc", [18, 6], "TMQ")])
    np.testing.assert_array_equal(ds["TMQ"][:, 0, 0], [0, 6, 12, 18])
    assert list(ds.indexes["time"].hour) == [0, 6, 12, 18]


def test_files_of_one_variable_each_and_of_successive_months_combine_together() -> None:
    parts = [_part(f"{v}{h}.nc", [h, h + 6], v) for h in (12, 0) for v in ("TMQ", "PSL")]
    ds = combine_files(parts)
    assert list(ds.data_vars) == ["TMQ", "PSL"]
    np.testing.assert_array_equal(ds["PSL"][:, 1, 2], [0, 6, 12, 18])


def test_cftime_files_combine_on_one_cftime_axis() -> None:
    days = [cftime.DatetimeNoLeap(2000, 2, 28), cftime.DatetimeNoLeap(2000, 3, 1)]
    ds = combine_files([_part("b.nc", days[1:], "TMQ"), _part("a.nc", days[:1], "TMQ")])
    assert list(ds["time"].values) == days


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        (
            [_part("a.nc", [0, 6], "TMQ"), _part("b.nc", [6, 12], "TMQ")],
            "The time 2001-01-01 06:00:00 of variable TMQ is in both a.nc and b.nc",
        ),
        ([_part("a.nc", [0, 6, 0], "TMQ")], "a.nc: variable TMQ has the time 2001-01-01 00:00:00 twice"),
        (
            [_part("a.nc", [0, 6, 12], "TMQ"), _part("b.nc", [0, 12], "PSL")],
            "Variable PSL has no value at 2001-01-01 06:00:00, where a.nc has TMQ",
        ),
        (
            [_part("a.nc", [0, 6], "TMQ"), _part("b.nc", [0], "PSL"), _part("c.nc", [6, 12], "PSL")],
            "Variable TMQ has no value at 2001-01-01 12:00:00, where c.nc has PSL",
        ),
        (
            [_part("a.nc", [0, 6], "TMQ", "PSL"), _part("b.nc", [12], "TMQ")],
            "Variable PSL has no value at 2001-01-01 12:00:00, where b.nc has TMQ",
        ),
        (
            [_part("a.nc", [0], "TMQ"), _part("b.nc", [6], "TMQ", lat=[0.0, 5.0])],
            "a.nc and b.nc have unequal grids: lat is 0 to 10 in 2 points in the first and 0 to 5 in 2 points",
        ),
        ([_part("a.nc", [0], "TMQ"), _part("b.nc", [6], "TMQ", lon=[0.0, 10.0])], "unequal grids: lon"),
        (
            [_part("a.nc", [0], "TMQ"), _part("b.nc", [cftime.DatetimeNoLeap(2002, 1, 1)], "TMQ")],
            "a.nc has the calendar standard and b.nc has noleap",
        ),
        (
            [
                _part("a.nc", [cftime.Datetime360Day(2002, 1, 1)], "TMQ"),
                _part("b.nc", [cftime.DatetimeNoLeap(2002, 1, 2)], "TMQ"),
            ],
            "a.nc has the calendar 360_day and b.nc has noleap",
        ),
    ],
)
def test_files_that_do_not_fit_together_are_refused_by_name(parts: list[Part], said: str) -> None:
    with pytest.raises(InputError) as error:
        combine_files(parts)
    assert said in str(error.value)


def test_a_grid_stored_once_as_float32_and_once_as_float64_is_one_grid() -> None:
    fine = np.arange(0.0, 1.0, 0.1)
    ds = combine_files([_part("a.nc", [0], "TMQ", lat=fine), _part("b.nc", [6], "TMQ", lat=fine.astype(np.float32))])
    np.testing.assert_array_equal(ds["lat"], fine)
