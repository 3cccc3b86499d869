"""``climseg inspect`` as a user calls it."""

import json
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from climseg.channels import LABELS
from climseg.cli.main import run


def _says(text: str, sentence: str) -> bool:
    """Whether a sentence is in a report, wherever its lines are broken."""
    return " ".join(sentence.split()) in " ".join(text.split())


def test_sound_files_are_shown_in_80_columns(files: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["inspect", f"input={files}"]) == 0
    out = capsys.readouterr().out
    assert max(len(line) for line in out.splitlines()) <= 80
    assert "\x1b" not in out
    assert _says(out, "4 steps of 12 h from 2001-08-01T00:00:00 to 2001-08-02T12:00:00, calendar standard")
    assert _says(out, "37 x 72 points, 5 x 5 degrees (lat x lon); global, with both poles")
    assert _says(out, "Ready for a new network: with the 16 channels there; the files carry LABELS")
    assert _says(out, "Ready for labels=kurth2018: the 11 channels that it takes are there.")
    assert "checkpoint" not in out


def test_the_report_is_json_with_what_was_shown(files: str, tmp_path: Path) -> None:
    output = tmp_path / "report.json"
    assert run(["inspect", f"input={files}", f"output={output}", "steps=all"]) == 0
    report = json.loads(output.read_text())
    assert report["input"] == sorted(str(p) for p in Path(files).parent.glob("*.nc"))
    assert report["files"]["count"] == 4
    assert len(report["sampled"]) == 4
    assert [v["ready"] for v in report["verdicts"]] == [True, True, True]
    others = report["verdicts"][2]
    # IVT is not among the 16 channels. Four steps of 12 hours last 36 hours: 48 hours counted by steps.
    assert (others["purpose"], others["sentence"]) == ("other labels too", "labels=kurth2018_coarse.")
    assert [p.name for p in tmp_path.iterdir()] == ["report.json"]


def test_a_network_takes_the_files_or_says_what_it_wants(
    files: str, run_dir: Path, atmosphere: xr.Dataset, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint = f"checkpoint={run_dir / 'best.ckpt'}"
    assert run(["inspect", f"input={files}", checkpoint]) == 0
    assert _says(capsys.readouterr().out, "channels (4), units and grid are those of its training.")

    def verdict(ds: xr.Dataset) -> str:
        ds.to_netcdf(tmp_path / "a.nc")
        output = tmp_path / "report.json"
        assert run(["inspect", f"input={tmp_path / 'a.nc'}", checkpoint, f"output={output}"]) == 0
        last = json.loads(output.read_text())["verdicts"][-1]
        assert last["purpose"] == checkpoint
        assert not last["ready"]
        return str(last["sentence"])

    few = atmosphere.isel(time=slice(0, 2))
    assert verdict(few.drop_vars(["PSL", LABELS])) == "PSL: has no variable PSL."
    coarse = few.isel(lat=slice(None, None, 2), lon=slice(None, None, 2))
    assert "the network was trained on 5 x 5. Add regrid=true" in verdict(coarse)
    holed = few.copy(deep=True)
    holed["TMQ"][:, :2] = np.nan
    assert verdict(holed) == "TMQ: 5.4% missing."  # 2 of 37 rows
    hpa = few.assign(PSL=(few["PSL"] / 100).assign_attrs(few["PSL"].attrs))
    assert verdict(hpa).startswith("PSL: values that look like hPa labelled Pa")


@pytest.mark.parametrize(
    ("words", "ready", "sentences"),
    [
        ([], True, ["the 11 channels that it takes are there.", "; see labels=kurth2018_coarse."]),
        (["labels/cyclones=null"], True, ["the channel TMQ that it takes is there."]),
        (
            ["labels.cyclones.tracks.min_hours=48"],
            False,
            ["36 hours without a gap at most", "at least 48 hours", "set labels.cyclones.tracks=null to judge every"],
        ),
        (["labels=tempestextremes"], False, ["IVT needs ", "set labels.rivers=null to label cyclones alone."]),
        (
            ["labels=tempestextremes", "labels/rivers=null", "labels.cyclones.tracks=null"],
            True,
            ["there; (T200 + T500)/2 in place of Z300 - Z500.", "5 degrees is coarse for it and it may find little."],
        ),
        (["labels=tempestextremes", "labels/rivers=null"], False, ["36 hours without a gap at most", "least 54 hours"]),
        (["labels=bard"], False, ["IVT needs "]),
        (["labels=guan_waliser"], False, ["UIVT needs ", "; VIVT needs "]),
    ],
)
def test_a_heuristic_is_judged_by_its_channels_and_its_time(
    words: list[str], ready: bool, sentences: list[str], files: str, tmp_path: Path
) -> None:
    output = tmp_path / "report.json"
    assert run(["inspect", f"input={files}", f"output={output}", "steps=1", *words]) == 0
    verdict = json.loads(output.read_text())["verdicts"][1]
    assert verdict["ready"] == ready
    for sentence in sentences:
        assert sentence in verdict["sentence"], verdict["sentence"]


def test_files_without_labels_are_no_mistake(
    atmosphere: xr.Dataset, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    atmosphere.drop_vars(LABELS).isel(time=slice(0, 3)).to_netcdf(tmp_path / "a.nc")
    assert run(["inspect", f"input={tmp_path / 'a.nc'}", "labels=from_file"]) == 0
    assert _says(capsys.readouterr().out, "Not ready for labels=from_file: the files carry no LABELS")


def test_brackets_in_names_are_shown_as_they_are(
    atmosphere: xr.Dataset, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "[bold]"
    folder.mkdir()
    atmosphere.isel(time=[0]).to_netcdf(folder / "a.nc")
    assert run(["inspect", f"input=['{folder}/a.nc']", "steps=0"]) == 0
    out = capsys.readouterr().out
    assert "[bold]" in out.replace("\n", "").replace(" ", "")
    assert "not read (steps=0)" in out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["input=FILES", "steps=some"], "steps=some: expected a number of time steps"),
        (["input=FILES", "steps=-1"], "steps=-1: expected a number of time steps"),
        (["input=FILES", "output=report.txt"], "a name that ends in .json"),
        (["input=FILES", "output=/proc/report.json"], "cannot be written"),
        (["input=FILES", "checkpoint=absent.ckpt"], "absent.ckpt: no such checkpoint"),
        (["input=none*.nc"], "No file matches"),
        (["input=FILES", "source=era5", "source.time=noon"], "source.time supplies the time of a single file"),
    ],
)
def test_a_mistake_ends_with_a_sentence_and_exit_code_2(
    words: list[str],
    sentence: str,
    files: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["inspect", *(word.replace("FILES", files) for word in words)]) == 2
    assert sentence in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("refuse/ne120_TCsubset.nc", "an unstructured grid"),
        ("refuse/small_rotPole_precipitation.nc", "a rotated pole"),
        ("refuse/tiny.nc", "no latitude and longitude"),
        ("refuse/silent_nan.zarr", "holds none of its chunks"),
        ("era5_packed/eraint_uvz.nc", "no time coordinate"),
        ("grib/era5-levels-corrupted.grib", "truncated or damaged"),
    ],
)
def test_real_files_that_cannot_be_used_are_refused_with_the_reason(
    name: str, sentence: str, shared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["inspect", f"input={shared / name}"]) == 2
    assert sentence in capsys.readouterr().err
