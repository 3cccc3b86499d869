"""The processes of a training: those that a scheduler started, or those that the command starts itself."""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from climseg.errors import InputError

# Exit code of a training that was asked to stop: "try again later" (sysexits.h).
UNFINISHED: Final = 75
# More processes than that bring a machine down before any of them trains.
_MOST_PER_CORE: Final = 8
_RUN_DIR: Final = "CLIMSEG_RUN_DIR"


@dataclass(frozen=True)
class Started:
    """What a scheduler started.

    Attributes:
        by: ``srun``, ``torchrun``, or an empty word: this process alone.
        rank: This process, from 0 on.
        processes: All of them.
        per_node: Those of one node.
    """

    by: str = ""
    rank: int = 0
    processes: int = 1
    per_node: int = 1

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return self.processes // self.per_node


def started(environment: Mapping[str, str] = os.environ) -> Started:
    """The processes of which this one is one.

    Raises:
        InputError: A Slurm job of several tasks runs the command without ``srun``: it would wait for the others for
            ever. Or the tasks are spread unevenly over the nodes. Or a number that a scheduler sets is absent or none.
    """
    if "SLURM_STEP_NUM_TASKS" in environment and _is_batch_job(environment):
        tasks, nodes = _number(environment, "SLURM_STEP_NUM_TASKS"), _number(environment, "SLURM_STEP_NUM_NODES", "1")
        if tasks % nodes:
            raise InputError(
                f"srun started {tasks} tasks on {nodes} nodes; expected as many on each: give --ntasks-per-node."
            )
        return Started("srun", _number(environment, "SLURM_PROCID"), tasks, tasks // nodes)
    if _number(environment, "SLURM_NTASKS", "1") > 1 and _is_batch_job(environment):
        raise InputError(
            f"the Slurm job has {environment['SLURM_NTASKS']} tasks, but the command runs once; start it with 'srun "
            "climseg train ...', or ask for one task."
        )
    if "TORCHELASTIC_RUN_ID" in environment:
        return Started(
            "torchrun",
            _number(environment, "RANK"),
            _number(environment, "WORLD_SIZE"),
            _number(environment, "LOCAL_WORLD_SIZE"),
        )
    # Lightning numbers the processes that it starts itself; their number is that of the devices.
    return Started(rank=_number(environment, "LOCAL_RANK", "0"))


def devices_and_nodes(
    devices: int | str | list[int],
    nodes: int | str,
    found: Started,
    environment: Mapping[str, str] = os.environ,
) -> tuple[int | str | list[int], int]:
    """The numbers of devices per node and of nodes to train with: ``auto`` takes what the scheduler gave.

    Raises:
        InputError: The scheduler gave other numbers (lightning issue 20391: the processes left over would idle, or
            all wait for some that never come). Or several nodes are asked for and nothing says where they meet, or
            far more processes than there are cores.
    """
    if not found.by:
        if nodes not in ("auto", 1) and "MASTER_ADDR" not in environment:
            raise InputError(
                f"trainer.num_nodes={nodes}, but neither srun nor torchrun started this process, so it would wait for "
                "the other nodes for ever; start it with one of them on each node, or give trainer.num_nodes=1."
            )
        most = _MOST_PER_CORE * (os.cpu_count() or 1)
        if isinstance(devices, int) and devices > most:
            raise InputError(
                f"trainer.devices={devices}: expected at most {most} processes on the {os.cpu_count()} cores here."
            )
        return devices, 1 if nodes == "auto" else int(nodes)
    per_node = found.per_node if devices in ("auto", -1, "-1") else _count(devices)
    nodes = found.nodes if nodes == "auto" else int(nodes)
    if (per_node, nodes) != (found.per_node, found.nodes):
        raise InputError(
            f"{found.by} started {found.processes} processes, {found.per_node} on each of {found.nodes} nodes, but "
            f"trainer.devices={per_node} trainer.num_nodes={nodes} uses {per_node * nodes}; give "
            f"trainer.devices={found.per_node} trainer.num_nodes={found.nodes}, or auto for both, or start "
            f"{per_node * nodes} processes."
        )
    return (devices if isinstance(devices, list) else per_node), nodes


def shared_folder(proposal: str, found: Started, environment: dict[str, str] | os._Environ[str] = os.environ) -> str:
    """The folder that all processes of a run take: the one that the first of them proposes.

    Under Slurm it is that of the job, whose number all of them know and which stays the same when the job is requeued.

    Raises:
        InputError: The processes have no way to learn it.
    """
    if found.by == "srun":
        return f"runs/job-{slurm_job(environment)}"
    if found.by == "torchrun":
        if environment.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
            raise InputError("torchrun's processes share no store here, so run_dir=... must be given.")
        # Not above: the command line asks for ranks long before torch is needed.
        from torch.distributed import TCPStore  # type: ignore[attr-defined]

        store = TCPStore(
            environment["MASTER_ADDR"], int(environment["MASTER_PORT"]), is_master=False, timeout=timedelta(minutes=5)
        )
        key = f"climseg/run_dir/{environment.get('TORCHELASTIC_RESTART_COUNT', '0')}"
        if found.rank == 0:
            store.set(key, proposal)
        return str(store.get(key).decode())
    return environment.setdefault(_RUN_DIR, proposal)  # the processes that Lightning starts inherit it


def slurm_job(environment: Mapping[str, str] = os.environ) -> str | None:
    """The number of the Slurm job that this process belongs to; None outside, and in a shell that a user works in."""
    if "SLURM_JOB_ID" not in environment or not _is_batch_job(environment):
        return None
    if "SLURM_ARRAY_JOB_ID" in environment:
        return f"{environment['SLURM_ARRAY_JOB_ID']}_{environment['SLURM_ARRAY_TASK_ID']}"
    return environment["SLURM_JOB_ID"]


def requeue(job: str) -> None:
    """Ask Slurm to run a job again.

    Raises:
        InputError: Slurm refuses.
    """
    try:
        result = subprocess.run(["scontrol", "requeue", job], capture_output=True, text=True, timeout=120, check=False)
        refusal = result.stderr.strip() if result.returncode else None
    except (OSError, subprocess.TimeoutExpired) as error:  # in a container there is no scontrol
        refusal = str(error)
    if refusal is not None:
        raise InputError(f"Slurm does not requeue job {job} ({refusal}); submit it again.")


def _number(environment: Mapping[str, str], name: str, default: str = "") -> int:
    """A whole number from the environment."""
    value = environment.get(name, default)
    if not value.isdecimal():
        raise InputError(
            f"{name}={value!r} in the environment: expected a whole number, as srun and torchrun set it; unset what "
            "was set by hand."
        )
    return int(value)


def _is_batch_job(environment: Mapping[str, str]) -> bool:
    """Not a shell that a user works in (Lightning's rule, by the job's name)."""
    return environment.get("SLURM_JOB_NAME") not in ("bash", "interactive")


def _count(devices: int | str | list[int]) -> int:
    if isinstance(devices, list):
        return len(devices)
    return int(devices)
