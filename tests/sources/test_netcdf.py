import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import cftime
import dask
import netCDF4
import numpy as np
import pytest
import xarray as xr

from climseg.errors import InputError
from climseg.sources import netcdf
from climseg.sources.open import open_fields

WriteFile = Callable[..., Path]
open_cam5 = partial(open_fields, source="cam5")
UNITS = "kg m-2"


def _by_hand(path: Path, steps: int = 2, **attributes: str) -> tuple[netCDF4.Dataset, Any]:
    """A file of netCDF4's own with axes of time, lat (3) and lon (4), still open, and its time variable."""
    file = netCDF4.Dataset(path, "w")
    for name, values in (("time", range(steps)), ("lat", [-10.0, 0.0, 10.0]), ("lon", [0.0, 90.0, 180.0, 270.0])):
        file.createDimension(name, len(values))
        file.createVariable(name, "f8", (name,))[:] = list(values)
    file["time"].setncatts({"units": "days since 2001-01-01"} | attributes)
    return file, file["time"]


@pytest.mark.parametrize("format", ["NETCDF3_CLASSIC", "NETCDF3_64BIT", "NETCDF4"])
@pytest.mark.parametrize("share", [0.99, 0.5, 0.05])
def test_a_truncated_file_is_refused_and_never_read_as_zeros(write_file: WriteFile, format: str, share: float) -> None:
    path = write_file("a.nc", {"TMQ": (1.0, UNITS)}, times=["2001-01-01", "2001-01-02"], format=format)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(InputError, match=f"{path}.*(truncated|damaged)"):
        open_cam5(path)


@pytest.mark.parametrize(
    ("content", "said"), [(b"\x89HDF\r\n\x1a\nand no more", "may be damaged"), (b"CDF\x01\x00\x00", "truncated")]
)
def test_a_file_that_ends_after_its_first_bytes_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "a.nc"
    path.write_bytes(content)
    with pytest.raises(InputError, match=f"{path}.*{said}"):
        open_cam5(path)


def test_a_chunk_damaged_inside_the_file_is_named_when_it_is_read(write_file: WriteFile) -> None:
    values = np.random.default_rng(0).normal(size=(40, 7, 8)).astype(np.float32)
    times = np.datetime64("2001-01-01") + np.arange(40)
    path = write_file("a.nc", {"TMQ": (values, UNITS)}, times=times, encoding={"TMQ": {"zlib": True}})
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 2000] = bytes(2000)
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"a\.nc: variable TMQ cannot be read"):
        open_cam5(path)["TMQ"].compute()


def test_opening_reads_no_field_and_keeps_no_file_open(write_file: WriteFile) -> None:
    path = write_file("a.nc", {"TMQ": (1.0, UNITS)})
    ds = open_cam5(path)
    ds["TMQ"].compute()
    assert path not in [p.readlink() for p in Path("/proc/self/fd").iterdir() if p.is_symlink()]
    path.unlink()
    with pytest.raises(InputError, match=r"a\.nc: variable TMQ cannot be read.*removed"):
        ds["TMQ"].compute()


def test_packed_values_are_unpacked_and_missing_ones_become_nan(write_file: WriteFile) -> None:
    packing = {"dtype": "int16", "scale_factor": 0.5, "add_offset": 101000.0, "_FillValue": -32767}
    values = np.full((7, 8), 101325.0, np.float32)
    values[0, 0] = np.nan
    ps = open_cam5(write_file("b.nc", {"PS": (values, "Pa")}, encoding={"PS": packing}))["PS"].values[0]
    assert np.isnan(ps[0, 0])
    np.testing.assert_array_equal(ps.ravel()[1:], 101325.0)


def test_a_missing_value_is_missing_beside_a_fill_value_of_another_number(tmp_path: Path) -> None:
    file, _ = _by_hand(tmp_path / "a.nc", steps=1)
    tmq = file.createVariable("TMQ", "f4", ("time", "lat", "lon"), fill_value=1e20)
    tmq.setncatts({"units": UNITS, "missing_value": np.float32(-999.0)})
    tmq[:] = np.array([1e20, -999.0, 7.0, 8.0])
    file.close()
    np.testing.assert_array_equal(open_cam5(tmp_path / "a.nc")["TMQ"][0, 0], [np.nan, np.nan, 7.0, 8.0])


def test_unsigned_numbers_stored_as_signed_ones_are_read_as_unsigned(tmp_path: Path) -> None:
    file, _ = _by_hand(tmp_path / "a.nc", steps=1)
    tmq = file.createVariable("TMQ", "i1", ("time", "lat", "lon"), fill_value=-1)
    tmq.set_auto_maskandscale(False)
    tmq.setncatts({"units": UNITS, "_Unsigned": "true", "scale_factor": 0.5})
    tmq[:] = np.array([0, 127, -128, -1], np.int8)  # as unsigned: 0, 127, 128 and 255, which means missing
    file.close()
    np.testing.assert_array_equal(open_cam5(tmp_path / "a.nc")["TMQ"][0, 0], [0.0, 63.5, 64.0, np.nan])


def test_values_that_were_never_written_are_missing(tmp_path: Path) -> None:
    file, _ = _by_hand(tmp_path / "a.nc")
    tmq = file.createVariable("TMQ", "f4", ("time", "lat", "lon"))
    tmq.units = UNITS
    tmq[0] = 7.0
    tmq[1, 0] = 7.0  # the run stopped within the second step
    file.close()
    values = open_cam5(tmp_path / "a.nc")["TMQ"].values
    assert (values[0] == 7.0).all()
    assert np.isnan(values[1, 1:]).all()


def test_variables_of_groups_are_read_by_their_path(tmp_path: Path, write_table: Callable[..., Path]) -> None:
    file, _ = _by_hand(tmp_path / "a.nc", steps=1)
    variable = file.createGroup("surface").createGroup("pressure").createVariable("mslp", "f4", ("time", "lat", "lon"))
    variable.units = "hPa"
    variable[:] = 1000.0
    file.close()
    ds = open_fields(tmp_path / "a.nc", source="generic", table=write_table({"PSL": "surface/pressure/mslp"}))
    assert (ds["PSL"] == 100000.0).all()


def test_a_file_without_a_calendar_is_in_the_standard_one(tmp_path: Path) -> None:
    file, time = _by_hand(tmp_path / "a.nc", steps=3, units="days since 2000-01-01")
    time[:] = [58, 59, 60]
    file.createVariable("TMQ", "f4", ("time", "lat", "lon")).units = UNITS
    file.close()
    expected = np.array(["2000-02-28", "2000-02-29", "2000-03-01"], "datetime64[ns]")
    np.testing.assert_array_equal(open_cam5(tmp_path / "a.nc")["time"].values, expected)


def test_a_noleap_calendar_gives_dates_without_leap_days(tmp_path: Path) -> None:
    file, time = _by_hand(tmp_path / "a.nc", units="days since 2000-01-01", calendar="noleap")
    time[:] = [58, 59]
    file.createVariable("TMQ", "f4", ("time", "lat", "lon")).units = UNITS
    file.close()
    expected = [cftime.DatetimeNoLeap(2000, 2, 28), cftime.DatetimeNoLeap(2000, 3, 1)]
    assert list(open_cam5(tmp_path / "a.nc")["time"].values) == expected


@pytest.mark.parametrize(
    ("units", "calendar"), [("fortnights since 2000-01-01", "standard"), ("days since x", "noleap")]
)
def test_a_time_that_cannot_be_decoded_is_refused_with_its_units(tmp_path: Path, units: str, calendar: str) -> None:
    file, _ = _by_hand(tmp_path / "a.nc", units=units, calendar=calendar)
    file.createVariable("TMQ", "f4", ("time", "lat", "lon")).units = UNITS
    file.close()
    with pytest.raises(InputError, match=rf"a\.nc: variable time in '{units}'"):
        open_cam5(tmp_path / "a.nc")


def test_coordinates_are_read_at_once_and_fields_are_not(write_file: WriteFile) -> None:
    path = write_file(
        "a.nc",
        {"TMQ": (1.0, UNITS), "per_step": (np.arange(2.0), "1", ("time",)), "P0": (1e5, "Pa", ())},
        times=["2001-01-01", "2001-01-02"],
        extra={"expver": np.array(["0001", "0005"], object)},
        attributes={"": {"source": "CAM", "history": "made today"}},
    )
    file = netcdf.scan(str(path))
    held = {name for name, variable in file.layout.variables.items() if variable.values is not None}
    assert held == {"lat", "lon", "P0", "expver"}
    assert list(file.layout.variables["expver"].values) == ["0001", "0005"]  # type: ignore[arg-type]
    # The history differs from file to file, and would keep their layouts apart.
    assert file.layout.attributes == {"source": "CAM"}
    assert file.time is not None
    assert file.time.values.tolist() == [0, 1]


def test_reading_is_safe_with_the_threaded_scheduler_while_files_are_opened(write_file: WriteFile) -> None:
    names = ["TMQ", "U850", "V850", "PS", "PSL", "T200", "T500", "TS"]
    steps = np.arange(20)
    units = {"TMQ": UNITS, "U850": "m s-1", "V850": "m s-1", "PS": "Pa", "PSL": "Pa"}
    fields = {name: (steps.reshape(-1, 1, 1) + 100.0 * n, units.get(name, "K")) for n, name in enumerate(names)}
    encoding = {name: {"zlib": True, "chunksizes": (1, 7, 8)} for name in names}
    path = write_file("a.nc", fields, times=np.datetime64("2001-01-01") + steps, encoding=encoding)
    stop = threading.Event()
    failures: list[Exception] = []

    def open_again_and_again() -> None:
        try:
            while not stop.is_set():
                open_cam5(path, channels=["PS"])["PS"][5].load(scheduler="sync")
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=open_again_and_again) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        with dask.config.set(scheduler="threads", num_workers=8):
            for _ in range(4):
                ds = open_cam5(path, channels=names).load()
                for n, name in enumerate(names):
                    np.testing.assert_array_equal(ds[name][:, 3, 3].values, steps + 100.0 * n)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not failures


def test_reading_from_a_file_while_writing_to_another_does_not_block(write_file: WriteFile, tmp_path: Path) -> None:
    times = np.datetime64("2001-01-01") + np.arange(5)
    path = write_file("a.nc", {"TMQ": (3.0, UNITS)}, times=times)
    open_cam5(path).to_netcdf(tmp_path / "b.nc")
    with xr.open_dataset(tmp_path / "b.nc") as written:
        assert (written["TMQ"].values == 3.0).all()
