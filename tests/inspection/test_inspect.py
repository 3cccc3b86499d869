"""Inspections of made files with known faults, and of real files."""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from climseg.channels import CAM5_CHANNELS, CHANNELS, LABELS
from climseg.cli.labelling import heuristic
from climseg.errors import InputError
from climseg.inspection.inspect import inspect_input
from climseg.inspection.report import ChannelReport, Inspection, ValuesReport, Verdict
from climseg.labels.heuristic import Heuristic
from tests.labels import scenes

Change = Callable[[xr.Dataset], xr.Dataset]


def _kurth2018(*options: str) -> Heuristic:
    return heuristic("kurth2018", *options)


def _inspect(atmosphere: xr.Dataset, folder: Path, *changes: Change, judged_for: Heuristic | None = None) -> Inspection:
    """Inspect all steps of the small atmosphere after some changes, by default for kurth2018."""
    ds = atmosphere.isel(time=slice(0, 6)).copy(deep=True)
    for change in changes:
        ds = change(ds)
    ds.to_netcdf(folder / "a.nc")
    return inspect_input(folder / "a.nc", steps=None, heuristic=judged_for or _kurth2018())


def _values(inspection: Inspection, name: str) -> ValuesReport:
    report = inspection.channel(name)
    assert report is not None
    assert report.values is not None
    return report.values


def _channel(inspection: Inspection, name: str) -> ChannelReport:
    report = inspection.channel(name)
    assert report is not None
    return report


def _verdict(inspection: Inspection, purpose: str) -> Verdict:
    return next(v for v in inspection.verdicts if v.purpose == purpose)


def _scaled(name: str, factor: float) -> Change:
    return lambda ds: ds.assign({name: (ds[name] * factor).assign_attrs(ds[name].attrs)})


@pytest.fixture(scope="module")
def sound(atmosphere: xr.Dataset, tmp_path_factory: pytest.TempPathFactory) -> Inspection:
    return _inspect(atmosphere, tmp_path_factory.mktemp("sound"))


def test_sound_files_are_ready_for_training_and_the_heuristic(sound: Inspection) -> None:
    assert sound.problems == sound.remarks == []
    training, labels = sound.verdicts
    assert training == Verdict(
        "a new network", True, "with the 16 channels there; the files carry LABELS (labels=from_file)."
    )
    assert labels == Verdict(
        "labels=kurth2018",
        True,
        "the 11 channels that it takes are there. The grid of 5 degrees is coarse for it and it may find little; see "
        "labels=kurth2018_coarse.",
    )


def test_files_times_grid_and_sizes_are_counted(sound: Inspection, atmosphere: xr.Dataset) -> None:
    assert (sound.files.count, sound.files.formats, sound.files.archives) == (1, {"netCDF": 1}, 0)
    assert sound.files.bytes == Path(sound.files.first).stat().st_size
    (times,), (grid,) = sound.times, sound.grids
    assert (times.steps, times.spacing_hours, times.missing) == (6, 12.0, 0)
    assert (grid.rows, grid.columns, grid.whole_globe, grid.poles) == (37, 72, True, ["south", "north"])
    assert sound.bytes_per_step == 37 * 72 * (16 * 4 + 1)
    assert sound.store_bytes == 6 * sound.bytes_per_step
    assert len(sound.sampled) == 6


def test_values_are_those_of_the_fields(sound: Inspection, atmosphere: xr.Dataset) -> None:
    first = atmosphere.isel(time=slice(0, 6))
    for name in CAM5_CHANNELS:
        values = _values(sound, name)
        assert values.minimum == float(first[name].min())
        assert values.maximum == float(first[name].max())
        assert values.mean == pytest.approx(float(first[name].astype("f8").mean()), rel=1e-6)
    shares = sound.labels.class_shares
    counts = np.bincount(first[LABELS].values.ravel(), minlength=3) / first[LABELS].size
    np.testing.assert_allclose([shares[name] for name in shares], counts)


def test_each_channel_says_how_it_comes(sound: Inspection) -> None:
    assert [c.name for c in sound.channels] == list(CHANNELS)
    assert _channel(sound, "TMQ").state == "found"
    assert _channel(sound, "WS850").state == "derived"
    assert _channel(sound, "WS850").comment == "derived: speed of U850 and V850"
    assert _channel(sound, "WS850").stored_units == ["m s-1"]
    missing = _channel(sound, "IVT")
    assert (missing.state, missing.values) == ("missing", None)
    assert missing.needs.startswith("IVT needs ")


def test_an_inspection_is_plain_json(sound: Inspection) -> None:
    assert json.loads(json.dumps(asdict(sound), allow_nan=False)) == asdict(sound)


def test_a_fault_of_each_kind_is_named(atmosphere: xr.Dataset, tmp_path: Path) -> None:
    def spoil(ds: xr.Dataset) -> xr.Dataset:
        ds["TREFHT"][2, 3:5, 7] = np.nan
        ds["TS"][4] = np.nan
        ds["Z1000"][:] = -380.0
        return ds

    inspection = _inspect(atmosphere, tmp_path, spoil, _scaled("PSL", 0.01), _scaled("QREFHT", 1e-3))
    times = [str(t)[:19] for t in atmosphere["time"].values[:6]]
    assert _values(inspection, "TREFHT").missing_at == [times[2]]
    assert _values(inspection, "TREFHT").missing_share == pytest.approx(2 / (6 * 37 * 72))
    assert list(_values(inspection, "TS").unreadable) == [times[4]]
    assert _values(inspection, "Z1000").constant_at == times
    said = "\n".join(inspection.remarks)
    assert f"TREFHT: under 0.1% of the values are missing, in 1 of 6 sampled steps ({times[2]})." in said
    assert f"TS: cannot be read in 1 of 6 sampled steps ({times[4]}):" in said
    assert "Z1000: is -380 m everywhere and carries no information; leave it out." in said
    assert "look like hPa labelled Pa: correct the units attribute in the files" in said
    assert "QREFHT: runs from " in said
    assert "a thousandth of what is usual" in said
    training = _verdict(inspection, "a new network")
    assert training.ready
    assert training.sentence.startswith("with channels=[TMQ,U850,V850,UBOT,VBOT,QREFHT,PS,T200,T500,PRECT,Z200,ZBOT], ")
    labels = _verdict(inspection, "labels=kurth2018")
    assert not labels.ready
    assert labels.sentence.startswith("PSL: values that look like hPa labelled Pa; correct the units attribute.")
    assert "labels.cyclones=null" in labels.sentence


def test_the_heuristic_takes_missing_values(atmosphere: xr.Dataset, tmp_path: Path) -> None:
    def spoil(ds: xr.Dataset) -> xr.Dataset:
        ds["TMQ"][:, 3, 3] = np.nan
        return ds

    verdict = _verdict(_inspect(atmosphere, tmp_path, spoil), "labels=kurth2018")
    assert verdict.ready
    assert "cells where TMQ is missing get -1, no class" in verdict.sentence


def test_a_unit_that_does_not_convert_is_in_the_way(atmosphere: xr.Dataset, tmp_path: Path) -> None:
    def spoil(ds: xr.Dataset) -> xr.Dataset:
        ds["TS"].attrs["units"] = "furlong"
        return ds

    inspection = _inspect(atmosphere, tmp_path, spoil)
    report = _channel(inspection, "TS")
    assert (report.state, report.in_the_way) == ("missing", True)
    assert "variable TS is in 'furlong'" in report.needs
    sentence = _verdict(inspection, "a new network").sentence
    assert "with channels=[" in sentence
    assert "furlong" in sentence


def test_gaps_in_time_are_counted(atmosphere: xr.Dataset, tmp_path: Path) -> None:
    inspection = _inspect(atmosphere, tmp_path, lambda ds: ds.isel(time=[0, 1, 2, 4, 5]))
    assert inspection.times[0].missing == 1
    assert inspection.times[0].first_missing == [str(atmosphere["time"].values[3])[:19]]


def test_files_that_overlap_are_inspected_and_refused_for_each_purpose(atmosphere: xr.Dataset, tmp_path: Path) -> None:
    atmosphere.isel(time=slice(0, 3)).to_netcdf(tmp_path / "a.nc")
    atmosphere.isel(time=slice(2, 5)).to_netcdf(tmp_path / "b.nc")
    inspection = inspect_input(str(tmp_path / "*.nc"), heuristic=_kurth2018())
    (times,) = inspection.times
    assert (times.steps, times.duplicates, times.first_duplicates) == (5, 1, [str(atmosphere["time"].values[2])[:19]])
    (problem,) = inspection.problems
    assert "is in both" in problem
    assert not any(v.ready for v in inspection.verdicts)
    assert all("is in both" in v.sentence for v in inspection.verdicts)


def test_channels_of_unequal_times_are_inspected_in_groups(atmosphere: xr.Dataset, tmp_path: Path) -> None:
    early = atmosphere.isel(time=slice(0, 5))
    early.drop_vars(["PRECT", LABELS]).to_netcdf(tmp_path / "a.nc")
    atmosphere[["PRECT"]].isel(time=slice(1, 6)).to_netcdf(tmp_path / "b.nc")
    inspection = inspect_input(str(tmp_path / "*.nc"), heuristic=_kurth2018())
    assert [len(group) for group in inspection.together] == [17, 1]
    assert [t.channels for t in inspection.times][1] == ["PRECT"]
    assert len(inspection.grids) == 1
    assert _values(inspection, "PRECT").steps == 5
    assert "Variable PRECT has no value at 2001-08-01" in inspection.problems[0]
    assert not _verdict(inspection, "a new network").ready
    assert not _verdict(inspection, "labels=kurth2018").ready


def test_two_steps_are_too_few_for_training(atmosphere: xr.Dataset, tmp_path: Path) -> None:
    inspection = _inspect(atmosphere, tmp_path, lambda ds: ds.isel(time=[0, 1]))
    verdict = _verdict(inspection, "a new network")
    assert not verdict.ready
    assert verdict.sentence.startswith("2 time steps are too few")


def test_labels_of_the_files_are_looked_for(atmosphere: xr.Dataset, tmp_path: Path) -> None:
    inspection = _inspect(atmosphere, tmp_path, lambda ds: ds.drop_vars(LABELS))
    assert not inspection.labels.present
    assert "labels=kurth2018 makes them" in _verdict(inspection, "a new network").sentence
    without = inspect_input(tmp_path / "a.nc")
    assert not _verdict(without, "labels=from_file").ready
    assert not _verdict(without, "a new network").ready


def test_labels_of_other_times_are_of_no_use(atmosphere: xr.Dataset, tmp_path: Path) -> None:
    atmosphere.drop_vars(LABELS).isel(time=slice(0, 5)).to_netcdf(tmp_path / "a.nc")
    atmosphere[[LABELS]].isel(time=slice(1, 6)).to_netcdf(tmp_path / "b.nc")
    inspection = inspect_input(str(tmp_path / "*.nc"))
    assert not inspection.labels.present
    assert "LABELS" in inspection.labels.problem


def test_rivers_alone_need_tmq(atmosphere: xr.Dataset, tmp_path: Path) -> None:
    inspection = _inspect(atmosphere, tmp_path, lambda ds: ds[["TMQ", "PSL"]])
    verdict = _verdict(inspection, "labels=kurth2018")
    assert not verdict.ready
    assert verdict.sentence.endswith("set labels.cyclones=null to label rivers alone.")
    rivers = inspect_input(tmp_path / "a.nc", heuristic=_kurth2018("labels.cyclones=null"))
    assert _verdict(rivers, "labels=kurth2018").ready


def test_too_little_time_for_tracks_is_said_and_how_to_do_without(atmosphere: xr.Dataset, tmp_path: Path) -> None:
    inspection = _inspect(atmosphere, tmp_path, lambda ds: ds.drop_vars(LABELS).isel(time=[0, 1, 2]))
    for verdict in inspection.verdicts:
        assert not verdict.ready
        assert "the input has 24 hours without a gap at most" in verdict.sentence
        assert "set labels.cyclones.tracks=null to judge every time step by itself." in verdict.sentence
    without = inspect_input(tmp_path / "a.nc", heuristic=_kurth2018("labels.cyclones.tracks=null"))
    assert all(verdict.ready for verdict in without.verdicts)


def test_too_few_steps_for_a_climatology_are_counted(tmp_path: Path) -> None:
    scene = scenes.QUIET.on(10.0, hours=[6.0 * step for step in range(5)])
    scene.to_netcdf(tmp_path / "a.nc")
    options = "labels.rivers.min_steps=6", "labels.rivers.min_steps=5", "labels.rivers.climatology=usual.nc"
    few, enough, given = (
        _verdict(inspect_input(tmp_path / "a.nc", heuristic=heuristic("guan_waliser", o)), "labels=guan_waliser")
        for o in options
    )
    assert not few.ready
    assert few.sentence.startswith("the input: 5 time steps lie in the five months round month 9, too few")
    assert enough.ready
    assert given.ready


def test_what_stands_in_is_named(atmosphere: xr.Dataset, tmp_path: Path) -> None:
    storms = heuristic("tempestextremes", "labels.rivers=null")
    verdict = _verdict(_inspect(atmosphere, tmp_path, judged_for=storms), "labels=tempestextremes")
    assert verdict.ready
    assert "; (T200 + T500)/2 in place of Z300 - Z500." in verdict.sentence
    assert verdict.sentence.endswith("it may find little.")  # there is no second set of thresholds to see


def test_nothing_is_read_where_no_step_is_asked_for(atmosphere: xr.Dataset, tmp_path: Path) -> None:
    atmosphere.isel(time=slice(0, 4)).to_netcdf(tmp_path / "a.nc")
    inspection = inspect_input(tmp_path / "a.nc", steps=0)
    assert inspection.sampled == []
    assert _values(inspection, "TMQ").minimum is None
    assert _verdict(inspection, "a new network").ready


def test_channels_and_period_are_those_asked_for(atmosphere: xr.Dataset, tmp_path: Path) -> None:
    atmosphere.to_netcdf(tmp_path / "a.nc")
    days = ["2001-08-03", "2001-08-04"]
    inspection = inspect_input(tmp_path / "a.nc", channels=["PSL", "TMQ"], period=days, heuristic=_kurth2018())
    assert {c.name for c in inspection.channels} == {"PSL", "TMQ"}
    assert inspection.times[0].steps == 4
    assert "not among source.channels" in _verdict(inspection, "labels=kurth2018").sentence


def test_levels_of_a_column_are_told(atmosphere: xr.Dataset, tmp_path: Path) -> None:
    levels = np.array([1000.0, 850, 700, 500, 300, 200])
    shape = (1, 6, 7, 8)
    dims = ("time", "level", "latitude", "longitude")
    wet = xr.Dataset(
        {
            "q": (dims, np.full(shape, 0.01, np.float32), {"units": "kg kg**-1"}),
            "u": (dims, np.full(shape, 10.0, np.float32), {"units": "m s**-1"}),
            "v": (dims, np.full(shape, 0.0, np.float32), {"units": "m s**-1"}),
        },
        coords={
            "time": np.array(["2001-01-01"], "datetime64[ns]"),
            "level": ("level", levels, {"units": "hPa"}),
            "latitude": np.linspace(-90, 90, 7),
            "longitude": np.arange(0, 360, 45.0),
        },
    )
    wet.to_netcdf(tmp_path / "a.nc")
    inspection = inspect_input(tmp_path / "a.nc")
    assert inspection.source == "era5"
    assert _channel(inspection, "TMQ").levels == ["q: 6 pressure levels from 200 to 1000 hPa"]
    assert _channel(inspection, "IVT").levels == ["q, u, v: 6 pressure levels from 200 to 1000 hPa"]
    assert _channel(inspection, "U850").levels == []
    # 0.01 kg/kg through 800 hPa: 0.01 * 80000 Pa / 9.80665 m s-2
    assert _values(inspection, "TMQ").mean == pytest.approx(81.577, rel=1e-4)


def test_files_that_cannot_be_read_raise(tmp_path: Path) -> None:
    (tmp_path / "a.nc").write_text("no data")
    with pytest.raises(InputError, match="is a text file"):
        inspect_input(tmp_path / "a.nc")


def test_the_real_forecast_of_2004_has_a_constant_z1000_and_no_lowest_wind(shared: Path) -> None:
    inspection = inspect_input(shared / "gfs" / "gfs_20041212T12_2p5deg.nc", heuristic=_kurth2018())
    assert inspection.remarks == ["Z1000: is -380 m everywhere and carries no information; leave it out."]
    assert [c.name for c in inspection.channels if c.state == "missing"] == ["UBOT", "VBOT", "Z300", "Z500"]
    assert _channel(inspection, "ZBOT").state == "approximated"
    assert "UBOT" in _verdict(inspection, "labels=kurth2018").sentence


def test_the_real_forecast_of_2011_in_grib_is_ready_for_the_heuristic(shared: Path) -> None:
    file = shared / "gfs" / "gfs_20111011T00_2p5deg.grb2"
    inspection = inspect_input(file, heuristic=_kurth2018("labels.cyclones.tracks=null"))
    assert inspection.source == "gfs"
    assert inspection.files.formats == {"GRIB": 1}
    assert inspection.grids[0].latitude_order == "north to south"
    assert _verdict(inspection, "labels=kurth2018").ready
    assert inspection.remarks == []
    followed = _verdict(inspect_input(file, heuristic=_kurth2018()), "labels=kurth2018")
    assert not followed.ready
    assert followed.sentence.startswith("the input has a single time step; labels=kurth2018 follows cyclones through ")


def test_the_river_of_merra_has_the_transport_that_is_known(shared: Path) -> None:
    inspection = inspect_input(str(shared / "merra" / "*.nc"))
    assert _values(inspection, "IVT").maximum == pytest.approx(1596.0, abs=1.0)
    assert inspection.grids[0].longitude_convention == "-180 to 180"
    assert (inspection.grids[0].lat_spacing, inspection.grids[0].lon_spacing) == (0.5, 0.625)


def test_precipitation_without_a_period_says_what_to_give(shared: Path) -> None:
    inspection = inspect_input(str(shared / "era5_cds_new" / "*.nc"))
    assert "source.accumulation_hours" in _channel(inspection, "PRECT").needs
    assert not _channel(inspection, "PRECT").in_the_way
    given = inspect_input(str(shared / "era5_cds_new" / "*.nc"), accumulation_hours=1)
    assert _channel(given, "PRECT").state == "derived"


def test_an_archive_is_one_file_of_many(shared: Path) -> None:
    archive = shared / "era5_zip" / "ERA5_UK_mixed_multi_netcdf.zip"
    inspection = inspect_input(archive)
    assert (inspection.files.count, inspection.files.archives) == (1, 1)
    assert inspection.files.formats == {"netCDF": 8}
    assert inspection.files.bytes == archive.stat().st_size


def test_an_archive_of_unequal_grids_is_inspected_and_refused(shared: Path) -> None:
    archive = shared / "era5_zip" / "ERA5_incompatible_mixed_multi_netcdf.zip"
    inspection = inspect_input(archive, accumulation_hours=1)
    assert "unequal grids" in inspection.problems[0]
    assert _values(inspection, "PRECT").steps == 4
    assert "unequal grids" in _channel(inspection, "TREFHT").refused
