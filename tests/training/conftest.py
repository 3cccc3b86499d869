"""Trainings of one and two ranks, killed where a test wants it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch


@pytest.fixture(autouse=True)
def _no_process_group_stays() -> Iterator[None]:
    """A later training would be told of the port of one that was here, which is still taken."""
    before = dict(os.environ)
    yield
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(scope="session")
def train(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A function that runs trainings one after the other, and returns the exit codes of each one's ranks."""

    def run(jobs: list[dict[str, Any]]) -> list[list[int]]:
        file = tmp_path_factory.mktemp("jobs") / "jobs.json"
        file.write_text(json.dumps(jobs))
        result = subprocess.run(
            [sys.executable, str(Path(__file__).parent / "forks.py"), str(file)],
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
        assert result.returncode == 0, result.stderr[-3000:]
        codes: list[list[int]] = json.loads(result.stdout.splitlines()[-1])
        return codes

    return run


@pytest.fixture(scope="session")
def weights() -> Any:
    """A function that reads the state dict of a run's last checkpoint."""

    def read(run_dir: Path) -> dict[str, torch.Tensor]:
        state: dict[str, torch.Tensor] = torch.load(run_dir / "last.ckpt", weights_only=True)["state_dict"]
        return state

    return read
