"""``climseg label``: what it reads, what it refuses, what it lets pass, and what it writes for each preset."""

import csv
import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from climseg.atomic import sole_writer
from climseg.channels import ATMOSPHERIC_RIVER, LABELS, TROPICAL_CYCLONE
from climseg.cli.labelling import heuristic
from climseg.cli.main import run
from climseg.labels.heuristic import Heuristic
from climseg.labels.spool import spool_path, write_findings
from climseg.masks import open_masks
from climseg.synthetic import make_atmosphere
from tests.labels import scenes

PRESETS = ("kurth2018", "kurth2018_coarse", "tempestextremes", "bard", "guan_waliser")
FEW_STEPS = "labels.rivers.min_steps=10"


def _label(ds: xr.Dataset, folder: Path, *words: str) -> int:
    ds.to_netcdf(folder / "a.nc")
    return run(["label", f"input={folder / 'a.nc'}", f"output={folder / 'masks.nc'}", *words])


def _masks(folder: Path) -> xr.Dataset:
    with open_masks(folder / "masks.nc") as masks:
        return masks.load()


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture(scope="module")
def fields(atmosphere: xr.Dataset) -> xr.Dataset:
    """Five steps of twelve hours: just the 48 hours that a track of kurth2018 needs."""
    return atmosphere.isel(time=slice(0, 5)).drop_vars(LABELS)


@pytest.fixture(scope="module")
def scene() -> xr.Dataset:
    """Five storms, four rivers and all decoys at 2 degrees, every 6 hours for three days."""
    return scenes.EVERYTHING.on(2.0, hours=[6.0 * step for step in range(13)]).drop_vars(LABELS)


@pytest.fixture(scope="module")
def scene_file(scene: xr.Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file: Path = tmp_path_factory.mktemp("scene") / "a.nc"
    scene.to_netcdf(file)
    return file


@pytest.fixture
def label(scene_file: Path, tmp_path: Path) -> Any:
    """``label(*words)``: label the scene into ``masks.nc``; the exit code."""
    return lambda *words: run(["label", f"input={scene_file}", f"output={tmp_path / 'masks.nc'}", *words])


def test_the_channels_that_the_heuristic_takes_are_read_and_no_others(fields: xr.Dataset, tmp_path: Path) -> None:
    assert _label(fields, tmp_path) == 0
    masks = _masks(tmp_path)
    how = heuristic("kurth2018")
    assert set(masks.attrs["channels"].split()) == set(how.needs.channels)
    assert len(how.needs.channels) == 11
    np.testing.assert_array_equal(masks[LABELS], how(fields))


def test_channels_that_are_given_are_all_there_is(
    fields: xr.Dataset, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _label(fields, tmp_path, "labels.cyclones=null", "source.channels=[PSL,TMQ]") == 0
    assert _masks(tmp_path).attrs["channels"] == "TMQ"
    capsys.readouterr()
    assert _label(fields, tmp_path, "source.channels=[PSL,TMQ]") == 2
    error = capsys.readouterr().err
    assert "source.channels has no channel U850" in error
    assert "set labels.cyclones=null to label rivers alone" in error
    assert _label(fields, tmp_path, "labels.cyclones=null", "source.channels=PSL") == 2
    assert "source.channels has no channel TMQ, which labels=kurth2018 takes; name it too" in capsys.readouterr().err


def test_what_stands_in_is_chosen_among_the_given_channels(scene: xr.Dataset, tmp_path: Path) -> None:
    takes = [*heuristic("tempestextremes", "labels/rivers=null").needs.channels, "T200", "T500"]
    words = ["labels=tempestextremes", "labels/rivers=null", f"source.channels=[{','.join(takes)}]"]
    assert _label(scene, tmp_path, *words) == 0
    masks = _masks(tmp_path)
    assert set(masks.attrs["channels"].split()) == set(takes)
    assert masks[LABELS].attrs["definition"].endswith("; (T200 + T500)/2 in place of Z300 - Z500")


def test_chunks_of_several_steps_give_the_same_masks(fields: xr.Dataset, tmp_path: Path) -> None:
    chunked = fields.copy()
    for name in chunked.data_vars:
        chunked[name].encoding = {"chunksizes": (2, 37, 72)}
    assert _label(chunked, tmp_path) == 0
    np.testing.assert_array_equal(_masks(tmp_path)[LABELS], heuristic("kurth2018")(fields))


def test_values_that_the_unit_cannot_give_are_refused_and_nothing_is_left(
    fields: xr.Dataset, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = fields.copy(deep=True)
    wrong["PSL"][3] /= 100.0
    assert _label(wrong, tmp_path) == 2
    time = str(fields["time"].values[3])[:19]
    error = capsys.readouterr().err
    assert "channel PSL runs from" in error
    assert f"at {time}; in Pa" in error
    assert "look like hPa labelled Pa" in error
    assert _names(tmp_path) == ["a.nc"]


def test_missing_values_pass_and_get_no_class(fields: xr.Dataset, tmp_path: Path) -> None:
    holed = fields.copy(deep=True)
    holed["TMQ"][1, 4, 6] = np.nan
    assert _label(holed, tmp_path) == 0
    missing = _masks(tmp_path)[LABELS].values == -1
    assert missing.sum() == 1
    assert missing[1, 4, 6]


def test_a_channel_that_is_missing_is_named_as_the_files_would_have_it(
    shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["label", f"input={shared / 'era5_cds_new' / '*.nc'}", f"output={tmp_path / 'masks.nc'}"]
    assert run(words) == 2
    error = capsys.readouterr().err
    assert "give it with source.accumulation_hours" in error
    assert run([*words, "source.accumulation_hours=1"]) == 2
    error = capsys.readouterr().err
    assert "U850 needs u at 850 hPa" in error
    assert "labels.cyclones" not in error  # rivers need tcwv, which is missing too


def test_rivers_alone_are_offered_where_they_can_be_had(
    shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["label", f"input={shared / 'gfs' / 'gfs_20041212T12_2p5deg.nc'}", f"output={tmp_path / 'masks.nc'}"]
    assert run(words) == 2
    error = capsys.readouterr().err
    assert "UBOT needs UBOT or U on lowest model level" in error
    assert "set labels.cyclones=null to label rivers alone" in error
    assert run([*words, "labels.cyclones=null"]) == 0


@pytest.mark.parametrize("preset", PRESETS)
def test_each_preset_writes_masks_and_tables(preset: str, label: Any, scene: xr.Dataset, tmp_path: Path) -> None:
    words = [FEW_STEPS] if preset == "guan_waliser" else []
    assert label(f"labels={preset}", "explain=true", *words) == 0
    how = heuristic(preset)
    tables = ["masks_rivers.csv", *(["masks_candidates.csv", "masks_tracks.csv"] if how.cyclones else [])]
    made = ["masks_climatology.nc"] if preset == "guan_waliser" else []
    assert _names(tmp_path) == sorted(["masks.nc", *made, *tables])
    masks = _masks(tmp_path)
    assert masks[LABELS].shape == (13, 91, 180)
    assert masks.attrs["input_files"] == "a.nc"
    taken = how.needs.settle(list(scene.data_vars))
    assert set(masks.attrs["channels"].split()) == set(taken.channels)
    assert "climseg label input=" in masks.attrs["history"]
    assert f"labels={preset} explain=true" in masks.attrs["history"]
    definition = masks[LABELS].attrs["definition"]
    assert definition.startswith(f"{preset} ({how.reference}); atmospheric rivers: ")
    assert ("tropical cyclones: not looked for" in definition) == (how.cyclones is None)
    if preset != "guan_waliser":  # that takes the climatology which the command has made
        np.testing.assert_array_equal(masks[LABELS], how(scene))
    assert (masks[LABELS] == ATMOSPHERIC_RIVER).any() == any(
        row["rejected_by"] == "" for row in _rows(tmp_path / "masks_rivers.csv")
    )
    if how.cyclones:
        tracks, candidates = _rows(tmp_path / "masks_tracks.csv"), _rows(tmp_path / "masks_candidates.csv")
        assert len(tracks) == sum(row["rejected_by"] == "" for row in candidates)
        assert len(tracks) < len(candidates)
        assert bool(tracks) == bool((masks[LABELS] == TROPICAL_CYCLONE).any())


def test_the_storms_and_rivers_of_the_scene_are_marked(label: Any, scene: xr.Dataset, tmp_path: Path) -> None:
    assert label("labels=tempestextremes") == 0
    found = _masks(tmp_path)[LABELS]
    assert {row["track_id"] for row in _rows(tmp_path / "masks_tracks.csv")} == {"1", "2", "3", "4", "5"}
    storm = scenes.EVERYTHING.cyclones["northern"].at(0.0)
    assert int(found[0].sel(lat=storm.lat, lon=storm.lon, method="nearest")) == TROPICAL_CYCLONE
    truth = scenes.EVERYTHING.on(2.0)[LABELS][0]
    assert scenes.river_hits(found[0] == ATMOSPHERIC_RIVER, truth) == [True] * 4


def test_a_climatology_of_the_input_is_made_once_and_taken_again(
    label: Any, scene: xr.Dataset, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert label("labels=guan_waliser", FEW_STEPS) == 0
    file = tmp_path / "masks_climatology.nc"
    made, masks = file.stat().st_mtime_ns, _masks(tmp_path)
    usual = np.percentile(np.hypot(scene["UIVT"], scene["VIVT"]), 85.0, axis=0)
    with xr.open_dataset(file) as climatology:
        np.testing.assert_allclose(climatology["ivt_percentile"].sel(month=9), usual, rtol=1e-5)
    # Thresholds that it does not depend on leave it as it is.
    assert label("labels=guan_waliser", FEW_STEPS, "labels.rivers.min_ivt=150") == 0
    assert file.stat().st_mtime_ns == made
    assert label("labels=guan_waliser", FEW_STEPS, "labels.rivers.percentile=90") == 0
    assert file.stat().st_mtime_ns > made
    # As a file of one's own it gives the masks that the command alone gave.
    assert label("labels=guan_waliser", FEW_STEPS) == 0
    file.rename(tmp_path / "own.nc")
    assert label("labels=guan_waliser", f"labels.rivers.climatology={tmp_path / 'own.nc'}") == 0
    assert not file.exists()
    np.testing.assert_array_equal(_masks(tmp_path)[LABELS], masks[LABELS])
    capsys.readouterr()
    assert label("labels=guan_waliser", f"labels.rivers.climatology={tmp_path / 'own.nc'}", "grid=4deg") == 2
    assert "the grid of the climatology (91 x 180" in capsys.readouterr().err
    assert _names(tmp_path) == ["masks.nc", "own.nc"]


def test_a_climatology_is_refused_where_it_means_nothing_or_would_replace_another_file(
    label: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert label("labels=guan_waliser") == 2
    error = capsys.readouterr().err
    assert "13 time steps lie in the five months round month 9, too few for a percentile (at least 120)" in error
    assert "labels.rivers.climatology=FILE" in error
    assert label("labels=guan_waliser", "labels.rivers.climatology=absent.nc") == 2
    assert "labels.rivers.climatology=absent.nc: there is no such file" in capsys.readouterr().err
    assert _names(tmp_path) == []
    (tmp_path / "masks_climatology.nc").write_text("mine")
    assert label("labels=guan_waliser", FEW_STEPS) == 2
    assert "climseg did not make it" in capsys.readouterr().err
    assert (tmp_path / "masks_climatology.nc").read_text() == "mine"
    assert _names(tmp_path) == ["masks_climatology.nc"]


def test_rivers_of_one_heuristic_and_cyclones_of_another_go_together(
    label: Any, scene: xr.Dataset, tmp_path: Path
) -> None:
    words = ["labels/rivers=kurth2018_coarse", "labels/cyclones=tempestextremes"]
    assert label(*words) == 0
    both = _masks(tmp_path)[LABELS]
    assert label(*words, "labels.rivers=null") == 0
    cyclones = _masks(tmp_path)
    assert "atmospheric rivers: not looked for" in cyclones[LABELS].attrs["definition"]
    assert "TMQ" not in cyclones.attrs["channels"].split()
    assert label(*words, "labels/cyclones=null") == 0
    rivers = _masks(tmp_path)
    assert rivers.attrs["channels"] == "TMQ"
    np.testing.assert_array_equal(both == TROPICAL_CYCLONE, cyclones[LABELS] == TROPICAL_CYCLONE)
    expected = xr.where(cyclones[LABELS] == TROPICAL_CYCLONE, TROPICAL_CYCLONE, rivers[LABELS])
    np.testing.assert_array_equal(both, expected)


def test_each_step_by_itself_needs_no_time(
    scene: xr.Dataset, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    alone, words = scene.isel(time=[0]), ["labels=tempestextremes", "labels/rivers=null"]
    assert _label(alone, tmp_path, *words) == 2
    assert "the input has a single time step" in capsys.readouterr().err
    assert _names(tmp_path) == ["a.nc"]
    assert _label(alone, tmp_path, *words, "labels.cyclones.tracks=null") == 0
    assert len(_rows(tmp_path / "masks_cyclones.csv")) == 5


def test_hours_of_a_criterion_are_options(
    scene: xr.Dataset, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["labels=tempestextremes", "labels/rivers=null"]
    day = scene.isel(time=slice(0, 5))
    assert _label(day, tmp_path, *words) == 2
    assert "the input has 24 hours without a gap at most" in capsys.readouterr().err
    tracks = "labels.cyclones.tracks"
    shorter = [f"{tracks}.min_hours=18", *(f"{tracks}.lasting.{n}.hours=24" for n in ("wind", "latitude", "height"))]
    assert _label(day, tmp_path, *words, *shorter) == 0
    assert {row["track_id"] for row in _rows(tmp_path / "masks_tracks.csv")} == {"1", "2", "3", "4", "5"}
    assert "wind in 24 hours" in _masks(tmp_path)[LABELS].attrs["definition"]


def test_a_gap_cuts_the_time_for_tracks(scene: xr.Dataset, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    holed = scene.isel(time=[0, 1, 2, 3, 4, 5, 9, 10, 11, 12])
    assert _label(holed, tmp_path, "labels/rivers=null") == 2  # TECA's points follow each other without a gap
    error = capsys.readouterr().err
    assert "30 hours without a gap at most" in error
    assert "at least 42 hours" in error
    assert _label(holed, tmp_path, "labels/rivers=null", "labels/cyclones=tempestextremes") == 0
    assert {row["track_id"] for row in _rows(tmp_path / "masks_tracks.csv")} == {"1", "2", "3", "4", "5"}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["labels.rivers=null", "labels.cyclones=null"], "are both null"),
        (["labels=bard", "labels/rivers=null"], "are both null"),
        (["output=FILE", "labels/rivers=null"], "is an input file too"),
        (["output=FOLDER"], "a name that ends in .nc"),
        (["output=/proc/masks.nc"], "cannot be written"),
    ],
)
def test_a_mistake_ends_with_a_sentence(
    words: list[str],
    sentence: str,
    label: Any,
    scene_file: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert label(*(w.replace("FILE", str(scene_file)).replace("FOLDER", str(tmp_path)) for w in words)) == 2
    assert sentence in capsys.readouterr().err
    assert _names(tmp_path) == []


def test_an_output_in_a_folder_that_is_not_there_makes_it(scene_file: Path, tmp_path: Path) -> None:
    output = tmp_path / "new" / "folder" / "masks.nc"
    assert run(["label", f"input={scene_file}", f"output={output}", "labels/cyclones=null"]) == 0
    assert _names(output.parent) == ["masks.nc"]


def test_two_commands_do_not_write_the_same_output(
    label: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with sole_writer(spool_path(tmp_path / "masks.nc")):
        assert label("labels/cyclones=null") == 2
    assert "is being written by another process" in capsys.readouterr().err
    assert _names(tmp_path) == []


@pytest.fixture
def done_steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list that fills with the time steps that are looked at, here and not in other processes."""
    done: list[int] = []
    original = functools.partial(write_findings)

    def spy(folder: Path, index: int, findings: Any) -> None:
        done.append(index)
        original(folder, index, findings)

    monkeypatch.setattr("climseg.labels.run.write_findings", spy)
    return done


@pytest.fixture
def interrupted(label: Any, done_steps: list[int], monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that labels rivers with some words and is interrupted when all steps have been looked at."""

    def run_into_it(*words: str) -> None:
        def stop(self: Heuristic, *rest: Any) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as within:
            within.setattr(Heuristic, "link", stop)
            assert label("labels/cyclones=null", *words) == 130
        assert done_steps == list(range(13))
        done_steps.clear()

    return run_into_it


def test_an_interrupted_command_says_so_in_a_line_and_goes_on_later(
    interrupted: Any, label: Any, done_steps: list[int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    interrupted()
    error = capsys.readouterr().err
    assert error.splitlines()[-1] == "climseg: interrupted"
    assert "Traceback" not in error
    assert _names(tmp_path) == [".masks.nc.steps"]
    assert label("labels/cyclones=null") == 0
    assert done_steps == []
    assert _names(tmp_path) == ["masks.nc"]


@pytest.mark.parametrize("words", [["explain=false"], ["explain=true", "labels.rivers.threshold=21"]])
def test_another_request_does_not_go_on_with_what_an_interrupted_one_left(
    words: list[str], interrupted: Any, label: Any, done_steps: list[int]
) -> None:
    interrupted("explain=true")
    assert label("labels/cyclones=null", *words) == 0
    assert done_steps == list(range(13))


def test_steps_of_another_version_or_of_a_changed_option_file_are_not_taken(
    interrupted: Any, label: Any, done_steps: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as within:
        within.setattr("climseg.__version__", "0.0.1")
        interrupted()
    assert label("labels/cyclones=null") == 0
    assert done_steps == list(range(13))
    done_steps.clear()
    choices = tmp_path / "choices.csv"
    choices.write_text("quantile,hwhm_degrees,min_area_km2\n0.9,10,1e6\n")
    words = ["labels/rivers=bard", f"labels.rivers.parameters={choices}"]
    interrupted(*words)
    choices.write_text("quantile,hwhm_degrees,min_area_km2\n0.95,10,1e6\n")
    assert label("labels/cyclones=null", *words) == 0
    assert done_steps == list(range(13))


def test_files_of_synthesize_with_more_channels_can_be_labelled_by_tempestextremes(tmp_path: Path) -> None:
    words = ["steps=12", "spacing=5", "more_channels=true", "start=2001-08-01"]
    assert run(["synthesize", f"output={tmp_path / 'made'}", *words]) == 0
    output = tmp_path / "masks.nc"
    assert run(["label", f"input={tmp_path / 'made' / '*.nc'}", f"output={output}", "labels=tempestextremes"]) == 0
    masks = _masks(tmp_path)
    assert masks.attrs["input_files"].endswith("(12 files)")
    definition = masks[LABELS].attrs["definition"]
    assert "in place of" not in definition
    times = [np.datetime64("2001-08-01T00") + np.timedelta64(6 * step, "h") for step in range(12)]
    made = make_atmosphere(times, np.linspace(-90, 90, 37), np.arange(0, 360, 5.0), more_channels=True)
    np.testing.assert_array_equal(masks[LABELS], heuristic("tempestextremes")(made.drop_vars(LABELS)))
