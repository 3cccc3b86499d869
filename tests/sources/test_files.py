import gzip
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cftime
import dask
import netCDF4
import numpy as np
import pytest
import xarray as xr

from climseg.errors import InputError
from climseg.sources.files import expand_paths, open_netcdf

WriteFile = Callable[..., Path]


def test_a_pattern_gives_its_files_once_and_in_the_order_of_names(tmp_path: Path) -> None:
    for name in ("b.nc", "a.nc", "c.txt"):
        (tmp_path / name).touch()
    (tmp_path / "folder.nc").mkdir()
    found = expand_paths([f"{tmp_path}/*.nc", f"{tmp_path}/a.nc"])
    assert found == [tmp_path / "a.nc", tmp_path / "b.nc"]


def test_paths_start_from_the_working_directory_and_from_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.nc").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert expand_paths("a.nc") == expand_paths("*.nc") == expand_paths("~/?.nc") == [tmp_path / "a.nc"]


def test_a_file_whose_name_holds_brackets_is_found(tmp_path: Path) -> None:
    (tmp_path / "a[1].nc").touch()
    assert expand_paths(tmp_path / "a[1].nc") == [tmp_path / "a[1].nc"]


@pytest.mark.parametrize(
    ("input", "said"),
    [
        ("{}/*.nc", "No file matches '{}/*.nc'"),
        ("{}", "is a folder; give the files in it, for example '{}/*.nc'"),
        ("{}/storm_2001.nc", "There is no file 'storm_2001.nc' in {}; did you mean 'storm_2000.txt'"),
        ("{}/nowhere/a.nc", "nor does its folder {}/nowhere"),
        ([], "an empty list"),
        ("", "an empty path"),
    ],
)
def test_input_that_names_no_file_is_refused_with_the_place_that_was_searched(
    tmp_path: Path, input: str | list[str], said: str
) -> None:
    (tmp_path / "storm_2000.txt").touch()
    with pytest.raises(InputError) as error:
        expand_paths(input.format(tmp_path) if isinstance(input, str) else input)
    assert said.format(tmp_path) in str(error.value)


def _zip(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.nc", b"CDF")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"time,lat,lon\n1,2,3\n", "text file that begins with 'time,lat,lon"),
        (b"<!DOCTYPE html>\n<html>", "web page"),
        (b"GRIB\x00\x00\x00\x02", "GRIB"),
        (gzip.compress(b"CDF\x01"), "gzip"),
        (b"\x00\x01\x02\x03", "no netCDF file"),
        (b"\x89HDF\r\n\x1a\nand no more", "may be damaged"),
        (b"CDF\x01\x00\x00", "truncated"),
    ],
)
def test_the_first_bytes_say_what_a_file_named_nc_really_is(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "a.nc"
    path.write_bytes(content)
    with pytest.raises(InputError, match=f"{path}.*{said}"):
        open_netcdf(path)


def test_a_zip_archive_renamed_to_nc_is_recognised(tmp_path: Path) -> None:
    _zip(tmp_path / "a.nc")
    with pytest.raises(InputError, match=r"a\.nc: is a zip archive"):
        open_netcdf(tmp_path / "a.nc")


def test_a_zarr_store_is_named_as_one(tmp_path: Path) -> None:
    (tmp_path / "a.zarr").mkdir()
    (tmp_path / "a.zarr" / ".zgroup").touch()
    (path,) = expand_paths(f"{tmp_path}/*.zarr")
    with pytest.raises(InputError, match="is a Zarr store"):
        open_netcdf(path)


@pytest.mark.parametrize("format", ["NETCDF3_CLASSIC", "NETCDF3_64BIT", "NETCDF4"])
@pytest.mark.parametrize("share", [0.99, 0.5, 0.05])
def test_a_truncated_file_is_refused_and_never_read_as_zeros(write_file: WriteFile, format: str, share: float) -> None:
    path = write_file("a.nc", {"TMQ": (1.0, "kg m-2")}, times=["2001-01-01", "2001-01-02"], format=format)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(InputError, match=f"{path}.*(truncated|damaged)"):
        open_netcdf(path)


def test_a_chunk_damaged_inside_the_file_is_named_when_it_is_read(write_file: WriteFile) -> None:
    values = np.random.default_rng(0).normal(size=(40, 7, 8)).astype(np.float32)
    times = np.datetime64("2001-01-01") + np.arange(40)
    path = write_file("a.nc", {"TMQ": (values, "kg m-2")}, times=times, encoding={"TMQ": {"zlib": True}})
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 2000] = bytes(2000)
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"a\.nc: variable TMQ cannot be read"):
        open_netcdf(path)["TMQ"].compute()


def test_opening_reads_no_field_and_keeps_no_file_open(write_file: WriteFile) -> None:
    path = write_file("a.nc", {"TMQ": (1.0, "kg m-2")})
    ds = open_netcdf(path)
    ds["TMQ"].compute()
    assert path not in [p.readlink() for p in Path("/proc/self/fd").iterdir() if p.is_symlink()]
    path.unlink()
    with pytest.raises(InputError, match=r"a\.nc: variable TMQ cannot be read.*removed"):
        ds["TMQ"].compute()


@pytest.mark.parametrize(
    ("encoding", "steps"), [({"contiguous": True}, 1), ({"chunksizes": (4, 2, 3)}, 4), ({"chunksizes": (12, 7, 8)}, 12)]
)
def test_dask_chunks_follow_the_stored_ones_in_time_and_are_whole_in_space(
    write_file: WriteFile, encoding: dict[str, Any], steps: int
) -> None:
    times = np.datetime64("2001-01-01") + np.arange(12)
    path = write_file("a.nc", {"TMQ": (1.0, "kg m-2")}, times=times, encoding={"TMQ": encoding})
    assert open_netcdf(path)["TMQ"].data.chunksize == (steps, 7, 8)


def test_a_file_stored_as_one_chunk_is_not_read_as_one(tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    with netCDF4.Dataset(path, "w") as file:  # 2 GiB on paper, no value written
        for name, size in (("time", 512), ("latitude", 1024), ("longitude", 1024)):
            file.createDimension(name, size)
        dims = ("time", "latitude", "longitude")
        file.createVariable("t", "f4", dims, chunksizes=(512, 64, 64), zlib=True)
    assert open_netcdf(path)["t"].data.chunksize == (32, 1024, 1024)  # 128 MiB


def test_one_level_is_read_without_the_others(write_file: WriteFile) -> None:
    dims = ("time", "level", "lat", "lon")
    path = write_file("a.nc", {"u": (1.0, "m s-1", dims)}, extra={"level": [200, 850]})
    assert open_netcdf(path)["u"].data.chunksize == (1, 1, 7, 8)


def test_reversed_and_strided_reading_gives_the_values_that_netcdf4_gives(write_file: WriteFile) -> None:
    values = np.arange(3 * 7 * 8, dtype=np.float32).reshape(3, 7, 8)
    path = write_file("a.nc", {"TMQ": (values, "kg m-2")}, times=["2001-01-01", "2001-01-02", "2001-01-03"])
    field = open_netcdf(path)["TMQ"]
    np.testing.assert_array_equal(field[::-1, ::-1, ::3].values, values[::-1, ::-1, ::3])
    np.testing.assert_array_equal(field[[2, 0], :, [5, 1]].values, values[[2, 0]][:, :, [5, 1]])


def test_packed_values_are_unpacked_and_missing_ones_become_nan(write_file: WriteFile) -> None:
    packing = {"dtype": "int16", "scale_factor": 0.5, "add_offset": 100.0, "_FillValue": -32767}
    path = write_file("a.nc", {"PS": (101325.0, "Pa"), "sst": (np.nan, "K")}, encoding={"sst": packing})
    assert np.isnan(open_netcdf(path)["sst"].values).all()
    packing["add_offset"] = 101000.0
    path = write_file("b.nc", {"PS": (101325.0, "Pa")}, encoding={"PS": packing})
    np.testing.assert_array_equal(open_netcdf(path)["PS"].values, 101325.0)


def test_values_that_were_never_written_are_missing(tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    with netCDF4.Dataset(path, "w") as file:
        for name, size in (("time", 2), ("lat", 3), ("lon", 4)):
            file.createDimension(name, size)
        file.createVariable("TMQ", "f4", ("time", "lat", "lon"))[0] = 7.0  # the run stopped after one step
    tmq = open_netcdf(path)["TMQ"].values
    assert (tmq[0] == 7.0).all()
    assert np.isnan(tmq[1]).all()


def _write_times(path: Path, values: list[float], **attributes: str) -> Path:
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("time", len(values))
        time = file.createVariable("time", "f8", ("time",))
        time[:] = values
        time.setncatts(attributes)
    return path


def test_a_file_without_a_calendar_is_in_the_standard_one(tmp_path: Path) -> None:
    path = _write_times(tmp_path / "a.nc", [58, 59, 60], units="days since 2000-01-01")
    expected = np.array(["2000-02-28", "2000-02-29", "2000-03-01"], "datetime64[ns]")
    np.testing.assert_array_equal(open_netcdf(path)["time"].values, expected)


def test_a_noleap_calendar_gives_dates_without_leap_days(tmp_path: Path) -> None:
    path = _write_times(tmp_path / "a.nc", [58, 59], units="days since 2000-01-01", calendar="noleap")
    assert list(open_netcdf(path)["time"].values) == [
        cftime.DatetimeNoLeap(2000, 2, 28),
        cftime.DatetimeNoLeap(2000, 3, 1),
    ]


@pytest.mark.parametrize(
    ("units", "calendar"), [("fortnights since 2000-01-01", "standard"), ("days since x", "noleap")]
)
def test_a_time_that_cannot_be_decoded_is_refused_with_its_units(tmp_path: Path, units: str, calendar: str) -> None:
    path = _write_times(tmp_path / "a.nc", [1.0], units=units, calendar=calendar)
    with pytest.raises(InputError, match=rf"a\.nc: variable time in '{units}'"):
        open_netcdf(path)


def test_reading_is_safe_with_the_threaded_scheduler_while_files_are_opened(write_file: WriteFile) -> None:
    names = [f"v{n}" for n in range(8)]
    steps = np.arange(20)
    fields = {name: (steps.reshape(-1, 1, 1) + 100.0 * n, "m s-1") for n, name in enumerate(names)}
    encoding = {name: {"zlib": True, "chunksizes": (1, 7, 8)} for name in names}
    times = np.datetime64("2001-01-01") + steps
    path = write_file("a.nc", fields, times=times, encoding=encoding)
    stop = threading.Event()
    failures: list[Exception] = []

    def open_again_and_again() -> None:
        try:
            while not stop.is_set():
                open_netcdf(path)["v3"][5].load()
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=open_again_and_again) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        with dask.config.set(scheduler="threads", num_workers=8):
            for _ in range(4):
                ds = open_netcdf(path).load()
                for n, name in enumerate(names):
                    np.testing.assert_array_equal(ds[name][:, 3, 3].values, steps + 100.0 * n)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not failures


def test_reading_from_a_file_while_writing_to_another_does_not_block(write_file: WriteFile, tmp_path: Path) -> None:
    times = np.datetime64("2001-01-01") + np.arange(5)
    path = write_file("a.nc", {"TMQ": (3.0, "kg m-2")}, times=times)
    open_netcdf(path)[["TMQ"]].to_netcdf(tmp_path / "b.nc")
    with xr.open_dataset(tmp_path / "b.nc") as written:
        assert (written["TMQ"].values == 3.0).all()
