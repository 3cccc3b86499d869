"""A model of the time of a training step on many GPUs: computing, all-reduce of the gradients, and what hides what.

Weak scaling, as in Kurth et al. 2018: each GPU computes the same batch whatever their number, so a step takes as long
as on one GPU and what the others add to it; efficiency is the ratio of the two. The model knows latency, bandwidth, and
the order in which DistributedDataParallel sends its buckets. It knows no stragglers, no congestion, no coordination of
ranks, and its bandwidths are those on paper: what it says is an upper bound for the algorithm.

Sources of the formulas:

* Thakur, Rabenseifner & Gropp 2005, "Optimization of Collective Communication Operations in MPICH": a message of n
  bytes takes alpha + n beta; the ring, and Rabenseifner's recursive halving and doubling.
* Patarasuk & Yuan 2009, "Bandwidth optimal all-reduce algorithms for clusters of workstations": the ring moves
  2 (n - 1) / n of the bytes, and no algorithm does with less.
* Sergeev & Del Balso 2018, "Horovod": the ring for gradients. Horovod's hierarchical all-reduce (its pull request 411):
  reduce-scatter by NCCL in the node, all-reduce between nodes by each local rank, all-gather in the node.
* NVIDIA: nccl-tests, doc/PERFORMANCE.md (2 (n - 1) / n); NCCL, src/graph/tuning.cc: a ring through nodes takes
  2 (nodes - 1) steps of the network and 2 (ranks - nodes) steps of NVLink.
* Li et al. 2020, "PyTorch Distributed: Experiences on Accelerating Data Parallel Training": buckets in the reverse
  order of the layers, each sent when its gradients are ready.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

Algorithm = Literal["ring", "hierarchical_ring", "hierarchical_doubling"]
ALGORITHMS: Final[tuple[Algorithm, ...]] = ("ring", "hierarchical_ring", "hierarchical_doubling")

# NCCL, src/graph/tuning.cc (2.8 to 2.12): seconds per step of a ring, protocol Simple, which large messages take.
_NVLINK_LATENCY: Final = 3.4e-6
_NETWORK_LATENCY: Final = 9.6e-6

# The default of DistributedDataParallel: the first bucket is small, so that sending begins early.
_FIRST_BUCKET_BYTES: Final = 1024 * 1024


@dataclass(frozen=True)
class Link:
    """One way between two places.

    Attributes:
        latency: Seconds until the first byte of a message has arrived and is added.
        bandwidth: Bytes per second and direction.
    """

    latency: float
    bandwidth: float


@dataclass(frozen=True)
class Machine:
    """Nodes of some GPUs.

    Attributes:
        name: For tables.
        gpus_per_node: GPUs of a node.
        inside: Between neighbouring GPUs of a node; the bandwidth is that of one GPU, each way.
        between: Between nodes; the bandwidth is that of a node, each way, all its adapters together.
        source: Where the numbers are from.
    """

    name: str
    gpus_per_node: int
    inside: Link
    between: Link
    source: str


SUMMIT: Final = Machine(
    "Summit",
    6,
    Link(_NVLINK_LATENCY, 50e9),
    Link(_NETWORK_LATENCY, 23e9),
    "OLCF Summit user guide: 6 V100; pairs of NVLink2 bricks of 25 GB/s each way; dual-rail EDR, 23 GB/s out of a node",
)
JUWELS_BOOSTER: Final = Machine(
    "JUWELS Booster",
    4,
    Link(_NVLINK_LATENCY, 235e9),
    Link(_NETWORK_LATENCY, 100e9),
    "JSC JUWELS Booster overview: 4 A100, 4 HDR200 of 200 Gbit/s; NVLink3: what NCCL's tuning.cc takes for A100",
)
PERLMUTTER: Final = Machine(
    "Perlmutter",
    4,
    Link(_NVLINK_LATENCY, 235e9),
    Link(_NETWORK_LATENCY, 100e9),
    "NERSC Perlmutter architecture: 4 A100, 4 Slingshot 11 of 200 Gbit/s; NVLink3 as JUWELS Booster",
)
MACHINES: Final = (SUMMIT, JUWELS_BOOSTER, PERLMUTTER)


@dataclass(frozen=True)
class Workload:
    """What one GPU does in a step.

    Attributes:
        step_seconds: A whole step on one GPU, measured.
        gradient_bytes: Of all gradients as they are sent: parameters times 4, or times 2 in half precision.
        bucket_bytes: ``bucket_cap_mb`` of DistributedDataParallel in bytes.
        backward_share: Share of the step in which gradients become ready; a backward pass is counted as twice a forward
            pass (as in the paper's FLOP), so 2/3.
        input_bytes: What one GPU reads in a step; 0 leaves reading out.
        input_bandwidth: Bytes per second that a node reads from where its samples lie.
    """

    step_seconds: float
    gradient_bytes: float
    bucket_bytes: float = 25 * 1024 * 1024
    backward_share: float = 2 / 3
    input_bytes: float = 0.0
    input_bandwidth: float = math.inf


@dataclass(frozen=True)
class StepTime:
    """A modelled step, in seconds.

    Attributes:
        seconds: The whole.
        all_reduce: All buckets together, hidden or not.
        exposed: What communication adds to computing.
        efficiency: Step on one GPU by this step.
    """

    seconds: float
    all_reduce: float
    exposed: float
    efficiency: float


def ring_seconds(ranks: int, size: float, link: Link) -> float:
    """All-reduce of ``size`` bytes in a ring of equal links, as 2 (n - 1) steps of ``size / n`` bytes."""
    return 2 * _scatter_seconds(ranks, size, link)


def doubling_seconds(ranks: int, size: float, link: Link) -> float:
    """All-reduce by recursive halving and doubling: the ring's bytes in 2 log2(n) steps.

    For numbers that are no power of two the logarithm is rounded up, and the extra exchange of those ranks is left out.
    """
    if ranks == 1:
        return 0.0
    return 2 * math.ceil(math.log2(ranks)) * link.latency + 2 * (ranks - 1) / ranks * size / link.bandwidth


def all_reduce_seconds(gpus: int, size: float, machine: Machine, algorithm: Algorithm) -> float:
    """All-reduce of ``size`` bytes over so many GPUs, filling node after node.

    ``ring`` is one ring through all GPUs, as wide as the narrower of NVLink and a node's adapters. The hierarchical
    ones reduce and scatter in each node, let each local rank all-reduce its part with its like on the other nodes (in a
    ring, or by halving and doubling) over its share of the adapters, and gather in the node.
    """
    nodes = math.ceil(gpus / machine.gpus_per_node)
    local = min(gpus, machine.gpus_per_node)
    if nodes == 1:
        return ring_seconds(local, size, machine.inside)
    if algorithm == "ring":
        latency = 2 * (gpus - nodes) * machine.inside.latency + 2 * (nodes - 1) * machine.between.latency
        narrowest = min(machine.inside.bandwidth, machine.between.bandwidth)
        return latency + 2 * (gpus - 1) / gpus * size / narrowest
    # Each of the local ranks has its share of the adapters, and of the bytes.
    share = Link(machine.between.latency, machine.between.bandwidth / local)
    across = ring_seconds if algorithm == "hierarchical_ring" else doubling_seconds
    return 2 * _scatter_seconds(local, size, machine.inside) + across(nodes, size / local, share)


def _scatter_seconds(ranks: int, size: float, link: Link) -> float:
    """Reduce-scatter, or all-gather, in a ring: n - 1 steps of ``size / n`` bytes."""
    return (ranks - 1) * (link.latency + size / ranks / link.bandwidth)


def bucket_sizes(gradient_bytes: float, bucket_bytes: float) -> list[float]:
    """The buckets of DistributedDataParallel in the order of their sending: a small one, then equal ones and a rest."""
    sizes = []
    left, limit = gradient_bytes, min(_FIRST_BUCKET_BYTES, bucket_bytes)
    while left > 0:
        sizes.append(min(left, limit))
        left -= sizes[-1]
        limit = bucket_bytes
    return sizes


def step_time(workload: Workload, all_reduce: Callable[[float], float], *, lag: bool = False) -> StepTime:
    """A step in which each bucket is sent when its gradients are ready and the one before it has arrived.

    Gradients become ready evenly over the backward pass, which ends with the step. With gradient lag 1 the all-reduce
    may last until the end of the next step, so only what exceeds a step is added.

    Args:
        workload: What one GPU does.
        all_reduce: Seconds for so many bytes.
        lag: Whether a step applies the gradients of the one before it.
    """
    sizes = bucket_sizes(workload.gradient_bytes, workload.bucket_bytes)
    times = [all_reduce(size) for size in sizes]
    total = sum(times)
    if lag:
        end = total
    else:
        end, ready = 0.0, 0.0
        backward = workload.step_seconds * workload.backward_share
        for size, seconds in zip(sizes, times, strict=True):
            ready += size
            at = workload.step_seconds - backward * (1 - ready / workload.gradient_bytes)
            end = max(end, at) + seconds
    exposed = max(0.0, end - workload.step_seconds) if total > 0 else 0.0
    return _step(workload.step_seconds, workload.step_seconds + exposed, total)


def scaled_step(
    workload: Workload, machine: Machine, gpus: int, algorithm: Algorithm, *, lag: bool = False
) -> StepTime:
    """A step on so many GPUs of a machine; the next samples are read meanwhile, which counts if it takes longer."""
    step = step_time(workload, lambda size: all_reduce_seconds(gpus, size, machine, algorithm), lag=lag)
    reading = min(gpus, machine.gpus_per_node) * workload.input_bytes / workload.input_bandwidth
    return _step(workload.step_seconds, max(step.seconds, reading), step.all_reduce)


def _step(alone: float, seconds: float, all_reduce: float) -> StepTime:
    return StepTime(seconds, all_reduce, seconds - alone, alone / seconds)
