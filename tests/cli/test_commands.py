"""The commands on small files, as a user calls them."""

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
import xarray as xr
from rich.filesize import decimal

from climseg.channels import LABELS
from climseg.cli.main import run
from climseg.masks import open_masks
from climseg.store.info import StoreInfo

ALL_TRAIN = ["splits.train=1", "splits.validation=0", "splits.test=0"]
LONGER_TRACKS = ["labels=kurth2018", "labels.cyclones.tracks.min_hours=48"]


def test_synthesize_writes_one_file_per_step_or_per_month(tmp_path: Path) -> None:
    words = ["synthesize", "steps=3", "hours=240", "spacing=10"]
    assert run([*words, f"output={tmp_path / 'steps'}"]) == 0
    assert len(list((tmp_path / "steps").glob("*.nc"))) == 3
    assert run([*words, f"output={tmp_path / 'months'}", "per=month", "calendar=noleap"]) == 0
    (file,) = (tmp_path / "months").glob("*.nc")
    with xr.open_dataset(file) as ds:
        assert ds.sizes == {"time": 3, "lat": 19, "lon": 36}
        assert ds["time"].dt.calendar == "noleap"
        assert len(ds.data_vars) == 17


def test_synthesize_writes_vapour_transport_when_asked_for(tmp_path: Path) -> None:
    assert run(["synthesize", "steps=1", "spacing=10", f"output={tmp_path}", "more_channels=true"]) == 0
    (file,) = tmp_path.glob("*.nc")
    with xr.open_dataset(file) as ds:
        assert {"IVT", "UIVT", "VIVT", "Z300", "Z500"} < set(ds.data_vars)


def test_label_writes_masks_by_a_heuristic(files: str, tmp_path: Path) -> None:
    assert run(["label", f"input={files}", f"output={tmp_path / 'masks.nc'}", "labels=kurth2018"]) == 0
    masks = open_masks(tmp_path / "masks.nc")
    assert masks[LABELS].shape == (4, 37, 72)
    assert set(np.unique(masks[LABELS])) <= {0, 1, 2}
    assert (
        masks[LABELS]
        .attrs["definition"]
        .startswith("kurth2018 (Kurth et al. 2018, arXiv:1810.01993); atmospheric rivers:")
    )


def test_prepare_and_evaluate_agree_with_the_files(files: str, run_dir: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    words = ["splits.train=0.5", "splits.validation=0", "splits.test=0.5", "splits.gap_hours=1"]
    assert run(["prepare", f"input={files}", f"output={store}", "channels=[TMQ,U850,V850,PSL,T500]", *words]) == 0
    assert StoreInfo.read(store).channels == ["TMQ", "U850", "V850", "PSL", "T500"]
    output = tmp_path / "scores.json"
    assert run(["evaluate", f"checkpoint={run_dir / 'best.ckpt'}", f"data.store={store}", f"output={output}"]) == 0
    scores = json.loads(output.read_text())
    assert np.sum(scores["confusion_matrix"]) == 2 * 37 * 72


@pytest.mark.parametrize("flag", [["--dry-run"], ["--dry", "run"], ["dry_run=true"]])
def test_a_dry_run_of_prepare_says_what_would_be_done_and_writes_nothing(
    flag: list[str], files: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["splits.train=0.5", "splits.validation=0", "splits.test=0.5", "splits.gap_hours=1", "channels=[TMQ,PSL]"]
    assert run(["prepare", f"input={files}", f"output={tmp_path / 'store'}", *words, *flag]) == 0
    said = " ".join(capsys.readouterr().out.split())
    size = sum(path.stat().st_size for path in Path(files).parent.glob("*.nc"))
    for part in (
        f"4 files, {decimal(size)}",
        "4 steps, 2001-08-01T00:00:00 to 2001-08-02T12:00:00",
        "2 train, 2 test",
        "2: TMQ, PSL",
        "37 x 72, lat -90 to 90, lon 0 to 355",
        "95.9 kB",  # 4 steps of 37 x 72 cells of 2 x 4 + 1 bytes
        "0 of 4 steps",
        "for each worker process",
    ):
        assert part in said
    assert list(tmp_path.iterdir()) == []


def test_a_benchmark_of_prepare_writes_its_figures(tmp_path: Path) -> None:
    output, folder = tmp_path / "figures.json", tmp_path / "files"
    words = ["steps=2", "grid=[19,36]", "repeats=2", f"output={output}", f"folder={folder}"]
    assert run(["benchmark", "what=prepare", *words]) == 0
    figures = json.loads(output.read_text())
    assert figures["megabytes"] == 2 * 19 * 36 * (16 * 4 + 1) / 1e6
    assert figures["share"] > 0
    for name in ("copy", "prepare"):
        assert len(figures[name]["seconds"]) == 2
        assert min(*figures[name]["seconds"], figures[name]["megabytes_per_second"]) > 0
    assert [path.suffix for path in folder.iterdir()] == [".nc"]


def test_a_benchmark_of_labels_measures_every_definition(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "figures.json"
    assert run(["benchmark", "what=labels", "grid=[46,72]", "repeats=1", f"output={output}"]) == 0
    figures = json.loads(output.read_text())
    assert (figures["what"], figures["grid"]) == ("labels", [46, 72])
    rivers = {f"rivers={name}" for name in ("bard", "guan_waliser", "kurth2018", "tempestextremes")}
    assert set(figures["definitions"]) == rivers | {"cyclones=teca", "cyclones=tempestextremes"}
    said = capsys.readouterr().out
    assert "one time step of 46 x 72 on one core" in said
    for name, row in figures["definitions"].items():
        assert name in said
        assert len(row["seconds"]) == 1
        assert min(row["median_seconds"], row["sorts_of_a_field"], row["peak_megabytes"]) > 0
    assert [path.name for path in tmp_path.iterdir()] == ["figures.json"]


def test_predict_and_plot_make_masks_and_a_picture(files: str, run_dir: Path, tmp_path: Path) -> None:
    masks, picture = tmp_path / "masks.nc", tmp_path / "map.png"
    assert run(["predict", f"checkpoint={run_dir / 'best.ckpt'}", f"input={files}", f"output={masks}"]) == 0
    assert open_masks(masks)[LABELS].shape == (4, 37, 72)
    assert run(["plot", f"masks={masks}", f"fields={files}", "time=2001-08-02T12", f"output={picture}"]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["predict", "checkpoint=absent.ckpt", "input=FILES", "output=m.nc"], "absent.ckpt: no such checkpoint"),
        (["predict", "checkpoint=CKPT", "input=FILES", "output=m.zarr"], "a name that ends in .nc"),
        (["label", "input=FILES", "output=FIRST"], "is an input file too"),
        (["predict", "checkpoint=CKPT", "input=none*.nc", "output=m.nc"], "none*.nc"),
        (["predict", "checkpoint=CKPT", "input=FILES", "output=/proc/m.nc"], "cannot be written"),
        (["predict", "checkpoint=CKPT", "input=FILES", "output=m.nc", "source=era5"], "PSL needs msl"),
        (["label", "input=FILES", "output=m.nc", *LONGER_TRACKS], "the input has 36 hours without a gap at most"),
        (["prepare", "input=FILES", "output=s", *LONGER_TRACKS], "the input has 36 hours without a gap at most"),
        (["benchmark", "what=labels", "grid=[19,36]", "repeats=0"], "repeats=0: expected at least 1"),
        (["plot", "masks=absent.nc", "output=m.png"], "absent.nc: no such mask file"),
        (["evaluate", "checkpoint=CKPT", "data.store=absent"], "absent is not a complete climseg store"),
        (["synthesize", "output=x", "start=yesterday"], "yesterday"),
        (["synthesize", "output=x", "steps=0"], "steps=0"),
        (["synthesize", "output=x", "spacing=7"], "a number of degrees that divides 180"),
        (["synthesize", "output=x", "grid=[a,b]"], "such as [768,1152]"),
        (["synthesize", "output=x", "per=year"], "expected step or month"),
        (["synthesize", "output=null"], "output= is empty"),
        (["prepare", "input=FILES", "output=s", "channels=[TMQ,TMQ]"], "TMQ is asked for twice"),
        (["prepare", "input=FILES", "output=s", "splits=null"], "splits is a group of keys, such as splits.train"),
        (["prepare", "input=FILES", "output=s", *ALL_TRAIN, "cluster.workers=-1"], "cluster.workers=-1: expected 0 or"),
        (["prepare", "input=none.nc", "output=s", "--dry-run"], "none.nc"),
        (["benchmark", "steps=0"], "steps=0: expected at least 1"),
        (["benchmark", "output=x.txt"], "a name that ends in .json"),
        (["evaluate", "checkpoint=CKPT", "data.store=STORE", "data.batch_size=0"], "batch_size=0: expected at least 1"),
        (["evaluate", "checkpoint=CKPT", "data.store=STORE", "output=x.nc"], "a name that ends in .json"),
        (["evaluate", "checkpoint=CKPT", "data.store=STORE", "output=x.json", "device=gpu7"], "use device=cpu"),
        (["train", "data.store=STORE", "run_dir=x", "trainer=gpu"], "trainer: No supported gpu backend found"),
        (["train", "data.store=STORE", "run_dir=x", "trainer.precision=half"], "trainer: Precision 'half' is invalid"),
        (["train", "data.store=STORE", "run_dir=x", "model.first_filters=0"], "must be at least 1"),
        (["train", "data.store=STORE", "run_dir=x", "seed=-1"], "seed=-1"),
        (["train", "data.store=STORE", "run_dir=x", "trainer.max_epochs=0"], "trains nothing"),
    ],
)
def test_a_mistake_ends_with_a_sentence_and_exit_code_2(
    words: list[str],
    sentence: str,
    files: str,
    store: Path,
    run_dir: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    words = [
        w.replace("CKPT", str(run_dir / "best.ckpt"))
        .replace("STORE", str(store))
        .replace("FILES", files)
        .replace("FIRST", files.replace("*", "step0"))
        for w in words
    ]
    assert run(words) == 2
    assert sentence in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_sigterm_removes_the_temporary_file(files: str, run_dir: Path, tmp_path: Path) -> None:
    masks = tmp_path / "masks.nc"
    words = [f"checkpoint={run_dir / 'best.ckpt'}", f"input={files}", f"output={masks}"]
    process = subprocess.Popen([sys.executable, "-m", "climseg", "predict", *words], stderr=subprocess.DEVNULL)
    while not (tmp_path / ".masks.nc.partial").exists() and process.poll() is None:
        time.sleep(0.001)
    process.terminate()
    assert process.wait(60) in (143, 0)
    assert [p.name for p in tmp_path.iterdir() if p != masks] == []


def test_sigterm_ends_the_processes_of_prepare_and_keeps_what_is_done(files: str, tmp_path: Path) -> None:
    store = tmp_path / "store"
    command = [sys.executable, "-m", "climseg", "prepare", f"input={files}", f"output={store}", *ALL_TRAIN]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not (tmp_path / ".store.partial/mask/c").exists():
        time.sleep(0.01)
    workers = psutil.Process(process.pid).children(recursive=True)
    process.terminate()
    said = process.communicate(timeout=60)[1]
    assert process.returncode in (143, 0)
    assert workers
    assert psutil.wait_procs(workers, timeout=30)[1] == []
    assert "distributed" not in said
    assert "Traceback" not in said
    if process.returncode:
        assert [path.name for path in tmp_path.iterdir()] == [".store.partial"]
        assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


def kill_until_done(command: list[str], final: Path, seed: int) -> int:
    """Start a command again and again, killing it at random moments; returns how often it was killed."""
    rng = np.random.default_rng(seed)
    started = time.monotonic()
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    usual = time.monotonic() - started
    whole = final.stat().st_size if final.is_file() else None
    return_kills = 0
    shutil.rmtree(final) if final.is_dir() else final.unlink()
    for _ in range(4):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(float(rng.uniform(0.3, 1.0)) * usual)
        if process.poll() is None:
            process.kill()
            return_kills += 1
            process.wait()
            assert not final.exists() or (whole is None or final.stat().st_size == whole)
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    return return_kills


def test_prepare_killed_at_any_moment_leaves_nothing_and_completes_later(files: str, tmp_path: Path) -> None:
    store = tmp_path / "store"
    words = [f"input={files}", f"output={store}", *ALL_TRAIN]
    kills = kill_until_done([sys.executable, "-m", "climseg", "prepare", *words], store, seed=1)
    assert kills > 0
    assert len(StoreInfo.read(store).times) == 4
    assert [p.name for p in tmp_path.iterdir()] == ["store"]


def test_predict_killed_at_any_moment_leaves_nothing_and_completes_later(
    files: str, run_dir: Path, tmp_path: Path
) -> None:
    masks = tmp_path / "masks.nc"
    words = [f"checkpoint={run_dir / 'best.ckpt'}", f"input={files}", f"output={masks}"]
    kills = kill_until_done([sys.executable, "-m", "climseg", "predict", *words], masks, seed=2)
    assert kills > 0
    assert open_masks(masks)[LABELS].shape == (4, 37, 72)
    assert [p.name for p in tmp_path.iterdir()] == ["masks.nc"]
