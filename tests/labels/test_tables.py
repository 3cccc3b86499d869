"""The tables beside a mask file."""

from pathlib import Path

import numpy as np
import pytest

from climseg.labels.heuristic import Storm
from climseg.labels.step import Candidate
from climseg.labels.tables import Tables
from climseg.labels.tracks import Point

NONE = np.zeros(0, dtype=np.int64)
STORM = Storm(Candidate(1, 2, 15.0, 130.25, 98_765.4321, 41.0, {"core_k": 1.5}), NONE, 3.25)
WEAK = Storm(Candidate(3, 4, -20.0, 70.0, 100_000.0, np.nan, {"core_k": np.nan}, ("wind",)), NONE, np.nan)


def _write(paths: dict[str, Path]) -> None:
    with Tables(paths) as tables:
        points = [Point(STORM.candidate, 7, ""), Point(WEAK.candidate, None, "wind")]
        tables.write("2001-02-30T06:00:00", list(zip([STORM, WEAK], points, strict=True)), [])
        region = {"lat": 40.0, "lon": 3.0, "area_km2": 123456.789, "rejected_by": "length and width"}
        tables.write("2001-02-30T12:00:00", [], [region])


def test_each_table_has_its_rows(tmp_path: Path) -> None:
    paths = {name: tmp_path / f"{name}.csv" for name in ("tracks", "cyclones", "candidates", "rivers")}
    _write(paths)
    storm = "2001-02-30T06:00:00,15,130.25,98765.43,41,3.25,1.5"
    head = "time,lat,lon,psl_pa,wind_m_per_s,radius_degrees,core_k"
    assert paths["tracks"].read_text().splitlines() == [f"track_id,{head}", f"7,{storm}"]
    assert paths["cyclones"].read_text().splitlines() == [head, storm]
    assert paths["candidates"].read_text().splitlines() == [
        f"{head},track_id,rejected_by",
        f"{storm},7,",
        "2001-02-30T06:00:00,-20,70,100000,,,,,wind",
    ]
    assert paths["rivers"].read_text().splitlines() == [
        "time,lat,lon,area_km2,rejected_by",
        "2001-02-30T12:00:00,40,3,123456.8,length and width",
    ]


def test_tables_that_are_not_asked_for_are_not_written(tmp_path: Path) -> None:
    _write({"rivers": tmp_path / "rivers.csv"})
    assert [p.name for p in tmp_path.iterdir()] == ["rivers.csv"]


def test_a_table_without_rows_has_its_head(tmp_path: Path) -> None:
    with Tables({"tracks": tmp_path / "tracks.csv", "rivers": tmp_path / "rivers.csv"}):
        pass
    assert (tmp_path / "tracks.csv").read_text() == "track_id,time,lat,lon,psl_pa,wind_m_per_s,radius_degrees\n"
    assert (tmp_path / "rivers.csv").read_text() == "time,lat,lon,area_km2,rejected_by\n"


def test_an_interruption_leaves_the_older_table(tmp_path: Path) -> None:
    path = tmp_path / "tracks.csv"
    path.write_text("older\n")
    with pytest.raises(KeyboardInterrupt), Tables({"tracks": path}) as tables:
        tables.write("2001-01-01T00:00:00", [(STORM, Point(STORM.candidate, 1, ""))], [])
        raise KeyboardInterrupt
    assert path.read_text() == "older\n"
    assert [p.name for p in tmp_path.iterdir()] == ["tracks.csv"]
