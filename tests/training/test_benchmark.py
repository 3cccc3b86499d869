"""The benchmark of training: what it counts, and that it runs the trainer's own step. Speed itself is not asserted."""

import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import pytorch_lightning as pl
import torch

from climseg.cli.main import run
from climseg.losses.weighted_cross_entropy import weighted_cross_entropy
from climseg.training.benchmark import TrainingSpeed, measure_training
from climseg.training.machine import matrix_product_peak, peak_memory
from climseg.training.schedule import warmup_cosine

ROOT = Path(__file__).parents[2]
TINY = {"_target_": "climseg.models.tiramisu.Tiramisu", "first_filters": 8, "growth_rate": 4, "kernel_size": 1}
TINY |= {"down_layers": [1], "up_layers": []}
CPU = torch.device("cpu")


def test_a_step_is_counted_by_hand_and_timed_as_often_as_asked() -> None:
    found = measure_training(
        TINY,
        (np.linspace(-80, 80, 8), np.arange(0, 360, 30)),
        partial(pl.Trainer, accelerator="cpu", devices=1, enable_model_summary=False),
        weighted_cross_entropy,
        partial(torch.optim.AdamW, lr=1e-3),
        warmup_cosine,
        batch_size=2,
        repeats=3,
        product_size=64,
    )
    cells = 2 * 8 * 12
    # 1x1 convolutions 16 -> 8, 8 -> 4, 12 -> 3; two operations each; gradients of weights and, but for the first, input
    assert found.flops == 2 * cells * (2 * 16 * 8 + 3 * 8 * 4 + 3 * 12 * 3)
    assert len(found.seconds) == len(found.peaks) == 3
    assert found.parameters == (16 + 1) * 8 + (8 + 1) * 4 + (12 + 1) * 3
    assert found.device == "cpu"


def test_figures_follow_from_the_medians() -> None:
    speed = TrainingSpeed("cpu", 1, 1, 4, 60, [1.0, 2.0, 6.0], [60.0, 60.0, 20.0], 0)
    assert speed.samples_per_second == 2.0
    assert speed.flops_per_second == 30.0
    assert speed.share == 0.5  # of 1, 1/2, 1/2


def test_the_peak_of_memory_never_falls_and_sees_a_large_tensor() -> None:
    before = peak_memory(CPU)
    torch.ones(2**20 * 100)
    assert peak_memory(CPU) >= max(before, 400 * 2**20)
    assert matrix_product_peak(CPU, torch.float32, 64) > 0


@pytest.mark.skipif(sys.platform != "linux", reason="only the GNU C library can be told")
def test_freed_memory_is_kept() -> None:
    script = (
        "import torch; from climseg.training.machine import keep_freed_memory; print(keep_freed_memory())\n"
        "resident = lambda: int(open('/proc/self/statm').read().split()[1]) * 4096\n"
        "before = resident(); torch.ones(2**24); print(resident() - before)"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, cwd=ROOT)
    told, kept = result.stdout.split()
    assert told == "True"
    assert int(kept) > 60 * 2**20  # of 64 MiB


def test_the_command_measures_a_network_of_conf(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["grid=[32,64]", "repeats=1", "train.models=[tiramisu_small]", "train.precisions=[32-true]"]
    assert run(["benchmark", "what=train", *words, "train.product=64"]) == 0
    (row,) = json.loads(capsys.readouterr().out.splitlines()[-1])["runs"]
    assert row["model"] == "tiramisu_small"
    assert len(row["seconds"]) == 1
    assert row["samples_per_second"] == pytest.approx(1 / row["median_seconds"])


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("train.models=[tiramsu]", "train.models: no 'tiramsu'; did you mean 'tiramisu"),
        ("train.precisions=[32]", "train.precisions: no"),
        ("train.batch_size=0", "train.batch_size=0: expected"),
    ],
)
def test_a_mistake_is_named(word: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["benchmark", "what=train", word]) == 2
    assert message in capsys.readouterr().err


def test_the_check_of_a_gpu_goes_through_all_its_parts_on_the_cpu() -> None:
    command = [sys.executable, str(ROOT / "scripts/gpu_check"), "--cpu", "--seconds", "120"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=180)
    found = json.loads(result.stdout)
    failed = {part: figures["error"] for part, figures in found.items() if "error" in figures}
    assert set(failed.values()) <= {"RuntimeError: CUDA graphs need a GPU"}, failed
    assert {"machine", "input", "predict tiramisu_small", "correct tiramisu_small"} <= set(found)
    assert found["correct tiramisu_small"]["float32 on the CPU"]["gradient_error"] < 1e-6
