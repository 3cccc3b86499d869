from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from climseg.errors import InputError
from climseg.sources import grib
from climseg.sources.open import open_fields

WriteGrib = Callable[..., Path]
WriteTable = Callable[..., Path]
open_era5 = partial(open_fields, source="era5")

LAT, LON = np.linspace(-90.0, 90.0, 7), np.arange(0.0, 360.0, 45.0)
VALUES = 250.0 + np.arange(7 * 8).reshape(7, 8)
# ecCodes' numbers of parameters
T2M, TP, U, V, T, Q, Z, TPRATE = 167, 228228, 131, 132, 130, 133, 129, 235055


@pytest.mark.parametrize(("south_first", "east_last"), list(product([False, True], repeat=2)))
@pytest.mark.parametrize("columns_first", [False, True])
def test_every_scanning_order_gives_one_canonical_field(
    write_grib: WriteGrib, south_first: bool, east_last: bool, columns_first: bool
) -> None:
    rows, columns = np.s_[:: 1 if south_first else -1], np.s_[:: 1 if east_last else -1]
    values = VALUES[rows, columns]
    if columns_first:
        values = values.T.reshape(7, 8)
    message = {"paramId": T2M, "values": values, "lat": LAT[rows], "lon": LON[columns]}
    path = write_grib("a.grib2", [message | {"jPointsAreConsecutive": int(columns_first)}])
    ds = open_era5(path)
    np.testing.assert_array_equal(ds["lat"], LAT)
    np.testing.assert_array_equal(ds["lon"], LON)
    np.testing.assert_allclose(ds["TREFHT"][0], VALUES, rtol=1e-6)


@pytest.mark.parametrize("sample", ["regular_ll_sfc_grib1", "regular_ll_sfc_grib2"])
def test_both_editions_are_read(write_grib: WriteGrib, sample: str) -> None:
    ds = open_era5(write_grib("a.grib", [{"paramId": T2M, "values": VALUES[::-1]}], sample))
    np.testing.assert_allclose(ds["TREFHT"][0], VALUES, rtol=1e-6)
    assert ds.attrs == {"source": "ERA5 GRIB"}  # by the centre in the messages


def test_a_region_across_greenwich_keeps_its_columns_in_order(write_grib: WriteGrib) -> None:
    lon = np.array([350.0, 355.0, 0.0, 5.0])
    keys = {"longitudeOfFirstGridPointInDegrees": 350.0, "longitudeOfLastGridPointInDegrees": 5.0}
    keys |= {"iScansNegatively": 0, "iDirectionIncrementInDegrees": 5.0}
    message = {"paramId": T2M, "values": VALUES[:, :4], "lat": LAT, "lon": lon} | keys
    ds = open_era5(write_grib("a.grib", [message]))
    np.testing.assert_array_equal(ds["lon"], [350.0, 355.0, 360.0, 365.0])
    np.testing.assert_allclose(ds["TREFHT"][0], VALUES[:, :4], rtol=1e-6)


@pytest.mark.parametrize("west", [0.0, -180.0])
def test_a_cyclic_column_is_dropped(write_grib: WriteGrib, west: float) -> None:
    lon = west + np.arange(0.0, 361.0, 45.0)
    message = {"paramId": T2M, "values": np.append(VALUES[:, :], VALUES[:, :1], axis=1), "lat": LAT, "lon": lon}
    ds = open_era5(write_grib("a.grib", [message]))
    np.testing.assert_array_equal(ds["lon"], LON)
    np.testing.assert_allclose(ds["TREFHT"][0], np.roll(VALUES, int(west // 45.0), axis=1), rtol=1e-6)


def test_a_message_behind_the_header_of_a_bulletin_is_read(write_grib: WriteGrib) -> None:
    path = write_grib("a.grib", [{"paramId": T2M, "values": VALUES[::-1]}])
    path.write_bytes(b"\x01\r\r\n001\r\r\nHTXA85 KWBC 110000\r\r\n" + path.read_bytes())
    np.testing.assert_allclose(open_era5(path)["TREFHT"][0], VALUES, rtol=1e-6)


def test_latitudes_of_a_gaussian_grid_are_its_own(write_grib: WriteGrib) -> None:
    eccodes = pytest.importorskip("eccodes")
    handle = eccodes.codes_grib_new_from_samples("regular_gg_sfc_grib2")
    eccodes.codes_set(handle, "paramId", T2M)
    latitudes = np.sort(eccodes.codes_get_array(handle, "distinctLatitudes"))
    columns = eccodes.codes_get(handle, "Ni")
    values = np.repeat(200.0 + latitudes[::-1], columns)
    eccodes.codes_set_values(handle, values)
    path = write_grib("a.grib", [])
    with path.open("wb") as file:
        eccodes.codes_write(handle, file)
    ds = open_era5(path)
    np.testing.assert_allclose(ds["lat"], latitudes, atol=1e-6)
    np.testing.assert_allclose(ds["TREFHT"][0, :, 0], 200.0 + latitudes, atol=0.01)
    # N32: the outermost Gaussian latitude is 87.86, by the zeros of a Legendre polynomial.
    nodes, _ = np.polynomial.legendre.leggauss(latitudes.size)
    np.testing.assert_allclose(ds["lat"], np.degrees(np.arcsin(nodes)), atol=1e-5)


def test_missing_values_of_the_bitmap_are_nan(write_grib: WriteGrib) -> None:
    values = VALUES.copy()
    values[2, 3] = np.nan
    field = open_era5(write_grib("a.grib", [{"paramId": T2M, "values": values, "lat": LAT}]))["TREFHT"][0]
    assert np.isnan(field[2, 3])
    assert int(field.isnull().sum()) == 1


def test_messages_are_put_in_the_order_of_their_valid_times(write_grib: WriteGrib) -> None:
    messages = [
        {"paramId": T2M, "values": 280.0 + step, "dataDate": 20010228, "dataTime": 1800, "stepRange": str(step)}
        for step in (12, 0, 6)
    ]
    ds = open_era5(write_grib("a.grib", messages))
    expected = np.array(["2001-02-28T18", "2001-03-01T00", "2001-03-01T06"], "datetime64[ns]")
    np.testing.assert_array_equal(ds["time"], expected)
    np.testing.assert_allclose(ds["TREFHT"][:, 0, 0], [280.0, 286.0, 292.0], rtol=1e-6)


def test_minutes_count_in_the_valid_time(write_grib: WriteGrib) -> None:
    ds = open_era5(write_grib("a.grib", [{"paramId": T2M, "values": 280.0, "dataTime": 1220}]))
    assert ds.indexes["time"][0] == np.datetime64("2001-01-01T12:20")


def test_two_messages_of_one_time_are_refused(write_grib: WriteGrib) -> None:
    path = write_grib("a.grib", [{"paramId": T2M, "values": 280.0}] * 2)
    with pytest.raises(InputError, match=r"a\.grib: variable 2t has the time 2001-01-01 00:00:00 twice"):
        open_era5(path)


def test_fields_of_unequal_levels_and_steps_are_all_there(write_grib: WriteGrib) -> None:
    # What one hypercube cannot hold: u on two levels, v on another one, t at other times.
    on_levels = "regular_ll_pl_grib2"
    messages = [
        {"paramId": U, "level": 850, "values": 8.0},
        {"paramId": U, "level": 500, "values": 5.0},
        {"paramId": V, "level": 850, "values": -8.0},
        {"paramId": T, "level": 500, "values": 250.0, "dataDate": 20010102},
    ]
    path = write_grib("a.grib", [m | {"sample": on_levels} for m in messages])
    ds = open_era5(path, channels=["U850", "V850"])
    assert (ds["U850"] == 8.0).all()
    assert (ds["V850"] == -8.0).all()
    assert open_era5(path, channels=["T500"]).indexes["time"][0] == np.datetime64("2001-01-02")
    with pytest.raises(InputError, match="Variable t at 500 hPa has no value at 2001-01-01 00:00:00"):
        open_era5(path)
    with pytest.raises(InputError, match=r"T200 needs t at 200 hPa.*It has: t at 500 hPa, u at 850, 500 hPa, v at 850"):
        open_era5(path, channels=["T200"])


def test_winds_off_the_pressure_levels_are_not_taken_for_those_of_a_level(write_grib: WriteGrib) -> None:
    message = {"typeOfLevel": "heightAboveGround", "level": 850, "values": 1.0}
    path = write_grib("a.grib", [message | {"paramId": U}, {"paramId": T2M, "values": 280.0}])
    assert "U850" not in open_era5(path)


def test_levels_in_messages_of_their_own_make_a_column(write_grib: WriteGrib) -> None:
    messages = [
        {"paramId": Q, "level": level, "values": 0.004, "dataDate": 20010100 + day, "sample": "regular_ll_pl_grib2"}
        for day in (1, 2)
        for level in (850, 1000, 300, 500, 700)
    ]
    ds = open_era5(write_grib("a.grib", messages))
    # By hand: 0.004 * 70000 / 9.80665.
    np.testing.assert_allclose(ds["TMQ"], 28.55205, rtol=1e-4)
    assert ds.sizes["time"] == 2


# Precipitation


def _rain(depth: float, steps: str, **keys: Any) -> dict[str, Any]:
    return {"productDefinitionTemplateNumber": 8, "paramId": TP} | keys | {"stepRange": steps, "values": depth}


@pytest.mark.parametrize(
    ("steps", "depth", "keys"),
    [("0-1", 3.6, {}), ("66-72", 21.6, {}), ("0-3", 10.8, {}), ("0-30", 1.8, {"stepUnits": "m"})],
)
def test_an_accumulation_is_divided_by_its_range_of_steps(
    write_grib: WriteGrib, steps: str, depth: float, keys: dict[str, Any]
) -> None:
    # kg m-2 are mm: 3.6 mm in an hour are a millionth of a metre per second.
    rate = open_era5(write_grib("a.grib", [_rain(depth, steps, **keys)]))["PRECT"]
    np.testing.assert_allclose(rate, 1e-6, rtol=1e-5)
    assert rate.attrs["comment"].startswith("derived: tp, accumulated")


def test_each_message_has_its_own_period(write_grib: WriteGrib) -> None:
    path = write_grib("a.grib", [_rain(3.6, "5-6"), _rain(21.6, "6-12")])
    np.testing.assert_allclose(open_era5(path)["PRECT"][:, 0, 0], [1e-6, 1e-6], rtol=1e-5)


@pytest.mark.parametrize("steps", ["0", "0-0"])
def test_an_accumulation_over_no_period_must_be_given_one(write_grib: WriteGrib, steps: str) -> None:
    path = write_grib("a.grib", [_rain(3.6, steps)])
    with pytest.raises(InputError, match=r"a\.grib: tp is accumulated over a period that the file does not say"):
        open_era5(path)
    np.testing.assert_allclose(open_era5(path, accumulation_hours=1.0)["PRECT"], 1e-6, rtol=1e-5)


def test_a_mean_rate_is_taken_before_an_accumulation(write_grib: WriteGrib) -> None:
    messages = [_rain(3.6, "0-1"), {"paramId": TPRATE, "stepRange": "0-1", "values": 0.002}]
    np.testing.assert_allclose(open_era5(write_grib("a.grib", messages))["PRECT"], 2e-6, rtol=1e-5)


# Damage, other grids, and the disk


@pytest.mark.parametrize("share", [0.99, 0.6, 0.1])
def test_a_truncated_file_is_refused(write_grib: WriteGrib, share: float) -> None:
    path = write_grib("a.grib", [{"paramId": T2M, "values": VALUES}] * 2)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(InputError, match=r"a\.grib: cannot be read as GRIB .*truncated or damaged"):
        open_era5(path)


def test_a_message_without_a_grid_is_refused(write_grib: WriteGrib) -> None:
    path = write_grib("a.grib", [{"paramId": T2M, "values": VALUES}], "regular_ll_sfc_grib1")
    content = bytearray(path.read_bytes())
    content[15] = 0  # whether a grid is described: octet 8 of section 1 of edition 1 (WMO manual on codes)
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"a\.grib: cannot be read as GRIB"):
        open_era5(path)


def test_a_file_removed_after_opening_is_named_when_it_is_read(write_grib: WriteGrib) -> None:
    path = write_grib("a.grib", [{"paramId": T2M, "values": VALUES}])
    ds = open_era5(path)
    path.unlink()
    with pytest.raises(InputError, match=r"a\.grib: .*removed"):
        ds["TREFHT"].load()


def test_a_file_cut_after_opening_is_named_when_it_is_read(write_grib: WriteGrib) -> None:
    path = write_grib("a.grib", [{"paramId": T2M, "values": VALUES}])
    ds = open_era5(path)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(InputError, match=r"a\.grib: was changed after it was opened"):
        ds["TREFHT"].load()


@pytest.mark.parametrize("sample", ["reduced_gg_pl_32_grib2", "rotated_ll_pl_grib2", "polar_stereographic_pl_grib2"])
def test_other_grids_are_refused_by_their_name(write_grib: WriteGrib, sample: str) -> None:
    eccodes = pytest.importorskip("eccodes")
    path = write_grib("a.grib", [])
    with path.open("wb") as file:
        eccodes.codes_write(eccodes.codes_grib_new_from_samples(sample), file)
    kind = sample.split("_pl")[0]
    with pytest.raises(InputError, match=rf"a\.grib: has a grid of the kind {kind}; expected a regular"):
        open_era5(path)


def test_a_message_on_another_grid_beside_wanted_ones_is_left_aside(write_grib: WriteGrib) -> None:
    eccodes = pytest.importorskip("eccodes")
    path = write_grib("a.grib", [{"paramId": T2M, "values": VALUES}])
    with path.open("ab") as file:
        eccodes.codes_write(eccodes.codes_grib_new_from_samples("reduced_gg_pl_32_grib2"), file)
    assert "TREFHT" in open_era5(path)


def test_no_index_is_written_beside_the_file(write_grib: WriteGrib) -> None:
    path = write_grib("a.grib", [{"paramId": T2M, "values": VALUES}])
    open_era5(path).load()
    assert [p.name for p in path.parent.iterdir()] == ["a.grib"]


def test_members_of_an_ensemble_are_not_mixed(write_grib: WriteGrib) -> None:
    messages = [
        {"productDefinitionTemplateNumber": 1, "number": number, "paramId": T2M, "values": VALUES, "dataTime": hour}
        for number, hour in ((0, 0), (1, 600))
    ]
    with pytest.raises(InputError, match=r"2t is there of the ensemble members 0, 1; give one"):
        open_era5(write_grib("a.grib", messages))


def test_names_say_the_kind_of_level_and_of_step_where_that_matters(write_grib: WriteGrib) -> None:
    messages = [
        {"paramId": T, "values": 280.0},
        {"paramId": T, "level": 500, "values": 250.0, "sample": "regular_ll_pl_grib2"},
        _rain(1.0, "0-6"),
        {"productDefinitionTemplateNumber": 8, "paramId": 3059, "stepRange": "0-6", "values": 0.001},
    ]
    messages[3]["typeOfStatisticalProcessing"] = 0
    names = [name for part in grib.scan(str(write_grib("a.grib", messages))) for name in part.layout.variables]
    assert [n for n in names if n not in ("latitude", "longitude", "time", "level")] == [
        "t@surface",
        "t",
        "tp",
        "prate:avg",
    ]
