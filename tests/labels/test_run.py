"""Long inputs in three passes: the same as in memory, resumable, complete or not there."""

import csv
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import huracanpy
import numpy as np
import pandas as pd
import pytest
import xarray as xr

from climseg import blocks, cluster
from climseg.channels import LABELS, TROPICAL_CYCLONE
from climseg.cli.labelling import heuristic
from climseg.errors import InputError
from climseg.grid import great_circle_distance
from climseg.labels import run as passes
from climseg.labels.heuristic import Heuristic
from climseg.labels.run import find, table_paths, write
from climseg.labels.spool import open_spool, spool_path
from climseg.masks import open_masks
from tests.labels import scenes

HOURS = tuple(float(h) for h in range(0, 73, 6))


@pytest.fixture(scope="module")
def three_days() -> xr.Dataset:
    """Five storms and all decoys at 1 degree, every 6 hours for three days."""
    return scenes.EVERYTHING.on(1.0, hours=HOURS).drop_vars(LABELS)


@pytest.fixture(scope="module")
def storms() -> Heuristic:
    return heuristic("tempestextremes", "labels.rivers=null")


@pytest.fixture(autouse=True)
def blocks_of_two_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "_WORTH_A_TASK", 2 * 8 * 4 * 181 * 360)


def label(how: Heuristic, ds: xr.Dataset, output: Path, *, explain: bool = False, **options: Any) -> xr.Dataset:
    """Both functions, as ``climseg label`` calls them; returns the masks, loaded."""
    fields = ds[list(how.settle(ds).channels)]
    lazy = fields.chunk(time=1)
    folder = spool_path(output)
    find(how, lazy, folder, request={"a": 1}, explain=explain, **options)
    tables = table_paths(output, how, explain)
    write(how, lazy, folder, output, definition="made", attributes={}, command="made", tables=tables)
    with open_masks(output) as masks:
        return masks.load()


def rows(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def test_the_passes_give_what_the_heuristic_gives_in_memory(
    three_days: xr.Dataset, storms: Heuristic, tmp_path: Path
) -> None:
    masks = label(storms, three_days, tmp_path / "masks.nc")
    np.testing.assert_array_equal(masks[LABELS], storms(three_days))
    assert (masks[LABELS] == TROPICAL_CYCLONE).any("lat").any("lon").all()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["masks.nc", "masks_tracks.csv"]


def test_two_processes_give_the_same_files(three_days: xr.Dataset, storms: Heuristic, tmp_path: Path) -> None:
    one = label(storms, three_days, tmp_path / "one.nc")
    two = label(storms, three_days, tmp_path / "two.nc", cluster=partial(cluster.local, 2))
    xr.testing.assert_identical(one[LABELS], two[LABELS])
    assert (tmp_path / "one_tracks.csv").read_text() == (tmp_path / "two_tracks.csv").read_text()


def test_huracanpy_loads_the_tracks_and_they_follow_the_storms(
    three_days: xr.Dataset, storms: Heuristic, tmp_path: Path
) -> None:
    label(storms, three_days, tmp_path / "masks.nc")
    tracks = huracanpy.load(str(tmp_path / "masks_tracks.csv"))
    assert sorted(set(tracks.track_id.values.tolist())) == [1, 2, 3, 4, 5]
    assert set(tracks.time.values) == set(three_days.time.values)
    hours = (tracks.time.values - np.datetime64(scenes.START)) / np.timedelta64(1, "h")
    for name, cyclone in scenes.EVERYTHING.cyclones.items():
        own = [cyclone.at(h) for h in hours]
        away = great_circle_distance([s.lat for s in own], [s.lon for s in own], tracks.lat, tracks.lon)
        near = away < 120e3  # a cell and a bit
        assert near.sum() == len(HOURS), name
        assert len(set(tracks.track_id.values[near].tolist())) == 1, name
    assert np.all(tracks.psl_pa < 99_500.0)
    assert np.all(tracks.wind_m_per_s > 17.0)
    assert np.all((tracks.radius_degrees > 2.0) & (tracks.radius_degrees < 6.0))


def test_explanations_name_what_rejects_each_decoy(three_days: xr.Dataset, storms: Heuristic, tmp_path: Path) -> None:
    label(storms, three_days, tmp_path / "masks.nc", explain=True)
    table = rows(tmp_path / "masks_candidates.csv")
    first = [row for row in table if row["time"] == "2001-09-01T00:00:00"]
    assert sum(row["rejected_by"] == "" for row in first) == 5
    lows = {"cold northern low": (50.0, 348.0), "cold southern low": (-48.0, 200.0), "heat low": (24.0, 30.0)}
    for name, (lat, lon) in lows.items():
        near = [r for r in first if great_circle_distance(lat, lon, float(r["lat"]), float(r["lon"])) < 300e3]
        reasons = {r["rejected_by"] for r in near}
        assert reasons and "" not in reasons, name
        assert any("warm core" in r or "closed contour" in r for r in reasons), name


def test_an_interrupted_run_goes_on_and_gives_the_same(
    three_days: xr.Dataset, storms: Heuristic, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = label(storms, three_days, tmp_path / "whole.nc")
    looked_at: list[int] = []
    original = passes.write_findings

    def stop_at_five(folder: Path, index: int, findings: Any) -> None:
        if len(looked_at) == 5:
            raise KeyboardInterrupt
        looked_at.append(index)
        original(folder, index, findings)

    monkeypatch.setattr(passes, "write_findings", stop_at_five)
    with pytest.raises(KeyboardInterrupt):
        label(storms, three_days, tmp_path / "masks.nc")
    assert not (tmp_path / "masks.nc").exists()
    done = set(looked_at)
    looked_at.clear()

    def count(folder: Path, index: int, findings: Any) -> None:
        looked_at.append(index)
        original(folder, index, findings)

    monkeypatch.setattr(passes, "write_findings", count)
    again = label(storms, three_days, tmp_path / "masks.nc")
    assert set(looked_at) == set(range(len(HOURS))) - done
    np.testing.assert_array_equal(again[LABELS], whole[LABELS])
    assert (tmp_path / "masks_tracks.csv").read_text() == (tmp_path / "whole_tracks.csv").read_text()
    assert not spool_path(tmp_path / "masks.nc").exists()


def test_findings_of_another_request_are_not_used(tmp_path: Path) -> None:
    folder = tmp_path / ".masks.nc.steps"
    assert open_spool(folder, {"a": 1}) == set()
    (folder / "00000").mkdir()
    (folder / "00000" / "00000007.npz").touch()
    assert open_spool(folder, {"a": 1}) == {7}
    assert open_spool(folder, {"a": 2}) == set()
    assert not list(folder.glob("*/*.npz"))


def test_a_step_cut_off_while_it_was_written_does_not_count(tmp_path: Path) -> None:
    folder = tmp_path / ".masks.nc.steps"
    open_spool(folder, {})
    (folder / "00000").mkdir()
    (folder / "00000" / ".00000003.npz.partial").touch()
    assert open_spool(folder, {}) == set()


def test_impossible_values_are_refused_by_channel_and_time_and_nothing_stays(
    three_days: xr.Dataset, storms: Heuristic, tmp_path: Path
) -> None:
    wrong = three_days.copy(deep=True)
    wrong["PSL"][7] /= 100.0
    with pytest.raises(InputError, match=r"channel PSL runs from .* at 2001-09-02T18:00:00; in Pa"):
        label(storms, wrong, tmp_path / "masks.nc")
    assert list(tmp_path.iterdir()) == []


def test_nothing_found_gives_masks_of_background_and_tables_with_their_heads(storms: Heuristic, tmp_path: Path) -> None:
    quiet = scenes.QUIET.on(2.0, hours=HOURS).drop_vars(LABELS)
    masks = label(storms, quiet, tmp_path / "masks.nc")
    assert not masks[LABELS].any()
    assert (tmp_path / "masks_tracks.csv").read_text() == ("track_id,time,lat,lon,psl_pa,wind_m_per_s,radius_degrees\n")


def test_steps_by_themselves_need_no_time_and_write_cyclones_without_numbers(
    three_days: xr.Dataset, tmp_path: Path
) -> None:
    alone = heuristic("tempestextremes", "labels.rivers=null", "labels.cyclones.tracks=null")
    label(alone, three_days.isel(time=[0]), tmp_path / "masks.nc")
    table = rows(tmp_path / "masks_cyclones.csv")
    assert len(table) == 5
    assert "track_id" not in table[0]


def test_an_input_too_short_for_tracks_is_refused_with_the_way_to_do_without(
    three_days: xr.Dataset, storms: Heuristic
) -> None:
    with pytest.raises(InputError, match=r"a single time step.*at least 54 hours.*labels.cyclones.tracks=null"):
        storms(three_days.isel(time=[0]))
    daily = three_days.isel(time=[0, 4, 8])
    with pytest.raises(InputError, match=r"48 hours without a gap at most.*at least 72 hours"):
        heuristic("tempestextremes", "labels.rivers=null", "labels.cyclones.tracks.min_hours=72")(daily)
    with pytest.raises(InputError, match=r"30 hours apart.*one every 24 hours at least.*labels.cyclones.tracks=null"):
        storms(three_days.isel(time=[0, 5, 10]))


def test_storms_are_found_on_another_calendar_with_its_own_dates(
    three_days: xr.Dataset, storms: Heuristic, tmp_path: Path
) -> None:
    standard = label(storms, three_days, tmp_path / "standard.nc")
    times = xr.date_range("2001-09-01", periods=len(HOURS), freq="6h", calendar="noleap", use_cftime=True)
    noleap = label(storms, three_days.assign_coords(time=times), tmp_path / "noleap.nc")
    np.testing.assert_array_equal(noleap[LABELS], standard[LABELS])
    assert noleap.time.dt.calendar == "noleap"
    assert (tmp_path / "noleap_tracks.csv").read_text() == (tmp_path / "standard_tracks.csv").read_text()


@contextmanager
def _command(words: list[str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-m", "climseg", *words], cwd=folder, start_new_session=True)
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_a_killed_command_started_again_ends_as_an_undisturbed_one(tmp_path: Path) -> None:
    hours = pd.date_range(scenes.START, periods=41, freq="6h") - scenes.START
    made = scenes.CYCLONES.on(1.0, hours=[h / pd.Timedelta(hours=1) for h in hours])
    made.drop_vars(LABELS).to_netcdf(
        tmp_path / "a.nc", encoding={n: {"chunksizes": (1, 181, 360)} for n in made.data_vars if n != LABELS}
    )
    words = ["label", "input=a.nc", "labels=kurth2018", "cluster.workers=1"]
    folder = spool_path(tmp_path / "masks.nc")
    with _command([*words, "output=masks.nc"], tmp_path) as killed:
        end = time.monotonic() + 120
        while len(list(folder.glob("*/*.npz"))) < 3 and time.monotonic() < end and killed.poll() is None:
            time.sleep(0.02)
        assert killed.poll() is None
        os.killpg(killed.pid, signal.SIGKILL)
    assert not (tmp_path / "masks.nc").exists()
    for output in ("masks.nc", "whole.nc"):
        with _command([*words, f"output={output}"], tmp_path) as process:
            assert process.wait(timeout=300) == 0
    with open_masks(tmp_path / "masks.nc") as one, open_masks(tmp_path / "whole.nc") as other:
        np.testing.assert_array_equal(one[LABELS], other[LABELS])
        assert (one[LABELS] == TROPICAL_CYCLONE).any()
    assert (tmp_path / "masks_tracks.csv").read_text() == (tmp_path / "whole_tracks.csv").read_text()
