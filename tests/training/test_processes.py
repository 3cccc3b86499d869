from pathlib import Path
from typing import Any

import pytest

from climseg.errors import InputError
from climseg.training.processes import Started, devices_and_nodes, requeue, shared_folder, slurm_job, started

# What srun sets for a step of 8 tasks on 2 nodes (Slurm 22.05).
STEP = {
    "SLURM_JOB_ID": "17",
    "SLURM_JOB_NAME": "train",
    "SLURM_NTASKS": "8",
    "SLURM_PROCID": "5",
    "SLURM_LOCALID": "1",
    "SLURM_STEP_NUM_TASKS": "8",
    "SLURM_STEP_NUM_NODES": "2",
}
TORCHRUN = {
    "TORCHELASTIC_RUN_ID": "none",
    "RANK": "3",
    "WORLD_SIZE": "4",
    "LOCAL_RANK": "1",
    "LOCAL_WORLD_SIZE": "2",
}


def without(environment: dict[str, str], *names: str) -> dict[str, str]:
    return {k: v for k, v in environment.items() if k not in names}


def test_a_process_knows_who_started_it_and_how_many() -> None:
    assert started(STEP) == Started("srun", 5, 8, 4)
    assert started(STEP).nodes == 2
    assert started(TORCHRUN) == Started("torchrun", 3, 4, 2)
    assert started({}) == Started()
    assert started({"LOCAL_RANK": "1"}).rank == 1  # started by Lightning


def test_a_batch_script_without_srun_is_refused_where_it_would_wait_for_ever() -> None:
    script = without(STEP, "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NUM_NODES") | {"SLURM_PROCID": "0"}
    with pytest.raises(InputError, match="job has 8 tasks, but the command runs once; start it with 'srun climseg"):
        started(script)
    assert started(script | {"SLURM_NTASKS": "1"}) == Started()
    assert started(script | {"SLURM_JOB_NAME": "bash"}) == Started()  # a shell in an allocation
    with pytest.raises(InputError, match="7 tasks on 2 nodes; expected as many on each"):
        started(STEP | {"SLURM_STEP_NUM_TASKS": "7"})


@pytest.mark.parametrize("devices", ["auto", -1, 4, [0, 1, 2, 3]])
@pytest.mark.parametrize("nodes", ["auto", 2])
def test_devices_and_nodes_are_those_that_the_scheduler_gave(devices: Any, nodes: Any) -> None:
    per_node, number = devices_and_nodes(devices, nodes, started(STEP))
    assert (per_node, number) in [(4, 2), ([0, 1, 2, 3], 2)]


@pytest.mark.parametrize(("devices", "nodes"), [(1, 2), (2, 2), (4, 1), (1, 1)])
def test_fewer_devices_than_the_scheduler_gave_are_refused_with_both_numbers(devices: int, nodes: int) -> None:
    message = f"srun started 8 processes, 4 on each of 2 nodes, but .* uses {devices * nodes}; give trainer.devices=4"
    with pytest.raises(InputError, match=message):
        devices_and_nodes(devices, nodes, started(STEP))


def test_without_a_scheduler_the_numbers_stay() -> None:
    assert devices_and_nodes("auto", "auto", Started()) == ("auto", 1)
    assert devices_and_nodes(2, 3, Started(), {"MASTER_ADDR": "first"}) == (2, 3)
    with pytest.raises(InputError, match="num_nodes=3, but neither srun nor torchrun started"):
        devices_and_nodes(2, 3, Started(), {})


def test_all_processes_of_a_job_take_the_same_folder_also_after_a_requeue() -> None:
    assert shared_folder("runs/now", started(STEP), STEP) == "runs/job-17"
    array = STEP | {"SLURM_ARRAY_JOB_ID": "16", "SLURM_ARRAY_TASK_ID": "2"}
    assert shared_folder("runs/now", started(array), array) == "runs/job-16_2"
    assert slurm_job(array) == "16_2"
    assert slurm_job(STEP | {"SLURM_JOB_NAME": "interactive"}) is None
    alone: dict[str, str] = {}
    assert shared_folder("runs/first", Started(), alone) == "runs/first"
    assert shared_folder("runs/second", Started(rank=1), alone) == "runs/first"  # inherited


def test_torchrun_without_a_shared_store_needs_the_folder_by_name() -> None:
    with pytest.raises(InputError, match=r"run_dir=\.\.\. must be given"):
        shared_folder("runs/now", started(TORCHRUN), TORCHRUN)


def test_a_job_that_cannot_be_queued_again_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match=r"does not requeue job 17 .*scontrol.*; submit it again"):
        requeue("17")
    (tmp_path / "scontrol").write_text("#!/bin/sh\necho no such job >&2\nexit 1\n")
    (tmp_path / "scontrol").chmod(0o755)
    with pytest.raises(InputError, match=r"does not requeue job 17 \(no such job\)"):
        requeue("17")


def test_a_number_that_is_none_is_refused_by_its_name() -> None:
    with pytest.raises(InputError, match="SLURM_NTASKS='two' in the environment: expected a whole number"):
        started({"SLURM_NTASKS": "two"})
    with pytest.raises(InputError, match="RANK='' in the environment"):
        started({"TORCHELASTIC_RUN_ID": "1"})


def test_more_processes_than_a_machine_bears_are_refused() -> None:
    with pytest.raises(InputError, match=r"trainer\.devices=100000: expected at most \d+ processes"):
        devices_and_nodes(100_000, 1, Started())
