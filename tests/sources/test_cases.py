"""What users of such tools reported, case by case: each test is named after its number and names the report.

The numbers are those of the project's list of reports; a report is "project#number" on GitHub.
"""

import multiprocessing
import threading
import zipfile
from collections.abc import Callable, Iterator
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
from climseg.masks import MaskWriter, open_masks
from climseg.sources import series
from climseg.sources.open import open_fields

WriteFile = Callable[..., Path]
WriteGrib = Callable[..., Path]

TMQ = (30.0, "kg m-2")
PSL = (101300.0, "Pa")
ERA5_DIMS = ("valid_time", "latitude", "longitude")


def _hours(*hours: float) -> Any:
    return np.datetime64("2001-01-01", "ns") + np.array([int(3600 * h) for h in hours]).astype("timedelta64[s]")


def _steps(values: Any, units: str = "kg m-2") -> tuple[Any, str]:
    """A field that has one value at each time."""
    return np.asarray(values, dtype=np.float32).reshape(-1, 1, 1), units


# 1. TECA#635: variables drift apart in time because input files have unequal time axes.


def test_01_variables_that_drift_apart_in_time_are_refused_by_name(write_file: WriteFile) -> None:
    a = write_file("a.nc", {"TMQ": TMQ}, times=_hours(0, 6, 12))
    b = write_file("b.nc", {"PSL": PSL}, times=_hours(0, 12))
    with pytest.raises(InputError) as error:
        open_fields([a, b])
    assert f"Variable PSL has no value at 2001-01-01 06:00:00, where {a} has TMQ" in str(error.value)


def test_01_time_axes_of_equal_length_and_unequal_times_are_refused_too(write_file: WriteFile) -> None:
    a = write_file("a.nc", {"TMQ": TMQ}, times=_hours(0, 6, 12))
    b = write_file("b.nc", {"PSL": PSL}, times=_hours(0, 6, 13))
    with pytest.raises(InputError, match=r"Variable PSL has no value at 2001-01-01 12:00:00, where .*a\.nc has TMQ"):
        open_fields([a, b])


def test_01_a_variable_left_out_by_name_may_have_other_times(write_file: WriteFile) -> None:
    a = write_file("a.nc", {"TMQ": TMQ}, times=_hours(0, 6, 12))
    b = write_file("b.nc", {"PSL": PSL}, times=_hours(0, 12))
    assert open_fields([a, b], channels=["PSL"]).sizes["time"] == 2


# 2. TECA#572: a file without a calendar attribute beside "standard" ones.


def _counting_days(path: Path, days: list[float], since: str = "2000-01-01", **attributes: str) -> Path:
    """TMQ that is the number of the day since a date, on a time axis with these attributes."""
    with netCDF4.Dataset(path, "w") as file:
        for name, size in (("time", len(days)), ("lat", 2), ("lon", 3)):
            file.createDimension(name, size)
        time = file.createVariable("time", "f8", ("time",))
        time[:] = days
        time.setncatts({"units": f"days since {since}"} | attributes)
        file.createVariable("lat", "f8", ("lat",))[:] = [0.0, 10.0]
        file.createVariable("lon", "f8", ("lon",))[:] = [0.0, 10.0, 20.0]
        tmq = file.createVariable("TMQ", "f4", ("time", "lat", "lon"))
        tmq.units = "kg m-2"
        tmq[:] = np.reshape(days, (-1, 1, 1))
    return path


@pytest.mark.parametrize("other", ["standard", "gregorian", "proleptic_gregorian"])
def test_02_a_file_without_a_calendar_is_in_the_standard_one(tmp_path: Path, other: str) -> None:
    without = _counting_days(tmp_path / "a.nc", [58, 59])
    beside = _counting_days(tmp_path / "b.nc", [60], calendar=other)
    ds = open_fields([without, beside])
    # 2000 is a leap year: day 59 after January 1 is February 29.
    np.testing.assert_array_equal(ds["time"], np.array(["2000-02-28", "2000-02-29", "2000-03-01"], "datetime64[ns]"))
    np.testing.assert_array_equal(ds["TMQ"][:, 0, 0], [58, 59, 60])


# 3. TECA#185: an arbitrary list of files loses its order.


def test_03_times_and_not_names_or_the_list_decide_the_order(write_file: WriteFile) -> None:
    hours = {"c.nc": [0, 6], "a.nc": [18], "b.nc": [12]}
    paths = [write_file(name, {"TMQ": _steps(h)}, times=_hours(*h)) for name, h in hours.items()]
    for order in ([0, 1, 2], [2, 1, 0], [1, 2, 0]):
        ds = open_fields([paths[k] for k in order])
        np.testing.assert_array_equal(ds["time"], _hours(0, 6, 12, 18))
        np.testing.assert_array_equal(ds["TMQ"][:, 0, 0], [0, 6, 12, 18])


def test_03_a_time_that_two_files_hold_is_refused_with_both_names(write_file: WriteFile) -> None:
    a = write_file("a.nc", {"TMQ": TMQ}, times=_hours(0, 6))
    b = write_file("b.nc", {"TMQ": TMQ}, times=_hours(6, 12))
    with pytest.raises(InputError) as error:
        open_fields([b, a])
    assert f"The time 2001-01-01 06:00:00 of variable TMQ is in both {a} and {b}" in str(error.value)


# 4. tempestextremes#9: each file's time counts from its own start.


def test_04_each_file_is_decoded_by_its_own_units(tmp_path: Path) -> None:
    paths = [
        _counting_days(tmp_path / "a.nc", [0, 1], since="2000-01-01"),
        _counting_days(tmp_path / "b.nc", [0, 1], since="2000-01-03"),
    ]
    ds = open_fields(paths)
    days = ["2000-01-01", "2000-01-02", "2000-01-03", "2000-01-04"]
    np.testing.assert_array_equal(ds["time"], np.array(days, "datetime64[ns]"))
    ds.to_netcdf(tmp_path / "out.nc")
    np.testing.assert_array_equal(open_fields(tmp_path / "out.nc")["time"], ds["time"])


# 5. tempestextremes#36: a file without time.


def test_05_a_file_without_time_is_refused_with_the_option_that_supplies_it(write_file: WriteFile) -> None:
    path = write_file("a.nc", {"TMQ": TMQ}, times=None)
    with pytest.raises(InputError) as error:
        open_fields(path)
    assert str(error.value).startswith(f"{path}: has no time coordinate (dimensions: lat of 7, lon of 8)")
    assert "source.time=2011-10-11T00" in str(error.value)
    ds = open_fields(path, time="2011-10-11T00")
    np.testing.assert_array_equal(ds["time"], [np.datetime64("2011-10-11T00", "ns")])
    assert (ds["TMQ"] == 30.0).all()


# 6. atlite#190: ERA5 and ERA5T in one file (expver).


@pytest.mark.parametrize("versions", [[1, 5], [5, 1]])
def test_06_final_values_stand_where_they_are_preliminary_ones_elsewhere_and_never_a_sum(
    write_file: WriteFile, versions: list[int]
) -> None:
    final, preliminary = [280.0, np.nan, 282.0], [np.nan, 291.0, 292.0]
    columns = [final if version == 1 else preliminary for version in versions]
    path = write_file(
        "a.nc",
        {"t2m": (np.array(columns).T.reshape(3, 2, 1, 1), "K", ("time", "expver", "latitude", "longitude"))},
        times=_hours(0, 1, 2),
        dims=("time", "latitude", "longitude"),
        extra={"expver": versions},
    )
    ds = open_fields(path, source="era5")
    np.testing.assert_array_equal(ds["TREFHT"][:, 0, 0], np.float32([280.0, 291.0, 282.0]))


# 7. globsim#156: a zip renamed .nc.


def test_07_a_zip_archive_under_the_name_of_a_netcdf_file_is_known_by_its_first_bytes(
    write_file: WriteFile, tmp_path: Path
) -> None:
    instant = write_file("instant.nc", {"t2m": (280.0, "K")}, dims=ERA5_DIMS)
    rain = write_file("accumulated.nc", {"tp": (3.6e-3, "m")}, dims=ERA5_DIMS)
    path = tmp_path / "download.nc"
    with zipfile.ZipFile(path, "w") as archive:
        for member in (instant, rain):
            archive.write(member, f"data_stream-oper_stepType-{member.name}")
    ds = open_fields(path, accumulation_hours=1)
    assert (ds["TREFHT"] == 280.0).all()
    np.testing.assert_allclose(ds["PRECT"], 1e-6, rtol=1e-6)  # 3.6 mm in an hour


# 8. xarray#4282, #5739, #8135: int16 files with different scale factors are corrupted when written together.


def test_08_packed_files_of_different_scales_survive_being_written_together(
    write_file: WriteFile, tmp_path: Path
) -> None:
    expected = []
    for day, (scale, offset) in enumerate([(0.5, 100000.0), (0.01, 50000.0)], start=1):
        packing = {"dtype": "int16", "scale_factor": scale, "add_offset": offset, "_FillValue": -32767}
        values = offset + scale * np.arange(-28, 28).reshape(7, 8)
        write_file(f"{day}.nc", {"PSL": (values, "Pa")}, times=[f"2001-01-0{day}"], encoding={"PSL": packing})
        expected.append(values)
    ds = open_fields(f"{tmp_path}/*.nc")
    np.testing.assert_allclose(ds["PSL"], expected, rtol=1e-7)
    assert ds["PSL"].encoding == {}
    ds.to_netcdf(tmp_path / "out.nc4")
    with xr.open_dataset(tmp_path / "out.nc4") as written:
        np.testing.assert_array_equal(written["PSL"], ds["PSL"])


# 9. xarray#2966: a slice on a descending latitude is silently empty.


def test_09_a_slice_from_south_to_north_has_its_rows_whatever_order_the_file_has(write_file: WriteFile) -> None:
    lat = np.linspace(90.0, -90.0, 7)
    path = write_file("a.nc", {"TMQ": (lat.reshape(7, 1) + 100.0, "kg m-2")}, lat=lat)
    box = open_fields(path)["TMQ"].sel(lat=slice(-30, 60))
    np.testing.assert_array_equal(box["lat"], [-30, 0, 30, 60])
    np.testing.assert_array_equal(box[0, :, 0], [70, 100, 130, 160])


@pytest.mark.parametrize("period", [["2001-01-03", "2001-01-01"], ["2002-01-01", "2002-02-01"]])
def test_09_a_period_without_any_time_is_refused_and_not_empty(write_file: WriteFile, period: list[str]) -> None:
    path = write_file("a.nc", {"TMQ": TMQ}, times=_hours(0, 24, 48))
    with pytest.raises(
        InputError, match=r"no time of the input lies in it; the input goes from 2001-01-01 .* to 2001-"
    ):
        open_fields(path, period=period)


# 10. xcdat#427, xarray#2116: the calendar changes between files.


@pytest.mark.parametrize("other", ["standard", "360_day", "julian"])
def test_10_files_of_two_calendars_are_refused_by_name(tmp_path: Path, other: str) -> None:
    a = _counting_days(tmp_path / "a.nc", [0, 1], calendar="noleap")
    b = _counting_days(tmp_path / "b.nc", [2, 3], calendar=other)
    with pytest.raises(InputError) as error:
        open_fields([a, b])
    assert f"{a} has the calendar noleap and {b} has {other}" in str(error.value)


def test_10_names_of_one_calendar_are_one(tmp_path: Path) -> None:
    a = _counting_days(tmp_path / "a.nc", [58], calendar="noleap")
    b = _counting_days(tmp_path / "b.nc", [59], calendar="365_day")
    days = [cftime.DatetimeNoLeap(2000, 2, 28), cftime.DatetimeNoLeap(2000, 3, 1)]
    assert list(open_fields([a, b])["time"].values) == days


@pytest.mark.filterwarnings("ignore:Unable to decode time axis into full numpy.datetime64")
@pytest.mark.parametrize("year", [1500, 2400])
def test_10_years_that_datetime64_lacks_are_refused_beside_others(tmp_path: Path, year: int) -> None:
    far = _counting_days(tmp_path / "a.nc", [0, 1], since=f"{year}-01-01", calendar="standard")
    near = _counting_days(tmp_path / "b.nc", [0, 1], since="2000-01-01", calendar="standard")
    assert list(open_fields(far)["time"].values) == [cftime.DatetimeGregorian(year, 1, day) for day in (1, 2)]
    with pytest.raises(InputError) as error:
        open_fields([far, near])
    assert f"{far} has the calendar standard in years before 1582 or after 2262 and {near} has" in str(error.value)


# 11. xarray#8298, #8045: noleap dates.


def test_11_noleap_dates_survive_from_files_to_masks(write_file: WriteFile, tmp_path: Path) -> None:
    days = [cftime.DatetimeNoLeap(2000, 2, 28, 12), cftime.DatetimeNoLeap(2000, 3, 1, 12)]
    ds = open_fields(write_file("a.nc", {"TMQ": TMQ}, times=days))
    assert list(ds["time"].values) == days
    with MaskWriter(tmp_path / "masks.nc", ds, {}, "none", "climseg test") as writer:
        for index in range(2):
            writer.write(index, np.zeros((7, 8), np.int8))
    assert list(open_masks(tmp_path / "masks.nc")["time"].values) == days
    with netCDF4.Dataset(tmp_path / "masks.nc") as file:
        assert file["time"].calendar == "noleap"


# 12. cfgrib#13, #66: variables silently skipped because levels or steps differ.

T2M, MSL, U, T = 167, 151, 131, 130  # ecCodes' numbers of parameters


def _on_level(parameter: int, level: int, value: float, hour: int) -> dict[str, Any]:
    keys = {"sample": "regular_ll_pl_grib2", "paramId": parameter, "level": level, "dataTime": 100 * hour}
    return keys | {"values": value}


def test_12_variables_on_unequal_levels_are_all_there(write_grib: WriteGrib) -> None:
    messages = [{"paramId": MSL, "values": 101300.0, "dataTime": 100 * hour} for hour in (0, 6)]
    messages += [_on_level(U, level, level / 100.0, hour) for level in (850, 500, 200) for hour in (6, 0)]
    messages += [_on_level(T, level, level / 2.0, hour) for level in (500, 200) for hour in (0, 6)]
    ds = open_fields(write_grib("a.grib", messages), source="era5")
    assert list(ds.data_vars) == ["U850", "PSL", "T200", "T500"]
    for name, value in {"U850": 8.5, "PSL": 101300.0, "T200": 100.0, "T500": 250.0}.items():
        np.testing.assert_allclose(ds[name], value, rtol=1e-6, err_msg=name)
        assert ds[name].sizes["time"] == 2


def test_12_a_variable_that_lacks_a_step_is_an_error_and_not_skipped(write_grib: WriteGrib) -> None:
    messages = [{"paramId": MSL, "values": 101300.0, "dataTime": 100 * hour} for hour in (0, 6, 12)]
    messages += [_on_level(T, 500, 250.0, hour) for hour in (0, 12)]
    path = write_grib("a.grib", messages)
    with pytest.raises(
        InputError, match=r"Variable t at 500 hPa has no value at 2001-01-01 06:00:00, where .* has msl"
    ):
        open_fields(path, source="era5")
    with pytest.raises(InputError, match=r"T200 needs t at 200 hPa\. It has: msl, t at 500 hPa\."):
        open_fields(path, source="era5", channels=["T200"])


# 13. cfgrib#292: a stale index file beside the GRIB.


def test_13_no_index_is_read_or_written_beside_a_grib_file(write_grib: WriteGrib) -> None:
    path = write_grib("a.grib", [{"paramId": T2M, "values": 280.0}])
    stale = path.with_name("a.grib.5b7b6.idx")
    stale.write_bytes(b"an index of another file")
    np.testing.assert_allclose(open_fields(path)["TREFHT"], 280.0, rtol=1e-6)
    write_grib("a.grib", [{"paramId": T2M, "values": 290.0}, {"paramId": MSL, "values": 101300.0}])
    ds = open_fields(path)
    np.testing.assert_allclose(ds["TREFHT"], 290.0, rtol=1e-6)
    assert "PSL" in ds
    assert sorted(path.parent.iterdir()) == [path, stale]


# 14. xarray#4626: a time subset of a 26-year file allocates 85 GiB.


@pytest.fixture
def stored_reads(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[Any, ...]]]:
    """The parts of stored variables that are read from now on."""
    keys: list[tuple[Any, ...]] = []
    read = series.read_stored

    def counted(file: Any, name: str, key: tuple[Any, ...]) -> Any:
        keys.append(key)
        return read(file, name, key)

    monkeypatch.setattr(series, "read_stored", counted)
    yield keys


STEP = 20_000


@pytest.fixture
def long_file(tmp_path: Path) -> Path:
    """26 years of 6-hourly TMQ on a quarter of a degree, 147 GiB on paper; only one step was ever written."""
    path = tmp_path / "long.nc"
    with netCDF4.Dataset(path, "w") as file:
        for name, size in (("time", 26 * 365 * 4), ("lat", 721), ("lon", 1440)):
            file.createDimension(name, size)
        time = file.createVariable("time", "i4", ("time",))
        time.setncatts({"units": "hours since 1980-01-01", "calendar": "noleap"})
        time[:] = 6 * np.arange(26 * 365 * 4)
        file.createVariable("lat", "f8", ("lat",))[:] = np.linspace(-90.0, 90.0, 721)
        file.createVariable("lon", "f8", ("lon",))[:] = np.arange(1440) * 0.25
        tmq = file.createVariable("TMQ", "f4", ("time", "lat", "lon"), chunksizes=(1, 721, 1440), zlib=True)
        tmq.units = "kg m-2"
        tmq[STEP] = 30.0
    return path


def test_14_one_step_of_a_long_file_is_read_alone(long_file: Path, stored_reads: list[tuple[Any, ...]]) -> None:
    ds = open_fields(long_file)
    assert ds["TMQ"].nbytes > 140 * 2**30
    assert ds["TMQ"].data.chunksize == (1, 721, 1440)
    assert stored_reads == []
    day = cftime.DatetimeNoLeap(1980 + STEP // 1460, 1, 1) + STEP % 1460 * (
        cftime.DatetimeNoLeap(1980, 1, 1, 6) - cftime.DatetimeNoLeap(1980, 1, 1)
    )
    assert (ds["TMQ"].sel(time=day).values == 30.0).all()
    assert stored_reads == [(slice(STEP, STEP + 1), slice(None), slice(None))]


def test_14_a_subset_reads_the_stored_chunks_that_hold_it_and_no_others(
    write_file: WriteFile, stored_reads: list[tuple[Any, ...]]
) -> None:
    hours = np.arange(0, 6 * 1000, 6)
    path = write_file(
        "a.nc", {"TMQ": _steps(hours)}, times=_hours(*hours), encoding={"TMQ": {"chunksizes": (40, 7, 8)}}
    )
    ds = open_fields(path)
    assert ds["TMQ"].chunks[0] == (40,) * 25
    assert stored_reads == []
    subset = ds["TMQ"].isel(time=slice(75, 85))
    np.testing.assert_array_equal(subset[:, 3, 3], hours[75:85])
    assert sorted(key[0].start for key in stored_reads) == [40, 80]
    assert sum(key[0].stop - key[0].start for key in stored_reads) == 80


# 15. pytorch#11929: an HDF5 handle opened before workers start returns wrong data.


def _means(ds: xr.Dataset, steps: list[int]) -> list[float]:
    return [float(ds["TMQ"].isel(time=step).mean().compute(scheduler="synchronous")) for step in steps]


def _answer(connection: Any, task: Callable[[], Any]) -> None:
    try:
        connection.send(task())
    except Exception as error:
        connection.send(error)


def _in_forked_processes(tasks: list[Callable[[], Any]]) -> list[Any]:
    """What each task returns in a process of its own, forked now; all run side by side."""
    context = multiprocessing.get_context("fork")
    running = []
    for task in tasks:
        here, there = context.Pipe(duplex=False)
        process = context.Process(target=_answer, args=(there, task))
        process.start()
        there.close()
        running.append((process, here))
    answers = [here.recv() if here.poll(60) else "no answer" for _, here in running]
    for process, _ in running:
        process.join(60)
    return answers


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_15_processes_forked_after_opening_read_their_own_values(write_file: WriteFile) -> None:
    hours = np.arange(24.0)
    storage = {"TMQ": {"zlib": True, "chunksizes": (1, 7, 8)}}
    ds = open_fields(write_file("a.nc", {"TMQ": _steps(hours)}, times=_hours(*hours), encoding=storage))
    assert _means(ds, [3]) == [3.0]  # the parent has read before it forks
    shares = [list(range(k, 24, 4)) for k in range(4)]
    answers = _in_forked_processes([partial(_means, ds, share) for share in shares])
    assert answers == [[float(step) for step in share] for share in shares]
    assert _means(ds, [5]) == [5.0]


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_15_forked_processes_read_grib_by_helpers_of_their_own(write_grib: WriteGrib) -> None:
    messages = [{"shortName": "tcwv", "values": float(hour), "dataTime": 100 * hour} for hour in range(8)]
    path = write_grib("a.grib", messages)
    ds = open_fields(path)  # the parent's helper is running when it forks
    shares = [[0, 4], [1, 5], [2, 6], [3, 7]]
    answers = _in_forked_processes([partial(_means, ds, share) for share in shares])
    assert answers == [[float(step) for step in share] for share in shares]
    assert _means(open_fields(path), [7]) == [7.0]


# 16. xarray#9779, #7990: segmentation faults of netCDF4 with threads.


def _eight_fields(write_file: WriteFile, name: str) -> Path:
    hours = np.arange(30)
    names = ["TMQ", "U850", "V850", "UBOT", "VBOT", "TS", "TREFHT", "T500"]
    units = ["kg m-2", "m s-1", "m s-1", "m s-1", "m s-1", "K", "K", "K"]
    fields = {n: _steps(hours + 100.0 * k, unit) for k, (n, unit) in enumerate(zip(names, units, strict=True))}
    storage = {n: {"zlib": True, "chunksizes": (1, 7, 8)} for n in names}
    return write_file(name, fields, times=_hours(*hours), encoding=storage)


def _assert_eight_fields(ds: xr.Dataset) -> None:
    for k, name in enumerate(["TMQ", "U850", "V850", "UBOT", "VBOT", "TS", "TREFHT", "T500"]):
        np.testing.assert_array_equal(ds[name][:, 3, 3], np.arange(30) + 100.0 * k, err_msg=name)


def test_16_many_threads_read_while_others_open_files_and_write_masks(write_file: WriteFile, tmp_path: Path) -> None:
    ds = open_fields(_eight_fields(write_file, "a.nc"))
    other = write_file("b.nc", {"TMQ": TMQ}, times=_hours(0, 6))
    failures: list[Exception] = []
    done = threading.Event()

    def open_and_write(number: int) -> None:
        try:
            while not done.is_set():
                fields = open_fields(other).compute(scheduler="synchronous")
                assert (fields["TMQ"] == 30.0).all()
                with MaskWriter(tmp_path / f"{number}.nc", fields, {}, "none", "climseg test") as writer:
                    for index in range(2):
                        writer.write(index, np.full((7, 8), number, np.int8))
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=open_and_write, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    try:
        with dask.config.set(scheduler="threads", num_workers=16):
            for _ in range(5):
                _assert_eight_fields(ds.compute())
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert failures == []
    for number in range(3):
        assert (open_masks(tmp_path / f"{number}.nc")["LABELS"] == number).all()


def test_16_many_threads_read_while_xarray_writes_what_they_read(write_file: WriteFile, tmp_path: Path) -> None:
    ds = open_fields(_eight_fields(write_file, "a.nc"))
    with dask.config.set(scheduler="threads", num_workers=16):
        for number in range(3):
            ds.to_netcdf(tmp_path / f"{number}.nc")
            _assert_eight_fields(open_fields(tmp_path / f"{number}.nc").compute())


def test_16_a_file_that_cannot_be_read_ends_no_process_while_threads_read_others(
    write_file: WriteFile, tmp_path: Path
) -> None:
    paths = [_eight_fields(write_file, "a.nc")]
    paths.append(write_file("b.nc", {"TMQ": TMQ}, times=_hours(*range(30, 60))))
    ds = open_fields(paths, channels=["TMQ"])
    paths[1].unlink()
    masks = tmp_path / "masks.nc"
    with dask.config.set(scheduler="threads", num_workers=16):
        for _ in range(20):
            # The writer closes its file while threads still read the others.
            with (
                pytest.raises(InputError, match=r"b\.nc: variable TMQ cannot be read"),
                MaskWriter(masks, ds, {}, "none", "climseg test") as writer,
            ):
                writer.write(0, ds["TMQ"].values[0].astype(np.int8))
    assert not masks.exists()


def test_16_processes_and_threads_of_a_cluster_read_the_same(write_file: WriteFile) -> None:
    distributed = pytest.importorskip("distributed")
    ds = open_fields(_eight_fields(write_file, "a.nc"))
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=2, processes=True, dashboard_address=None, host="127.0.0.1"
    )
    with cluster, distributed.Client(cluster):
        _assert_eight_fields(ds.compute())
