from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from climseg.sources import netcdf
from climseg.sources.stored import Layout, StoredFile, StoredVariable, is_time, share_layouts

WriteFile = Callable[..., Path]
TMQ = {"TMQ": (1.0, "kg m-2")}


def _scan(path: Path) -> StoredFile:
    return netcdf.scan(str(path))


def test_files_of_one_kind_share_their_layout_and_keep_their_own_times(write_file: WriteFile) -> None:
    files = [_scan(write_file(f"{day}.nc", TMQ, times=[f"2001-01-0{day}"])) for day in (1, 2, 3)]
    assert len({id(file.layout) for file in files}) == 3
    shared = share_layouts(files)
    assert len({id(file.layout) for file in shared}) == 1
    assert [file.path for file in shared] == [file.path for file in files]
    assert [file.time for file in shared] == [file.time for file in files]


def test_packing_does_not_keep_layouts_apart(write_file: WriteFile) -> None:
    files = []
    for number in (1, 2):
        packing = {"dtype": "int16", "scale_factor": 0.25 * number, "add_offset": 1.0, "_FillValue": -32767}
        files.append(_scan(write_file(f"{number}.nc", TMQ, encoding={"TMQ": packing})))
    first, second = share_layouts(files)
    assert first.layout is second.layout
    assert (first.packing["TMQ"], second.packing["TMQ"]) == ((0.25, 1.0), (0.5, 1.0))


@pytest.mark.parametrize(
    "other",
    [
        {"fields": {"TMQ": (1.0, "g m-2")}},
        {"fields": {"TMQ": (1.0, "kg m-2"), "PSL": (1.0, "Pa")}},
        {"fields": {"TMQ": (np.float64(1.0), "kg m-2")}},
        {"lon": np.arange(0.0, 360.0, 45.0) - 180.0},
        {"lat": np.linspace(90.0, -90.0, 7)},
        {"attributes": {"": {"source": "CAM"}}},
        {"times": ["2001-01-02", "2001-01-03"]},
        {"extra": {"level": ((), 850.0, {"units": "hPa"})}},
    ],
    ids=lambda other: next(iter(other)),
)
def test_whatever_else_differs_keeps_layouts_apart(write_file: WriteFile, other: dict[str, Any]) -> None:
    files = [_scan(write_file("a.nc", TMQ)), _scan(write_file("b.nc", **({"fields": TMQ} | other)))]
    first, second = share_layouts(files)
    assert first.layout is not second.layout


def test_layouts_that_are_shared_already_stay_so(write_file: WriteFile) -> None:
    file = _scan(write_file("a.nc", TMQ))
    first, second = share_layouts([file, replace(file, path="b.nc")])
    assert first is file
    assert second.layout is file.layout


def _variable(name: str, *dims: str, dtype: str = "f4", **attributes: Any) -> StoredVariable:
    return StoredVariable(name, dims, tuple(range(2, 2 + len(dims))), np.dtype(dtype), attributes)


def test_fields_are_what_is_neither_axis_nor_bound_nor_name() -> None:
    variables = [
        _variable("TMQ", "time", "lat", "lon"),
        _variable("lat", "y", "x"),
        _variable("north", "y", "x", standard_name="latitude"),
        _variable("time_bnds", "time", "nv"),
        _variable("lat_bounds", "lat", "nv"),
        _variable("when", "time", "member", standard_name="time"),
        _variable("name", "station", "letter", dtype="S1"),
        _variable("per_step", "time"),
        replace(_variable("lon", "lon"), values=np.arange(2.0)),
    ]
    assert [v.name for v in Layout({v.name: v for v in variables}).fields()] == ["TMQ"]


def test_sizes_are_those_of_all_dimensions() -> None:
    layout = Layout({"a": _variable("a", "lat", "lon"), "b": _variable("b", "level")})
    assert layout.sizes == {"lat": 2, "lon": 3, "level": 2}


@pytest.mark.parametrize("name", ["time", "Time", "valid_time"])
def test_a_time_is_told_by_its_name_or_its_standard_name(name: str) -> None:
    assert is_time(_variable(name, "t"))
    assert is_time(_variable("t", "t", standard_name="time"))
    assert not is_time(_variable("forecast_reference_time", standard_name="forecast_reference_time"))
