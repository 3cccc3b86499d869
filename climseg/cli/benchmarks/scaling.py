"""``what=scaling``: efficiency of training on 1 to 27,360 GPUs of three machines, by a model of step time."""

from dataclasses import asdict
from typing import Any, Final

from omegaconf import DictConfig, ListConfig
from rich import box
from rich.console import Console
from rich.table import Table

from climseg.errors import InputError
from climseg.training.scaling import ALGORITHMS, MACHINES, Machine, Workload, scaled_step

# Of the three algorithms, in their order.
_HEADINGS: Final = ("ring", "two-level\nring", "two-level\ndoubling")


def run(configuration: DictConfig) -> dict[str, Any]:
    """Compute, show."""
    counts = _counts(configuration.scaling.gpus)
    workload = _workload(configuration.scaling)
    machines = [
        asdict(machine) | {"scaling": [_row(workload, machine, gpus) for gpus in counts]} for machine in MACHINES
    ]
    console = Console(markup=False, highlight=False)
    for machine in machines:
        console.print(_table(machine))
    console.print(
        "Efficiency: time of a step on one GPU by that on so many, in %. Two-level: within nodes, then between them. "
        "Lag 1: a step applies the gradients of the one before it. GPUs beyond those of the real machine are of the "
        "same nodes. An upper bound: no stragglers."
    )
    return {"workload": asdict(workload), "machines": machines}


def _counts(value: object) -> list[int]:
    if not isinstance(value, ListConfig) or not value or not all(isinstance(n, int) and n >= 1 for n in value):
        raise InputError(f"scaling.gpus={value}: expected numbers of GPUs, such as [1,4,27360].")
    return list(value)


def _workload(scaling: DictConfig) -> Workload:
    """The keys in the units of the model."""
    for key in ("step_seconds", "parameters", "gradient_bytes", "bucket_megabytes", "input_bandwidth"):
        if scaling[key] <= 0:
            raise InputError(f"scaling.{key}={scaling[key]}: expected a number above 0.")
    if not 0 <= scaling.backward_share <= 1:
        raise InputError(f"scaling.backward_share={scaling.backward_share}: expected a share, 0 to 1.")
    if scaling.input_megabytes < 0:
        raise InputError(f"scaling.input_megabytes={scaling.input_megabytes}: expected 0 or more.")
    return Workload(
        step_seconds=scaling.step_seconds,
        gradient_bytes=scaling.parameters * scaling.gradient_bytes,
        bucket_bytes=scaling.bucket_megabytes * 1024**2,
        backward_share=scaling.backward_share,
        input_bytes=scaling.input_megabytes * 1e6,
        input_bandwidth=scaling.input_bandwidth * 1e9,
    )


def _row(workload: Workload, machine: Machine, gpus: int) -> dict[str, Any]:
    row: dict[str, Any] = {"gpus": gpus, "nodes": -(-gpus // machine.gpus_per_node)}
    for algorithm in ALGORITHMS:
        step = scaled_step(workload, machine, gpus, algorithm)
        row[algorithm] = {
            "step_seconds": step.seconds,
            "all_reduce_seconds": step.all_reduce,
            "efficiency": step.efficiency,
            "efficiency_lag_1": scaled_step(workload, machine, gpus, algorithm, lag=True).efficiency,
        }
    return row


def _table(machine: dict[str, Any]) -> Table:
    inside, between = (
        f"{link['bandwidth'] / 1e9:g} GB/s, {link['latency'] * 1e6:g} us"
        for link in (machine["inside"], machine["between"])
    )
    table = Table(
        title=f"{machine['name']}-like: nodes of {machine['gpus_per_node']} ({inside}), between them {between}",
        caption=machine["source"],
        box=box.SIMPLE,
        pad_edge=False,
    )
    for heading in ("GPUs", *_HEADINGS, *(f"{heading}\nlag 1" for heading in _HEADINGS)):
        table.add_column(heading, justify="right")
    for row in machine["scaling"]:
        shares = [row[algorithm][key] for key in ("efficiency", "efficiency_lag_1") for algorithm in ALGORITHMS]
        table.add_row(f"{row['gpus']:,}", *(f"{100 * share:.1f}" for share in shares))
    return table
