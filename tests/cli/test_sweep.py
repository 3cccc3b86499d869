import csv
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from climseg.cli.main import run
from climseg.cli.sweep import plan, run_to_end

SHORT = ["trainer.max_steps=1", "trainer.max_epochs=1", "trainer.limit_val_batches=1"]


def table(folder: Path) -> list[dict[str, str]]:
    with (folder / "summary.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def fake_run(folder: Path, state: str, *epochs: tuple[float, float]) -> None:
    """What a training of some epochs (loss, mean IoU) leaves."""
    folder.mkdir(parents=True)
    (folder / "outcome.json").write_text(json.dumps({"state": state, "seconds": 90.0}))
    lines = ["epoch,train/loss_epoch,val/iou_bg,val/iou_tc,val/iou_ar,val/iou_mean"]
    lines += [f"{n},{loss},0.9,{iou},{iou},{iou}" for n, (loss, iou) in enumerate(epochs, 1)]
    (folder / "metrics.csv").write_text("\n".join(lines) + "\n")


def test_every_combination_of_the_values_is_a_run_with_a_folder_named_after_it(tmp_path: Path) -> None:
    words = ["model=tiramisu_small,deeplabv3plus_small", "seed=range(0,2)", "data.store=s", f"run_dir={tmp_path}/a b"]
    assert {folder.relative_to(tmp_path).as_posix(): words for folder, words in plan(words).runs.items()} == {
        f"a b/model={model},seed={seed}": f"model={model} seed={seed}"
        for model in ("tiramisu_small", "deeplabv3plus_small")
        for seed in (0, 1)
    }


def test_values_that_are_paths_give_plain_and_different_folder_names(tmp_path: Path) -> None:
    folders = [f.relative_to(tmp_path) for f in plan(["data.store=/a/b,/a_b", f"run_dir={tmp_path}"]).runs]
    assert all(len(folder.parts) == 1 for folder in folders)
    assert len(set(folders)) == 2


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["model=tiramisu_small"], "no key has several values"),
        (["model=tiramisu_small,deeplabv3plus_smal"], "did you mean 'deeplabv3plus_small'"),
        (["modle=tiramisu_small,deeplabv3plus_small"], "did you mean 'model'"),
        (["optimizer.lr=0.1,fast"], "optimizer.lr=fast: expected a number"),
        (["optimizer.lr="], "optimizer.lr= is empty"),
        (["model=tiramisu,"], "model=tiramisu,: no such choice"),
        (["seed=1,2,1"], "seed=1 stands twice"),
        (["seed=interval(0,3)"], "expected the values with commas"),
        (["seed=1,2", "run_dir=a,b", "resume=maybe"], "resume=maybe: expected true or false"),
        (["seed=1,2", "hydra/launcher=submitit_slrm"], "submitit_local submitit_slurm"),
        (["seed=1,2", "hydra.launcher.nodes=2"], "nodes"),
        (["seed=1,2", "hydra.sweep.dir=x"], r"the folder of the sweep is run_dir=\.\.\."),
        (["seed"], "'seed' is not key=value"),
    ],
)
def test_a_mistake_is_found_before_the_first_run(
    words: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["train", "-m", "data.store=x", *words]) == 2
    error = capsys.readouterr().err
    assert "Traceback" not in error
    assert re.search(sentence, error), error
    assert not list(tmp_path.iterdir())


def test_a_sweep_is_started_by_one_process(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert run(["train", "-m", "data.store=x", "seed=1,2"]) == 2
    assert "was started by several processes" in capsys.readouterr().err


def test_a_folder_with_a_sweep_is_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fake_run(tmp_path / "seed=1", "done", (0.5, 0.4))
    assert run(["train", "-m", "data.store=x", "seed=1,2", f"run_dir={tmp_path}"]) == 2
    assert f"go on with it: run_dir={tmp_path} resume=true" in capsys.readouterr().err


def test_the_table_tells_of_the_best_epoch_and_the_last_loss_and_done_runs_are_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_run(tmp_path / "seed=1", "done", (0.5, 0.4), (0.3, 0.7), (0.2, 0.6))
    fake_run(tmp_path / "seed=2", "done", (0.5, 0.1))
    assert run(["train", "-m", "data.store=x", "seed=1,2", f"run_dir={tmp_path}", "resume=true"]) == 0
    first, second = table(tmp_path)
    assert first == {
        "overrides": "seed=1",
        "state": "done",
        "epochs": "3",
        "iou_mean": "0.7",
        "iou_bg": "0.9",
        "iou_tc": "0.7",
        "iou_ar": "0.7",
        "last_loss": "0.2",
        "minutes": "1.5",
        "run_dir": str(tmp_path / "seed=1"),
    }
    assert second["iou_mean"] == "0.1"
    assert re.search(r"seed=1 +done +3 +0\.700 +0\.900 +0\.700 +0\.700 +0\.2000 +1\.5", capsys.readouterr().out)


def test_two_networks_make_two_folders_and_a_table_and_a_failing_run_ends_no_other(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(store.parent)  # a relative path is the user's, wherever a run's folder is
    words = ["train", "-m", f"data.store=absent,{store.name}", "model=tiramisu_small", f"run_dir={tmp_path}/s", *SHORT]
    assert run(words) == 2
    assert "1 of 2 runs are not done" in capsys.readouterr().err
    failed, done = table(tmp_path / "s")
    assert (failed["overrides"], failed["state"], failed["epochs"]) == ("data.store=absent", "failed", "0")
    assert (done["overrides"], done["state"], done["epochs"]) == (f"data.store={store.name}", "done", "1")
    assert {"last.ckpt", "metrics.csv", "config.yaml", "outcome.json"} <= {
        p.name for p in Path(done["run_dir"]).iterdir()
    }
    assert json.loads((Path(failed["run_dir"]) / "outcome.json").read_text())["exit_code"] == 2


def started(words: list[str], where: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "climseg", "train", "-m", *words], cwd=where, stderr=subprocess.PIPE, text=True
    )


def wait_for(condition: Any, process: subprocess.Popen[str]) -> None:
    while not condition():
        assert process.poll() is None, process.stderr and process.stderr.read()
        time.sleep(0.05)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_running_training_and_the_sweep(
    number: signal.Signals, code: int, store: Path, tmp_path: Path
) -> None:
    words = [f"data.store={store}", "seed=1,2", f"run_dir={tmp_path}/s", "trainer.max_epochs=100000"]
    with started(words, tmp_path) as process:
        wait_for((tmp_path / "s" / "seed=1" / "config.yaml").exists, process)
        children = psutil.Process(process.pid).children(recursive=True)
        assert children
        os.kill(process.pid, number)
        process.communicate()
    assert process.returncode == code
    psutil.wait_procs(children, timeout=5)
    assert not [child for child in children if child.is_running()]
    assert [(row["overrides"], row["state"]) for row in table(tmp_path / "s")] == [
        ("seed=1", "stopped"),
        ("seed=2", "not begun"),
    ]


def test_runs_as_jobs_of_submitit_have_the_same_folders(store: Path, tmp_path: Path) -> None:
    words = [f"data.store={store}", "seed=1,2", f"run_dir={tmp_path}/s", *SHORT, "hydra/launcher=submitit_local"]
    with started(words, tmp_path) as process:
        _, error = process.communicate()
    assert process.returncode == 0, error
    assert [(row["state"], row["epochs"]) for row in table(tmp_path / "s")] == [("done", "1")] * 2
    assert {p.name for p in (tmp_path / "s").iterdir()} == {
        "seed=1",
        "seed=2",
        "summary.csv",
        "multirun.yaml",
        ".submitit",
    }


def test_a_run_that_was_told_to_save_itself_is_not_done(tmp_path: Path) -> None:
    script = (
        "import pathlib, signal, sys, time\n"
        "signal.signal(signal.SIGUSR1, lambda number, frame: sys.exit(0))\n"
        "pathlib.Path('ready').touch()\n"
        "time.sleep(60)\n"
    )

    def warn() -> None:
        while not (tmp_path / "ready").exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGUSR1)

    before = signal.getsignal(signal.SIGUSR1)
    threading.Thread(target=warn).start()
    assert run_to_end([sys.executable, "-c", script], tmp_path) == {"state": "preempted", "exit_code": 0}
    assert signal.getsignal(signal.SIGUSR1) == before


def test_what_a_killed_run_left_running_is_ended(tmp_path: Path) -> None:
    script = (
        "import os, pathlib, subprocess\n"
        "pathlib.Path('child').write_text(str(subprocess.Popen(['sleep', '60']).pid))\n"
        "os.kill(os.getpid(), 9)\n"
    )
    assert run_to_end([sys.executable, "-c", script], tmp_path) == {"state": "failed", "exit_code": -9}
    child = int((tmp_path / "child").read_text())
    psutil.wait_procs([psutil.Process(child)] if psutil.pid_exists(child) else [], timeout=5)
    assert not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE


def test_a_task_of_a_job_ends_when_another_one_failed(tmp_path: Path) -> None:
    mark = tmp_path / ".failed"
    assert run_to_end([sys.executable, "-c", "raise SystemExit(2)"], tmp_path, mark) == {
        "state": "failed",
        "exit_code": 2,
    }
    assert mark.exists()
    assert run_to_end(["sleep", "60"], tmp_path, mark) == {"state": "failed", "exit_code": -signal.SIGKILL}
