from collections.abc import Callable
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import pytest
import xarray as xr

from climseg.canonical import check_canonical
from climseg.channels import CAM5_CHANNELS
from climseg.errors import InputError
from climseg.sources import netcdf
from climseg.sources.open import open_fields, survey_input
from climseg.sources.recipes import RECIPES

WriteFile = Callable[..., Path]
WriteTable = Callable[..., Path]
TMQ, T2M, PSL = (30.0, "kg m-2"), (288.15, "K"), (101300.0, "Pa")
LEVEL_DIMS = ("time", "level", "lat", "lon")


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> Callable[[], str]:
    """What climseg has told so far."""
    caplog.set_level("INFO", "climseg")
    return lambda: caplog.text


# source=auto


KELVIN_NAMES, PASCAL_NAMES = ("T200", "T500", "TS", "TREFHT"), ("PS", "PSL", "TMQ")
ECMWF = "European Centre for Medium-Range Weather Forecasts"


@pytest.mark.parametrize(
    ("fields", "attributes", "source", "words"),
    [
        ({"TMQ": TMQ, "PSL": PSL}, {}, "netCDF with names of CAM5", "took cam5, for the names TMQ, PSL"),
        ({"TMQ": TMQ}, {"source": "CAM"}, "CAM5 netCDF", "took cam5, for the names TMQ and the attribute source='CAM'"),
        (
            {"t2m": T2M, "msl": PSL, "lsm": (1.0, "1")},
            {},
            "netCDF with names of ERA5",
            "took era5, for the names t2m, msl (cam5 knows 0, merra2 knows 0, gfs knows 0 of 3 variables)",
        ),
        (
            {"2m_temperature": T2M},
            {"institution": ECMWF},
            "ERA5 netCDF",
            "took era5, for the names 2m_temperature and the attribute institution='European",
        ),
        ({"TQV": TMQ, "SLP": PSL, "TS": T2M}, {}, "netCDF with names of MERRA-2", "took merra2, for the names"),
        # Names of CAM5 as well, but the attribute tells.
        ({"PS": PSL, "TS": T2M}, {"Title": "MERRA2 inst1_2d_asm_Nx"}, "MERRA-2 netCDF", "took merra2, for the names"),
        ({"PS": PSL, "TS": T2M}, {}, "netCDF with names of CAM5", "took cam5, for the names"),
        ({"PRMSL_meansealevel": PSL}, {}, "netCDF with names of GFS", "took gfs, for the names"),
        (
            dict.fromkeys(KELVIN_NAMES, T2M) | dict.fromkeys(PASCAL_NAMES, PSL) | {"TMQ": TMQ},
            {},
            "netCDF with names of CAM5",
            "took cam5, for the names T200, T500, TS, TREFHT, PS, PSL and 1 more",
        ),
    ],
    ids=[
        "cam5",
        "cam5 by attribute",
        "era5",
        "era5 by attribute",
        "merra2",
        "merra2 by attribute",
        "cam5 before merra2",
        "gfs",
        "many names",
    ],
)
def test_auto_takes_the_source_whose_names_the_files_have_and_says_why(
    write_file: WriteFile,
    told: Callable[[], str],
    fields: dict[str, Any],
    attributes: dict[str, str],
    source: str,
    words: str,
) -> None:
    ds = open_fields(write_file("a.nc", fields, attributes={"": attributes}))
    assert ds.attrs == {"source": source}
    assert "source=auto: took" in told()
    assert words in told()


def test_auto_takes_gfs_for_its_grib(write_grib: WriteFile, told: Callable[[], str]) -> None:
    # 2t is a name of ERA5 too; the messages say whose they are.
    path = write_grib("a.grib", [{"centre": "kwbc", "shortName": "2t", "values": 288.15}])
    assert open_fields(path).attrs == {"source": "GFS GRIB"}
    assert "and the attribute GRIB_centre='kwbc'" in told()


def test_a_source_that_was_chosen_by_the_user_is_not_explained(write_file: WriteFile, told: Callable[[], str]) -> None:
    open_fields(write_file("a.nc", {"TMQ": TMQ}), source="cam5")
    assert told() == ""


def test_auto_refuses_names_that_no_source_has_and_shows_the_way_to_a_table(write_file: WriteFile) -> None:
    with pytest.raises(InputError) as error:
        open_fields(write_file("a.nc", {"mslp": PSL, "t2": T2M}))
    message = str(error.value)
    assert "a.nc: none of its variables has a name of CAM5, ERA5, MERRA-2 or GFS; did you mean" in message
    assert "It has: mslp, t2." in message
    assert "source=generic source.table=names.yaml" in message


def test_auto_refuses_a_grid_before_it_looks_for_names(tmp_path: Path) -> None:
    xr.Dataset({"mslp": (("ncol",), np.ones(5))}).to_netcdf(tmp_path / "a.nc")
    with pytest.raises(InputError, match=r"a\.nc: has an unstructured grid \(dimension ncol\)"):
        open_fields(tmp_path / "a.nc")


def test_a_climatenet_file_is_cam5_with_labels(write_file: WriteFile) -> None:
    labels = np.ones((7, 8), np.int64)
    path = write_file("data-2001-01-01-00-1-0.nc", {"TMQ": TMQ, "LABELS": (labels, None, ("lat", "lon"))})
    for source in ("auto", "climatenet", "cam5"):
        ds = open_fields(path, source=source, labels=True)
        assert (ds["LABELS"] == 1).all()
        assert "comment" not in ds["TMQ"].attrs  # it has units


# A table of one's own


def test_a_table_of_ones_own_names_channels_and_ingredients(write_file: WriteFile, write_table: WriteTable) -> None:
    extra = {"level": ("level", [850.0, 500.0], {"units": "hPa"})}
    wind = np.array([8.0, 5.0]).reshape(1, 2, 1, 1)
    fields = {"mslp": (1013.0, "hPa"), "uwnd": (wind, "m/s", LEVEL_DIMS), "vwnd": (0.0, "m/s", LEVEL_DIMS)}
    table = write_table({"PSL": "mslp", "u": ["u", "uwnd"], "v": "vwnd"}, title="NCEP reanalysis")
    ds = open_fields(write_file("a.nc", fields, extra=extra), source="generic", table=table)
    assert list(ds.data_vars) == ["U850", "V850", "PSL"]
    assert (ds["U850"] == 8.0).all()
    np.testing.assert_allclose(ds["PSL"], 101300.0)
    assert ds.attrs == {"source": "netCDF with names of NCEP reanalysis"}


def test_a_channel_named_by_a_table_is_picked_at_its_own_level(write_file: WriteFile, write_table: WriteTable) -> None:
    extra = {"level": ("level", [850.0, 500.0, 200.0], {"units": "hPa"})}
    values = np.array([280.0, 250.0, 220.0]).reshape(1, 3, 1, 1)
    path = write_file("a.nc", {"temp": (values, "K", LEVEL_DIMS)}, extra=extra)
    ds = open_fields(path, source="generic", table=write_table({"T500": "temp", "T200": "temp"}))
    assert (ds["T500"] == 250.0).all()
    assert (ds["T200"] == 220.0).all()


def test_a_missing_name_of_a_table_is_refused_in_its_words(write_file: WriteFile, write_table: WriteTable) -> None:
    path, table = write_file("a.nc", {"mslp": PSL}), write_table({"PSL": "mslp", "t": "temp"}, title="Mine")
    with pytest.raises(InputError, match=r"a\.nc: T500 needs temp at 500 hPa\. It has: mslp\."):
        open_fields(path, source="generic", table=table, channels=["T500"])
    with pytest.raises(InputError, match="no channel can be had from it by the names of Mine"):
        open_fields(write_file("b.nc", {"slp": PSL}), source="generic", table=table)


def test_a_table_may_recognise_its_files_and_waive_units(write_file: WriteFile, write_table: WriteTable) -> None:
    table = write_table({"PSL": "mslp"}, title="Mine", recognise={"title": ["my run"]}, unitless=True)
    path = write_file("a.nc", {"mslp": (101300.0, None)}, attributes={"": {"title": "my run of today"}})
    ds = open_fields(path, source="generic", table=table)
    assert ds.attrs == {"source": "Mine netCDF"}
    assert ds["PSL"].attrs["comment"].endswith("taken as documented for Mine")


# The request


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"source": "era6"}, "There is no source 'era6'; did you mean 'era5' or"),
        ({"source": "generic"}, "source=generic and a name table belong together"),
        ({"source": "era5", "table": "names.yaml"}, "source=generic and a name table belong together"),
        ({"accumulation_hours": -1.0}, "source.accumulation_hours is -1.0; expected hours above 0"),
        ({"accumulation_hours": float("nan")}, "source.accumulation_hours is nan"),
        ({"source": "merra2", "labels": True}, "MERRA-2 files carry no labels; make them with a heuristic"),
        ({"channels": ["TNQ"]}, "'TNQ' is not a channel; did you mean 'TMQ'?"),
        ({"source": "generic", "table": "nowhere.yaml"}, "nowhere.yaml: the name table cannot be read"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused(write_file: WriteFile, options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as error:
        open_fields(write_file("a.nc", {"TMQ": TMQ}), **options)
    assert said in str(error.value)


def test_labels_that_only_turn_out_not_to_exist_are_refused(write_file: WriteFile) -> None:
    with pytest.raises(InputError, match="ERA5 files carry no labels"):
        open_fields(write_file("a.nc", {"t2m": T2M}), labels=True)


def test_another_source_is_hinted_at_by_its_names(write_file: WriteFile) -> None:
    path = write_file("a.nc", {"TQV": TMQ, "SLP": PSL, "QV2M": (0.01, "1")})
    with pytest.raises(InputError, match=r"It has: QV2M, SLP, TQV\. These are names of MERRA-2: try source=merra2\."):
        open_fields(path, source="era5")


def test_many_files_are_named_by_the_first(write_file: WriteFile) -> None:
    paths = [write_file(f"{n}.nc", {"TMQ": TMQ}, times=[f"2001-01-0{n}"]) for n in (1, 2, 3)]
    with pytest.raises(InputError, match=r"^The input of 3 files from .*1\.nc on: has no variable LABELS"):
        open_fields(paths, source="cam5", labels=True)


def test_a_survey_says_what_can_be_had_how_and_what_is_missing(write_file: WriteFile) -> None:
    survey = survey_input(write_file("a.nc", {"TMQ": TMQ, "TREFHT": T2M}))
    assert (survey.source, set(survey.ways)) == ("cam5", {"TMQ", "TREFHT", "ZBOT"})
    assert set(survey.missing) == set(RECIPES) - set(survey.ways)
    assert survey.missing["VRT850"].startswith("VRT850 needs VRT850 or U850 and V850")
    assert survey.why.startswith("took cam5")
    assert survey.where.endswith("a.nc")


# What comes out


def test_the_dataset_is_canonical_and_lazy_and_its_variables_say_what_they_are(write_file: WriteFile) -> None:
    path = write_file("a.nc", {"TMQ": TMQ, "PSL": PSL}, lat=np.linspace(90.0, -90.0, 7))
    ds = open_fields(path)
    check_canonical(ds, ["TMQ", "PSL"])
    assert ds["TMQ"].attrs == {
        "long_name": "vertically integrated water vapour",
        "standard_name": "atmosphere_mass_content_of_water_vapor",
        "units": "kg m-2",
    }
    assert ds["lat"].attrs["units"] == "degrees_north"
    np.testing.assert_array_equal(ds["lat"].attrs["source_values"], np.linspace(90.0, -90.0, 7))
    assert ds["time"].attrs["standard_name"] == "time"
    assert all(variable.chunks is not None for variable in ds.data_vars.values())
    assert all(variable.encoding == {} for variable in ds.data_vars.values())


def test_all_sixteen_channels_come_in_their_order_whatever_that_of_the_files(write_file: WriteFile) -> None:
    units = {"TMQ": "kg m-2", "QREFHT": "kg/kg", "PS": "Pa", "PSL": "Pa"}
    units |= dict.fromkeys(("U850", "V850", "UBOT", "VBOT", "PRECT"), "m/s")
    units |= dict.fromkeys(("T200", "T500", "TS", "TREFHT"), "K")
    units |= dict.fromkeys(("Z1000", "Z200", "ZBOT"), "m")
    path = write_file("a.nc", {name: (1.0, units[name]) for name in reversed(CAM5_CHANNELS)})
    assert tuple(open_fields(path).data_vars) == CAM5_CHANNELS


@pytest.mark.parametrize(
    ("encoding", "steps"), [({"contiguous": True}, 1), ({"chunksizes": (4, 2, 3)}, 4), ({"chunksizes": (12, 7, 8)}, 12)]
)
def test_dask_chunks_follow_the_stored_ones_in_time_and_are_whole_in_space(
    write_file: WriteFile, encoding: dict[str, Any], steps: int
) -> None:
    times = np.datetime64("2001-01-01") + np.arange(12)
    path = write_file("a.nc", {"TMQ": TMQ}, times=times, encoding={"TMQ": encoding})
    assert open_fields(path)["TMQ"].data.chunksize == (steps, 7, 8)


def test_a_file_stored_as_one_chunk_is_not_read_as_one(tmp_path: Path) -> None:
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as file:  # 2 GiB on paper, no value written
        axes = {"time": np.arange(512), "latitude": np.linspace(-90, 90, 1024), "longitude": np.arange(1024) * 0.35}
        for name, values in axes.items():
            file.createDimension(name, len(values))
            file.createVariable(name, "f8", (name,))[:] = values
        file["time"].units = "days since 2001-01-01"
        dims = ("time", "latitude", "longitude")
        file.createVariable("t2m", "f4", dims, chunksizes=(512, 64, 64), zlib=True).units = "K"
    chunks = open_fields(tmp_path / "a.nc")["TREFHT"].data.chunksize
    assert chunks[1:] == (1024, 1024)
    assert np.prod(chunks) * 4 <= 16 * 2**20
    assert 512 % chunks[0] == 0


def test_one_level_is_read_without_the_others(write_file: WriteFile, monkeypatch: pytest.MonkeyPatch) -> None:
    levels = np.array([850.0, 500.0, 200.0])
    extra = {"level": ("level", levels, {"units": "hPa"})}
    path = write_file("a.nc", {"t": (levels.reshape(1, 3, 1, 1), "K", LEVEL_DIMS)}, extra=extra)
    asked: list[Any] = []
    read = netcdf.read
    monkeypatch.setattr(netcdf, "read", lambda file, name, key: asked.append((name, key)) or read(file, name, key))
    assert (open_fields(path, source="era5")["T500"] == 500.0).all()
    assert asked == [("t", (slice(0, 1), 1, slice(None), slice(None)))]


@pytest.mark.parametrize("scheduler", ["sync", "threads"])
def test_any_scheduler_gives_the_same_values(write_file: WriteFile, scheduler: str) -> None:
    values = np.arange(12 * 7 * 8, dtype=np.float32).reshape(12, 7, 8)
    times = np.datetime64("2001-01-01") + np.arange(12)
    path = write_file("a.nc", {"TMQ": (values, "kg m-2")}, times=times, encoding={"TMQ": {"zlib": True}})
    np.testing.assert_array_equal(open_fields(path)["TMQ"].compute(scheduler=scheduler), values)


def test_two_openings_never_share_a_name_in_a_graph(write_file: WriteFile) -> None:
    path = write_file("a.nc", {"TMQ": TMQ})
    first = open_fields(path)
    write_file("a.nc", {"TMQ": (7.0, "kg m-2")})
    second = open_fields(path)
    assert first["TMQ"].data.name != second["TMQ"].data.name
    assert float(second["TMQ"].max()) == 7.0
    with pytest.raises(InputError, match=r"a\.nc: was changed after it was opened"):
        first["TMQ"].load()


def test_files_of_two_sources_are_refused_and_never_dropped_without_a_word(write_file: WriteFile) -> None:
    cam5 = write_file("cam5.nc", {"TMQ": (1.0, "kg m-2"), "PSL": (1e5, "Pa")})
    era5 = write_file("era5.nc", {"t2m": (280.0, "K")}, times=["2002-01-01"])
    with pytest.raises(InputError, match=r"era5\.nc: has names of ERA5 \(t2m\), while other files .* those of CAM5"):
        open_fields([cam5, era5])


def test_a_file_that_gives_nothing_is_named(write_file: WriteFile, caplog: pytest.LogCaptureFixture) -> None:
    cam5 = write_file("cam5.nc", {"TMQ": (1.0, "kg m-2")})
    other = write_file("mask.nc", {"land_sea_mask": (1.0, "1")})
    assert list(open_fields([cam5, other]).data_vars) == ["TMQ"]
    assert "1 of 2 files give none of the channels and are left aside" in caplog.text
    assert "mask.nc" in caplog.text
