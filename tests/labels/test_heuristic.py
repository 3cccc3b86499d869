"""Whole heuristics: what must change nothing, what is missing, how rivers and cyclones combine, what is refused."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import cftime
import numpy as np
import pandas as pd
import pytest
import xarray as xr

from climseg import blocks, cluster
from climseg.canonical import LABEL_ATTRIBUTES
from climseg.channels import ATMOSPHERIC_RIVER, BACKGROUND, CAM5_CHANNELS, LABELS, MISSING_LABEL, TROPICAL_CYCLONE
from climseg.cli.labelling import heuristic
from climseg.cli.main import run
from climseg.errors import InputError
from climseg.grid import EARTH_RADIUS, Floats, great_circle_distance
from climseg.labels.heuristic import Cyclones, Heuristic
from climseg.labels.needs import Needs, criteria, needs
from climseg.labels.rivers_guan_waliser import PERCENTILE
from climseg.labels.run import find, table_paths, write
from climseg.labels.spool import spool_path
from climseg.labels.step import Candidate, RegionTable, Rivers, Step, StormRegion
from climseg.labels.tracks import TrackRule
from climseg.labels.windows import within
from climseg.masks import open_masks
from climseg.synthetic.scene import make_scene
from tests.labels import scenes

STEP_BY_STEP = "labels.cyclones.tracks=null"
WITH_CYCLONES = "labels/cyclones=tempestextremes"
PRESETS: dict[str, tuple[str, ...]] = {
    "kurth2018": (),
    "kurth2018_coarse": (),
    "tempestextremes": (),
    "guan_waliser": (WITH_CYCLONES,),
    "bard": (WITH_CYCLONES,),
}
LAT_2, LON_2 = np.arange(-90.0, 91.0, 2.0), np.arange(0.0, 360.0, 2.0)
composed = cache(heuristic)
Made = Callable[..., Heuristic]
Where = Callable[[], AbstractContextManager[cluster.Cluster]]
every_preset = pytest.mark.parametrize("preset", PRESETS)
# kurth2018_coarse is kurth2018 with other thresholds.
every_definition = pytest.mark.parametrize("preset", [name for name in PRESETS if not name.endswith("coarse")])


@pytest.fixture(scope="module")
def fields() -> xr.Dataset:
    """Storms, rivers and decoys at 2 degrees, three steps of 6 hours."""
    return scenes.EVERYTHING.on(2.0, hours=(0.0, 6.0, 12.0)).drop_vars(LABELS)


@pytest.fixture(scope="module")
def three_days() -> xr.Dataset:
    """The same every 12 hours, long enough for tracks."""
    return scenes.EVERYTHING.on(2.0, hours=[12.0 * n for n in range(7)]).drop_vars(LABELS)


def quiet(lat: Floats, lon: Floats, path: Path, shift: int = 0) -> Path:
    """A climatology file: the transport of the scene without its objects, moved by so many columns."""
    globe = scenes.Scene({}, {}, {}, land=True).on(float(lat[1] - lat[0]))
    there = globe.isel(time=0).sel(lat=lat, lon=lon % 360.0)
    ivt = np.hypot(there["UIVT"].values, there["VIVT"].values)
    values = np.repeat(np.roll(ivt, shift, axis=1)[None], 12, axis=0)
    axes = {"month": np.arange(1, 13), "lat": lat, "lon": lon}
    xr.Dataset({PERCENTILE: (tuple(axes), values)}, coords=axes).to_netcdf(path)
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """``made(preset, *options, shift=0)``: a preset for the scene at 2 degrees, with the climatology that it needs."""
    folder = tmp_path_factory.mktemp("usual")

    @cache
    def climatology(shift: int) -> Path:
        return quiet(LAT_2, LON_2, folder / f"usual{shift}.nc", shift)

    def make(preset: str, *options: str, shift: int = 0) -> Heuristic:
        how = composed(preset, *options, *PRESETS[preset])
        return with_climatology(how, climatology(shift)) if preset == "guan_waliser" else how

    return make


def with_climatology(how: Heuristic, file: Path) -> Heuristic:
    """As with ``labels.rivers.climatology``; composing options takes longer than labelling."""
    assert isinstance(how.rivers, partial)
    return replace(how, rivers=partial(how.rivers.func, **(how.rivers.keywords | {"climatology": str(file)})))


def in_passes(how: Heuristic, lazy: xr.Dataset, output: Path, where: Where = cluster.in_process) -> xr.DataArray:
    """Masks by the passes of ``climseg label``, loaded."""
    folder, tables = spool_path(output), table_paths(output, how, explain=True)
    lazy = lazy[list(how.settle(lazy).channels)]
    find(how, lazy, folder, request={}, explain=True, cluster=where)
    write(how, lazy, folder, output, definition="made", attributes={}, command="made", tables=tables)
    with open_masks(output) as masks:
        return masks[LABELS].load()


def tables_in(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(folder.glob("*.csv"))}


# What must change nothing.


@every_preset
def test_a_roll_of_the_longitudes_rolls_the_masks(preset: str, fields: xr.Dataset, made: Made) -> None:
    step = fields.isel(time=[1])
    masks = made(preset, STEP_BY_STEP)(step).values
    assert {BACKGROUND, TROPICAL_CYCLONE, ATMOSPHERIC_RIVER} == set(np.unique(masks).tolist())
    for shift in (1, 77, 90, 179):
        rolled = step.map(lambda v, by=shift: v.copy(data=np.roll(v.values, by, axis=2)))
        again = made(preset, STEP_BY_STEP, shift=shift)(rolled).values
        np.testing.assert_array_equal(again, np.roll(masks, shift, axis=2))


@every_definition
def test_a_file_from_north_to_south_and_from_180_west_gets_the_same_masks_in_its_own_order(
    preset: str, fields: xr.Dataset, tmp_path: Path
) -> None:
    turned = fields.isel(lat=slice(None, None, -1)).roll(lon=90, roll_coords=True)
    turned = turned.assign_coords(lon=(turned["lon"] + 180.0) % 360.0 - 180.0)
    assert turned["lat"].values[0] == 90.0
    assert turned["lon"].values[0] == -180.0
    found = {}
    for name, ds in (("plain", fields), ("turned", turned)):
        ds.to_netcdf(tmp_path / f"{name}.nc")
        paths = [f"input={tmp_path / f'{name}.nc'}", f"output={tmp_path / f'{name}_masks.nc'}"]
        options = [f"labels={preset}", STEP_BY_STEP, *PRESETS[preset], "cluster.workers=1"]
        if preset == "guan_waliser":
            options.append(f"labels.rivers.climatology={quiet(LAT_2, LON_2, tmp_path / 'usual.nc')}")
        assert run(["label", *paths, *options]) == 0
        with xr.open_dataset(tmp_path / f"{name}_masks.nc") as masks:
            found[name] = masks[LABELS].load()
    for axis in ("lat", "lon"):
        np.testing.assert_array_equal(found["turned"][axis], turned[axis])
    there = found["plain"].sel(lat=turned["lat"]).sel(lon=turned["lon"].values % 360.0)
    assert (there == TROPICAL_CYCLONE).any()
    np.testing.assert_array_equal(found["turned"], there)


def in_each_chunking(how: Heuristic, ds: xr.Dataset, folder: Path, where: Where, lengths: tuple[int, ...]) -> None:
    """Masks and tables are those of the heuristic in memory, however many steps a chunk has."""
    in_memory, tables = how(ds), []
    for length in lengths:
        part = folder / str(length)
        part.mkdir(parents=True)
        np.testing.assert_array_equal(in_passes(how, ds.chunk(time=length), part / "masks.nc", where), in_memory)
        tables.append(tables_in(part))
    assert sorted(tables[0]) == ["masks_candidates.csv", "masks_cyclones.csv", "masks_rivers.csv"]
    assert all(table == tables[0] for table in tables)


@every_definition
def test_chunks_in_time_change_nothing(
    preset: str, fields: xr.Dataset, made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "_WORTH_A_TASK", 1)  # every chunk is a task
    in_each_chunking(made(preset, STEP_BY_STEP), fields, tmp_path, cluster.in_process, (1, 2, 3))


def test_a_second_process_changes_nothing(
    fields: xr.Dataset, made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "_WORTH_A_TASK", 1)
    with cluster.local(2) as workers:  # the same for all: starting them takes seconds
        for preset in PRESETS:
            how = made(preset, STEP_BY_STEP)
            in_each_chunking(how, fields, tmp_path / preset, lambda: nullcontext(workers), (1,))


@every_definition
def test_another_calendar_makes_the_same_masks_and_tracks(
    preset: str, three_days: xr.Dataset, made: Made, tmp_path: Path
) -> None:
    times = xr.date_range("2001-09-01", periods=7, freq="12h", calendar="noleap", use_cftime=True)
    assert isinstance(times[0], cftime.DatetimeNoLeap)
    other = three_days.assign_coords(time=("time", times, three_days["time"].attrs))
    found = {}
    for name, ds in (("standard", three_days), ("noleap", other)):
        (tmp_path / name).mkdir()
        masks = in_passes(made(preset), ds, tmp_path / name / "masks.nc")
        assert (masks["time"].dt.calendar == "noleap") is (name == "noleap")
        found[name] = masks.values, tables_in(tmp_path / name)
    np.testing.assert_array_equal(found["standard"][0], found["noleap"][0])
    assert found["standard"][1] == found["noleap"][1]
    assert len(found["standard"][1]["masks_tracks.csv"].splitlines()) > 7


# Missing and impossible values.


@every_definition
def test_a_missing_value_in_any_channel_is_missing_there(preset: str, fields: xr.Dataset, made: Made) -> None:
    how, one_step = made(preset, STEP_BY_STEP), fields.isel(time=[1])
    holes = {"one": np.zeros((91, 180), dtype=bool), "many": np.random.default_rng(0).random((91, 180)) < 0.3}
    holes["one"][60, 40] = True
    for channel in how.settle(fields).channels:
        for name, hole in holes.items():
            holed = one_step.assign({channel: one_step[channel].where(~hole)})
            found = how(holed).values[0]
            assert np.all(found[hole] == MISSING_LABEL), (channel, name)
            # TempestExtremes cannot tell rivers either where the ring round a cell needs the value.
            assert name == "many" or np.mean(found == MISSING_LABEL) < (0.01 if preset == "tempestextremes" else 1e-4)


@every_definition
def test_a_channel_or_all_missing_in_one_step_leaves_the_other_steps_as_they_are(
    preset: str, fields: xr.Dataset, made: Made
) -> None:
    how = made(preset, STEP_BY_STEP)
    masks, whole = how(fields).values, xr.DataArray([True, False, True], dims="time")
    for channels in ([how.settle(fields).channels[0]], [how.settle(fields).channels[-1]], list(fields.data_vars)):
        found = how(fields.assign({c: fields[c].where(whole) for c in channels})).values
        assert np.all(found[1] == MISSING_LABEL)
        np.testing.assert_array_equal(found[[0, 2]], masks[[0, 2]])


@pytest.mark.parametrize("value", [np.inf, -np.inf])
@every_definition
def test_infinite_values_are_refused_in_memory_as_from_files(
    preset: str, value: float, fields: xr.Dataset, made: Made
) -> None:
    how = made(preset, STEP_BY_STEP)
    for channel in how.settle(fields).channels:
        wrong = fields.copy(deep=True)
        wrong[channel].values[1, 60, 40] = value
        with pytest.raises(InputError, match=rf"channel {channel} runs from .*inf.* at 2001-09-01T06:00:00"):
            how(wrong)
    every = fields.assign(PSL=fields["PSL"].where(fields["PSL"] < 0, value))
    with pytest.raises(InputError, match="channel PSL runs from"):
        how(every)


# The combination, by definitions made for it: rivers everywhere, and a storm at 20N 120E.

LAT, LON = np.arange(-88.0, 90.0, 4.0), np.arange(0.0, 360.0, 4.0)
PLACE = (20.0, 120.0)


@needs(lambda: Needs(("TMQ",)))
def rivers_everywhere(step: Step) -> Rivers:
    mask = np.ones((step.lat.size, step.lon.size), dtype=bool)
    one = np.zeros(1)
    return Rivers(mask, ~mask, RegionTable({"lat": one, "lon": one}, {"area": one > 0}))


@criteria("wind", "warm core")
@needs(lambda: Needs(("PSL",)))
def storm_where_pressure_says(step: Step) -> list[Candidate]:
    """A candidate at the place; its pressure in hPa over 1000 says what rejects it: 1 wind, 2 the core, 5 no storm."""
    row, column = int(np.flatnonzero(step.lat == PLACE[0])[0]), int(np.flatnonzero(step.lon == PLACE[1])[0])
    code = round(float(step.fields["PSL"][row, column]) / 100.0) - 1000
    rejected_by = {0: (), 1: ("wind",), 2: ("warm core",)}
    return [Candidate(row, column, *PLACE, rejected_by=rejected_by[code])] if code in rejected_by else []


@needs(lambda: Needs(()))
def one_cell(step: Step, candidate: Candidate) -> StormRegion:
    window, distance = within(step.lat, step.lon, candidate.lat, candidate.lon, 4.0)
    return StormRegion(window, distance == 0.0, 1.0)


MADE = Heuristic("made", rivers_everywhere, Cyclones(storm_where_pressure_says, one_cell), 8.0)


def by_codes(canonical: Callable[..., xr.Dataset], *codes: int) -> xr.Dataset:
    shape = (LAT.size, LON.size)
    steps = [{"TMQ": np.full(shape, 20.0), "PSL": np.full(shape, 1e5 + 100.0 * code)} for code in codes]
    return canonical(LAT, LON, *steps)


def away() -> Floats:
    return np.degrees(great_circle_distance(*PLACE, LAT[:, None], LON[None, :]) / EARTH_RADIUS)


def test_rivers_end_8_degrees_from_a_storm_in_the_steps_where_it_counts_and_in_no_other(
    canonical: Callable[..., xr.Dataset],
) -> None:
    masks = MADE(by_codes(canonical, 0, 1, 5, 2, 0)).values
    expected = np.where(away() < 1.0, TROPICAL_CYCLONE, np.where(away() <= 8.0 + 1e-6, BACKGROUND, ATMOSPHERIC_RIVER))
    for step in (0, 4):
        np.testing.assert_array_equal(masks[step], expected)
    # What is rejected removes nothing, and no storm neither.
    assert np.all(masks[1:4] == ATMOSPHERIC_RIVER)


def test_with_tracks_rivers_end_in_every_step_of_the_track_and_nowhere_else(
    canonical: Callable[..., xr.Dataset],
) -> None:
    rule = TrackRule(max_degrees=8.0, lasting={"wind": {"criteria": ["wind"], "hours": 18.0}})
    assert MADE.cyclones is not None
    tracked = replace(MADE, cyclones=replace(MADE.cyclones, tracks=rule))
    # Four points of a track, one of them without the wind; then a break, and a track that is too short.
    masks = tracked(by_codes(canonical, 0, 0, 1, 0, 2, 5, 0, 0)).values
    near = (away() <= 8.0) & (away() > 1.0)
    assert [bool((mask[near] == BACKGROUND).all()) for mask in masks] == [True] * 4 + [False] * 4
    assert all((mask[near] == ATMOSPHERIC_RIVER).all() for mask in masks[4:])


def test_no_distance_leaves_all_rivers_but_the_cells_of_the_storm(canonical: Callable[..., xr.Dataset]) -> None:
    (mask,) = replace(MADE, rivers_end_within_degrees=0.0)(by_codes(canonical, 0)).values
    np.testing.assert_array_equal(mask == TROPICAL_CYCLONE, away() < 1.0)
    np.testing.assert_array_equal(mask == ATMOSPHERIC_RIVER, away() > 1.0)


def test_one_part_alone_marks_its_own_and_neither_is_refused(canonical: Callable[..., xr.Dataset]) -> None:
    ds = by_codes(canonical, 0)
    assert (replace(MADE, cyclones=None)(ds) == ATMOSPHERIC_RIVER).all()
    assert (replace(MADE, rivers=None)(ds) == TROPICAL_CYCLONE).sum() == 1
    with pytest.raises(InputError, match=r"labels\.rivers and labels\.cyclones are both null"):
        Heuristic("nothing")


# Stand-ins, what is refused, what is said.


def test_temperature_and_then_thickness_stand_in_for_heights_and_the_definition_says_so(fields: xr.Dataset) -> None:
    how = heuristic("tempestextremes", STEP_BY_STEP)
    assert "in place of" not in how(fields).attrs["definition"]
    by_temperature = how(fields.drop_vars(["Z300", "Z500"]))
    assert "(T200 + T500)/2 in place of Z300 - Z500" in by_temperature.attrs["definition"]
    by_thickness = how(fields.drop_vars(["Z300", "T500"]))
    assert "Z200 - Z1000 in place of Z300 - Z500" in by_thickness.attrs["definition"]
    for masks in (by_temperature, by_thickness):
        assert (masks == TROPICAL_CYCLONE).any()
    with pytest.raises(InputError, match=r"no channel Z300, Z500; .*set labels\.cyclones=null to label rivers alone"):
        how(fields.drop_vars(["Z300", "Z500", "T200", "Z1000"]))


def test_the_16_channels_of_cam5_lack_the_transport_and_cyclones_alone_are_offered(
    fields: xr.Dataset, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cam5 = fields[list(CAM5_CHANNELS)]
    mend = (
        "Atmospheric rivers need that; take labels/rivers=kurth2018, which looks at TMQ, or set labels.rivers=null to "
        "label cyclones alone."
    )
    with pytest.raises(InputError, match=rf"no channel IVT; .*{mend}"):
        heuristic("tempestextremes", STEP_BY_STEP)(cam5)
    cam5.to_netcdf(tmp_path / "a.nc")
    command = ["label", f"input={tmp_path / 'a.nc'}", f"output={tmp_path / 'masks.nc'}", "labels=tempestextremes"]
    command += [STEP_BY_STEP, "cluster.workers=1"]
    assert run(command) == 2
    error = capsys.readouterr().err
    assert "IVT" in error
    assert mend in error
    assert run([*command, "labels.rivers=null"]) == 0
    with open_masks(tmp_path / "masks.nc") as masks:
        assert set(np.unique(masks[LABELS]).tolist()) == {BACKGROUND, TROPICAL_CYCLONE}
        definition = masks[LABELS].attrs["definition"]
    assert "atmospheric rivers: not looked for" in definition
    assert "(T200 + T500)/2 in place of Z300 - Z500" in definition


def test_without_tmq_the_rivers_that_look_at_it_are_not_offered(fields: xr.Dataset) -> None:
    how = heuristic("kurth2018", WITH_CYCLONES, STEP_BY_STEP)
    with pytest.raises(
        InputError, match=r"no channel TMQ; .*set labels\.rivers=null to label cyclones alone"
    ) as refusal:
        how(fields.drop_vars("TMQ"))
    assert "labels/rivers=kurth2018" not in str(refusal.value)


def test_where_both_parts_lack_a_channel_neither_is_offered_alone(fields: xr.Dataset) -> None:
    with pytest.raises(InputError, match=r"no channel PSL, IVT|no channel IVT, PSL") as refusal:
        heuristic("tempestextremes", STEP_BY_STEP)(fields.drop_vars(["IVT", "PSL"]))
    assert "null" not in str(refusal.value)


@every_preset
def test_the_definition_lists_every_threshold_with_its_value(preset: str, fields: xr.Dataset, made: Made) -> None:
    how = made(preset)
    said = how.definition(how.needs.settle([str(name) for name in fields.data_vars]))
    assert said.startswith(f"{preset} ({how.reference}); atmospheric rivers: rivers_")
    assert how.cyclones is not None
    for part in (how.rivers, how.cyclones.candidates, how.cyclones.region):
        assert isinstance(part, partial)
        for name, value in part.keywords.items():
            assert (f"{name} {value:g}" if isinstance(value, int | float) else f"{name} {value}") in said
    assert "tracks: max_" in said
    alone = made(preset, STEP_BY_STEP)(fields)
    assert "tracks: none, each time step by itself" in alone.attrs["definition"]
    assert alone.attrs["flag_meanings"] == LABEL_ATTRIBUTES["flag_meanings"]


@pytest.mark.parametrize(
    ("option", "suggestion"),
    [
        ("labels.rivers.treshold=20", "labels.rivers.threshold"),
        ("labels.cyclones.candidates.min_vortcity=1e-4", "labels.cyclones.candidates.min_vorticity"),
        ("labels.cyclones.track=null", "labels.cyclones.tracks"),
        ("labels=kurth2108", "kurth2018"),
        ("labels/cyclones=tecca", "teca"),
    ],
)
def test_an_unknown_option_is_refused_and_a_near_one_suggested(
    option: str, suggestion: str, fields: xr.Dataset, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fields.isel(time=[0]).to_netcdf(tmp_path / "a.nc")
    assert run(["label", f"input={tmp_path / 'a.nc'}", f"output={tmp_path / 'masks.nc'}", option]) == 2
    error = capsys.readouterr().err
    assert option.partition("=")[0].rpartition(".")[2] in error
    assert f"did you mean '{suggestion}" in error
    assert [path.name for path in tmp_path.iterdir()] == ["a.nc"]


@pytest.mark.parametrize(("step", "warns"), [(1.0, False), (2.5, True)])
def test_a_coarse_grid_is_named_with_what_loses_its_meaning(step: float, warns: bool) -> None:
    lat, lon = np.arange(-90.0, 90.1, step), np.arange(0.0, 360.0, step)
    warning = heuristic("kurth2018").coarse_warning(lat, lon)
    assert ("2.5 degrees is coarse, and the thresholds of kurth2018 are for 0.25 degrees" in warning) is warns
    assert ("widths and areas of rivers" in warning and "warm core of cyclones" in warning) is warns
    assert "cyclones" not in heuristic("bard").coarse_warning(lat, lon)
    assert heuristic("kurth2018_coarse").coarse_warning(lat, lon) == ""  # made for 2.5 degrees


# Grids of every shape.


def gaussian(rows: int) -> Floats:
    return np.degrees(np.arcsin(np.polynomial.legendre.leggauss(rows)[0]))


GRIDS: dict[str, tuple[Floats, Floats]] = {
    "2 x 2": (np.array([10.0, 12.0]), np.array([100.0, 102.0])),
    "2 x 3": (np.array([10.0, 12.0]), np.array([100.0, 102.0, 104.0])),
    "3 x 2": (np.array([10.0, 12.0, 14.0]), np.array([100.0, 102.0])),
    "3 x 3": (np.array([10.0, 12.0, 14.0]), np.array([100.0, 102.0, 104.0])),
    "two closed rows": (np.array([-1.0, 1.0]), np.arange(0.0, 360.0, 2.0)),
    "the two poles": (np.array([-90.0, 90.0]), np.arange(0.0, 360.0, 10.0)),
    "30 degrees": (np.arange(-90.0, 91.0, 30.0), np.arange(0.0, 360.0, 30.0)),
    "three closed columns": (np.array([-60.0, 0.0, 60.0]), np.array([0.0, 120.0, 240.0])),
    "two columns from pole to pole": (np.arange(-90.0, 91.0, 2.0), np.array([0.0, 2.0])),
    "polar cap": (np.arange(60.0, 91.0, 2.0), np.arange(0.0, 360.0, 2.0)),
    "Gaussian": (gaussian(96), np.arange(0.0, 360.0, 1.875)),
    "cell centres": (np.arange(-89.0, 90.0, 2.0), np.arange(1.0, 360.0, 2.0)),
    "to 60 degrees": (np.arange(-60.0, 61.0, 1.5), np.arange(0.0, 360.0, 1.5)),
    "0.5 x 0.625": (np.arange(-90.0, 90.1, 0.5), np.arange(0.0, 360.0, 0.625)),
    "all columns but one": (np.arange(-90.0, 91.0, 2.0), np.arange(0.0, 358.0, 2.0)),
    "over Greenwich": (np.arange(-30.0, 31.0, 2.0), np.arange(330.0, 392.0, 2.0)),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("grid", GRIDS)
def test_every_grid_gives_a_result_without_a_warning(grid: str, tmp_path: Path) -> None:
    lat, lon = GRIDS[grid]
    ds = make_scene(
        [scenes.START],
        lat,
        lon,
        cyclones=list(scenes.EVERYTHING.cyclones.values()),
        rivers=list(scenes.EVERYTHING.rivers.values()),
        decoys=list(scenes.EVERYTHING.decoys.values()),
        start=scenes.START,
        land=True,
    )
    axes = {"month": np.arange(1, 13), "lat": lat, "lon": lon}
    xr.Dataset({PERCENTILE: (tuple(axes), np.full((12, lat.size, lon.size), 150.0))}, coords=axes).to_netcdf(
        tmp_path / "usual.nc"
    )
    for preset, options in PRESETS.items():
        how = composed(preset, STEP_BY_STEP, *options)
        how = with_climatology(how, tmp_path / "usual.nc") if preset == "guan_waliser" else how
        masks = how(ds).values
        assert set(np.unique(masks).tolist()) <= {MISSING_LABEL, BACKGROUND, TROPICAL_CYCLONE, ATMOSPHERIC_RIVER}
        if min(lat.size, lon.size) > 60:
            assert (masks == ATMOSPHERIC_RIVER).any()


@pytest.mark.parametrize("axis", ["lat", "lon"])
def test_a_single_row_or_column_is_refused_in_one_sentence(
    axis: str, fields: xr.Dataset, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fields.isel({axis: [40]}).to_netcdf(tmp_path / "a.nc")
    assert run(["label", f"input={tmp_path / 'a.nc'}", f"output={tmp_path / 'masks.nc'}", STEP_BY_STEP]) == 2
    assert f"{axis} has a single point; expected a grid of at least 2 x 2" in capsys.readouterr().err


@pytest.mark.parametrize("west", [-30.0, 330.0])
def test_a_climatology_of_a_cut_over_greenwich_fits_the_cut(west: float, tmp_path: Path) -> None:
    ds = scenes.EVERYTHING.on(2.0, south_north=(-60.0, 20.0), west_east=(-30.0, 30.0)).drop_vars(LABELS)
    assert ds["lon"].values[0] == 330.0
    file = quiet(ds["lat"].values, west + np.arange(0.0, 61.0, 2.0), tmp_path / "usual.nc")
    masks = with_climatology(composed("guan_waliser"), file)(ds)
    assert (masks == ATMOSPHERIC_RIVER).any()


def test_lazy_fields_stay_lazy(fields: xr.Dataset) -> None:
    lazy = fields.isel(time=[1]).chunk(time=1)
    heuristic("kurth2018", STEP_BY_STEP)(lazy)
    assert all(field.chunks is not None for field in lazy.values())


def test_dates_are_those_of_the_input(fields: xr.Dataset) -> None:
    masks = heuristic("kurth2018", STEP_BY_STEP)(fields)
    assert masks.dims == ("time", "lat", "lon")
    assert masks.dtype == np.int8
    assert pd.DatetimeIndex(masks["time"].values).equals(pd.date_range(scenes.START, periods=3, freq="6h"))
