"""``climseg stage``: this node's share of a store to its own disk."""

import logging
import os
from pathlib import Path

from omegaconf import DictConfig

from climseg.cli.progress import progress_bar
from climseg.errors import InputError
from climseg.store.stage import stage_store

log = logging.getLogger(__name__)

# Number of this node and of all: as Slurm's srun and as torchrun say them to each process.
_VARIABLES = (("SLURM_NODEID", "SLURM_NNODES"), ("GROUP_RANK", "GROUP_WORLD_SIZE"))


def run(configuration: DictConfig) -> None:
    """Find out which node this is, copy, say what is there."""
    node, nodes = _node(configuration.node, configuration.nodes)
    target = Path(str(configuration.target))
    with progress_bar("files") as progress:
        staged = stage_store(
            Path(str(configuration.data.store)),
            target,
            node=node,
            nodes=nodes,
            seed=configuration.seed,
            threads=configuration.threads,
            progress=progress,
        )
    if staged.left_out:
        log.info("%d training samples are left out, so that all nodes have equally many", staged.left_out)
    here = ", ".join(f"{len(indices)} {split}" for split, indices in staged.shard.indices.items())
    if not staged.copied_bytes:
        log.info("%s: node %d of %d: %s; all there and verified already", target, node, nodes, here)
        return
    gigabytes = staged.copied_bytes / 1e9
    log.info(
        "%s: node %d of %d: %s; copied and verified %.3g GB in %.1f s, %.2f GB/s",
        target,
        node,
        nodes,
        here,
        gigabytes,
        staged.seconds,
        gigabytes / staged.seconds,
    )


def _node(node: object, nodes: object) -> tuple[int, int]:
    """The number of this node, from 0, and that of all nodes: by the keys, or by what started this process."""
    if (node is None) != (nodes is None):
        raise InputError(f"node={node}, nodes={nodes}: give both, or none under srun and torchrun.")
    if isinstance(node, int) and isinstance(nodes, int):
        return node, nodes
    if node is not None:
        raise InputError(f"node={node}, nodes={nodes}: expected whole numbers.")
    for names in _VARIABLES:
        if all(os.environ.get(name, "").isdecimal() for name in names):
            return int(os.environ[names[0]]), int(os.environ[names[1]])
    return 0, 1
