"""The launchers with a Slurm that only writes down what it is told; scripts/test-slurm runs one on a real Slurm."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"
LAUNCHERS = sorted((SCRIPTS / "slurm").glob("*.sbatch"))
JUWELS = SCRIPTS / "slurm/juwels_booster.sbatch"


def srun_calls(launcher: Path, folder: Path, *words: str, **variables: str) -> list[list[str]]:
    """The words of each call of srun by a launcher, and as first ones the network's variables that srun found."""
    programs = {
        "srun": 'printf "%s\\n" "$MASTER_ADDR" "${NCCL_SOCKET_IFNAME:-none}" "$SRUN_CPUS_PER_TASK" "$@" END >>calls',
        "scontrol": 'test "$1 $2 $3" = "show hostnames jwb[0001-0002]" && printf "%s\\n" jwb0001 jwb0002',
    }
    for name, line in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{line}\n")
        (folder / name).chmod(0o755)
    (folder / ".venv/bin").mkdir(parents=True)
    (folder / ".venv/bin/activate").touch()
    job = {
        "SLURM_JOB_ID": "12345678",
        "SLURM_JOB_NAME": "climseg",
        "SLURM_JOB_NODELIST": "jwb[0001-0002]",
        "SLURM_NNODES": "2",
        "SLURM_NTASKS_PER_NODE": "4",
        "SLURM_CPUS_PER_TASK": "12",
    }
    environment = {"PATH": f"{folder}:{os.defpath}"} | job | variables
    subprocess.run(["bash", launcher, *words], cwd=folder, env=environment, check=True, timeout=30)
    calls = (folder / "calls").read_text().split("END\n")[:-1]
    return [call.splitlines() for call in calls]


def header(launcher: Path) -> dict[str, str]:
    """Options of sbatch in the launcher."""
    options = re.findall(r"^#SBATCH --([\w-]+)(?:=(\S+))?$", launcher.read_text(), re.MULTILINE)
    return dict(options)


@pytest.mark.parametrize("launcher", LAUNCHERS, ids=lambda p: p.stem)
def test_words_after_a_launcher_reach_climseg_train_behind_its_own(launcher: Path, tmp_path: Path) -> None:
    (call,) = srun_calls(launcher, tmp_path, "data.store=my store", "run_dir=mine")
    assert call[3:] == [
        "--kill-on-bad-exit=1",
        *("climseg", "train", "trainer=ddp", "trainer.num_nodes=2", "trainer.devices=4"),
        *("run_dir=runs/climseg-12345678", "resume=true", "data.store=my store", "run_dir=mine"),
    ]


@pytest.mark.parametrize("launcher", LAUNCHERS, ids=lambda p: p.stem)
def test_tasks_meet_at_the_first_node_and_srun_is_told_their_processors(launcher: Path, tmp_path: Path) -> None:
    ((address, _, processors, *_),) = srun_calls(launcher, tmp_path)
    assert (address, processors) == ("jwb0001", "12")


@pytest.mark.parametrize("launcher", LAUNCHERS, ids=lambda p: p.stem)
def test_a_staged_store_is_copied_once_by_each_node_and_then_read(launcher: Path, tmp_path: Path) -> None:
    staging, training = srun_calls(launcher, tmp_path, "seed=1", CLIMSEG_STAGE="/scratch/store")
    staged = "${oc.env:TMPDIR,/tmp}/climseg-12345678"
    assert staging[3:5] == ["--ntasks=2", "--ntasks-per-node=1"]
    assert staging[5:] == ["climseg", "stage", "data.store=/scratch/store", f"target={staged}"]
    assert training[-2:] == [f"data.store={staged}", "seed=1"]


@pytest.mark.parametrize("launcher", LAUNCHERS, ids=lambda p: p.stem)
def test_a_job_has_one_task_for_each_gpu_a_warning_before_its_end_and_one_log(launcher: Path) -> None:
    options = header(launcher)
    gpus = options.get("gpus-per-node") or options["gres"].removeprefix("gpu:")
    assert options["ntasks-per-node"] == gpus == "4"
    # Without "B:" the signal goes to the tasks, not to the shell, which would die of it.
    assert options["signal"] == "USR1@300"
    assert options.keys() >= {"requeue", "output"}
    assert options["open-mode"] == "append"


def test_the_header_for_juwels_booster_is_the_one_of_its_documentation() -> None:
    options = header(JUWELS)
    assert {k: options[k] for k in ("partition", "gres", "ntasks-per-node", "cpus-per-task", "hint")} == {
        "partition": "booster",
        "gres": "gpu:4",
        "ntasks-per-node": "4",
        "cpus-per-task": "12",  # 2 x 24 cores for 4 tasks
        "hint": "nomultithread",
    }
    assert "cpu-bind" not in options


@pytest.mark.parametrize("system", ["juwelsbooster", "juwels", "jurecadc", "jusuf"])
def test_on_machines_in_juelich_tasks_meet_at_the_infiniband_name(system: str, tmp_path: Path) -> None:
    ((address, *_),) = srun_calls(JUWELS, tmp_path, SYSTEMNAME=system)
    assert address == "jwb0001i"


@pytest.mark.skipif(Path("/sys/class/net/ib0").exists(), reason="this machine has InfiniBand")
def test_a_network_that_is_not_there_is_not_asked_for(tmp_path: Path) -> None:
    ((_, interface, *_),) = srun_calls(JUWELS, tmp_path)
    assert interface == "none"


def test_the_network_of_another_cluster_is_named_by_a_variable(tmp_path: Path) -> None:
    ((_, interface, *_),) = srun_calls(SCRIPTS / "slurm/generic.sbatch", tmp_path, CLIMSEG_NET="eth0")
    assert interface == "eth0"


@pytest.mark.parametrize(
    "apt", [None, "echo 'E: no network' >&2; exit 100"], ids=["without apt-get", "without network"]
)
def test_the_test_on_a_real_slurm_says_that_it_is_skipped_where_it_cannot_run(apt: str | None, tmp_path: Path) -> None:
    if apt:
        (tmp_path / "apt-get").write_text(f"#!/bin/sh\n{apt}\n")
        (tmp_path / "apt-get").chmod(0o755)
    command = [sys.executable, str(SCRIPTS / "test-slurm")]
    done = subprocess.run(
        command, env={"PATH": f"{tmp_path}:/bin" if apt else str(tmp_path)}, capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 0
    said = done.stdout.splitlines()[-1]
    if os.geteuid() != 0:
        assert said.startswith("skipped: a test of Slurm needs root")
    elif apt:
        assert "could not install Slurm" in said
        assert "E: no network" in said
    else:
        assert said.startswith("skipped: a test of Slurm needs apt-get")
