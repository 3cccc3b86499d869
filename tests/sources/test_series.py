import multiprocessing
import pickle
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from climseg.errors import InputError
from climseg.sources.fields import Lookup
from climseg.sources.open import open_fields
from climseg.sources.recipes import Field
from climseg.sources.scan import scan_files
from climseg.sources.series import Series
from climseg.sources.table import built_in_table

WriteFile = Callable[..., Path]
open_cam5 = partial(open_fields, source="cam5")
UNITS = "kg m-2"
VALUES = np.arange(6 * 7 * 8, dtype=np.float32).reshape(6, 7, 8)


@pytest.fixture
def three_files(write_file: WriteFile) -> list[Path]:
    """VALUES in files of 3, 1 and 2 steps."""
    paths = []
    for start, stop in ((0, 3), (3, 4), (4, 6)):
        times = np.datetime64("2001-01-01") + np.arange(start, stop)
        paths.append(write_file(f"{start}.nc", {"TMQ": (VALUES[start:stop], UNITS)}, times=times))
    return paths


def test_reversed_and_strided_reading_gives_the_values_that_were_written(three_files: list[Path]) -> None:
    field = open_cam5(three_files)["TMQ"]
    np.testing.assert_array_equal(field[::-1, ::-1, ::3].values, VALUES[::-1, ::-1, ::3])
    np.testing.assert_array_equal(field[[5, 0, 3], :, [5, 1, 1]].values, VALUES[[5, 0, 3]][:, :, [5, 1, 1]])


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(time=st.slices(6) | st.integers(-6, 5), lat=st.slices(7), lon=st.slices(8))
def test_any_part_of_a_series_is_what_numpy_gives(three_files: list[Path], time: Any, lat: slice, lon: slice) -> None:
    files = scan_files([str(path) for path in three_files])
    found = Lookup(files, built_in_table("cam5"), None).find(Field("TMQ"))
    assert found is not None
    file_of, step_of = np.array([0, 0, 0, 1, 2, 2], np.int32), np.array([0, 1, 2, 0, 0, 1], np.int32)
    series = Series("TMQ", files, found.slots, file_of, step_of, np.arange(6))
    assert (series.shape, series.dtype, series.ndim) == ((6, 7, 8), np.float32, 3)
    np.testing.assert_array_equal(series[time, lat, lon], VALUES[time, lat, lon])
    np.testing.assert_array_equal(series[time], VALUES[time])


def test_only_the_files_of_the_times_wanted_are_read(three_files: list[Path]) -> None:
    ds = open_cam5(three_files)
    three_files[0].unlink()
    np.testing.assert_array_equal(ds["TMQ"][3:], VALUES[3:])
    with pytest.raises(InputError, match=r"0\.nc: variable TMQ cannot be read"):
        ds["TMQ"][2:].load()


def test_a_dataset_passes_to_another_process_by_pickling(three_files: list[Path]) -> None:
    ds = pickle.loads(pickle.dumps(open_cam5(three_files)))
    np.testing.assert_array_equal(ds["TMQ"], VALUES)


def _send_values(end: Connection, ds: xr.Dataset) -> None:
    end.send({name: variable.values for name, variable in ds.load(scheduler="sync").items()})


def test_a_forked_process_reads_files_of_every_format_that_its_parent_reads_too(
    write_file: WriteFile, write_grib: WriteFile, tmp_path: Path
) -> None:
    netcdf = write_file("a.nc", {"msl": (101300.0, "Pa")})
    grib = write_grib("b.grib", [{"paramId": 167, "values": 288.15}])
    open_cam5(write_file("c.nc", {"TMQ": (7.0, UNITS)})).rename(TMQ="tcwv").to_zarr(tmp_path / "c.zarr", zarr_format=2)
    ds = open_fields([netcdf, grib, tmp_path / "c.zarr"], source="era5")
    expected = ds.compute()
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=_send_values, args=(there, ds))
    process.start()
    try:
        again = ds.compute()
        assert here.poll(60), "the forked process hangs"
        received = here.recv()
    finally:
        process.kill()
        process.join()
    assert again.identical(expected)
    assert set(received) == {"TMQ", "PSL", "TREFHT", "ZBOT"}
    for name, values in received.items():
        np.testing.assert_array_equal(values, expected[name])


def test_the_graph_grows_with_the_chunks_and_not_with_what_a_file_holds(three_files: list[Path]) -> None:
    ds = open_cam5(three_files)
    assert len(dict(ds["TMQ"].data.dask)) <= 6 + 2
    # The times are not in it: they may be many.
    assert len(pickle.dumps(ds["TMQ"].data)) < 20_000


def test_a_step_without_any_value_is_refused_by_its_time_when_it_is_read(write_file: WriteFile) -> None:
    values = VALUES.copy()
    values[2], values[3, 0] = np.nan, np.nan
    path = write_file("a.nc", {"TMQ": (values, UNITS)}, times=np.datetime64("2001-01-01") + np.arange(6))
    ds = open_cam5(path)
    assert np.isnan(ds["TMQ"][3:].values).sum() == 8
    with pytest.raises(InputError, match=r"a\.nc: variable TMQ has no value at all at 2001-01-03.*all 56 are missing"):
        ds["TMQ"].load()


def test_conversion_is_done_in_double_precision(write_file: WriteFile) -> None:
    packing = {"dtype": "int16", "scale_factor": 0.01, "add_offset": 15.0, "_FillValue": -32767}
    celsius = np.round(np.linspace(-60.0, 40.0, 56).reshape(7, 8), 2)
    path = write_file("a.nc", {"TS": (celsius, "degC")}, encoding={"TS": packing})
    # float32 kelvin of what is stored, rounded once: within half a unit in the last place.
    exact = np.round((celsius - 15.0) * 100.0) * 0.01 + 15.0 + 273.15
    np.testing.assert_array_equal(open_cam5(path)["TS"][0], exact.astype(np.float32))
