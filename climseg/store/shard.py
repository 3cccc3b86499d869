"""Which samples of a store a node holds on its own disk.

``climseg stage`` gives each node its share and writes it down in ``shard.json`` beside ``climseg.json``.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import numpy as np

from climseg.errors import InputError
from climseg.store.info import SPLITS, StoreInfo

SHARD_FILE: Final = "shard.json"


@dataclass(frozen=True)
class Shard:
    """The share of one node.

    Attributes:
        node: Its number, from 0.
        nodes: Number of nodes.
        seed: Of the choice of training samples.
        indices: By split, positions of the time steps in the whole store, ascending.
        source_sha256: Of the whole store's ``climseg.json``.
    """

    node: int
    nodes: int
    seed: int
    indices: dict[str, list[int]]
    source_sha256: str

    def as_json(self) -> bytes:
        """What ``shard.json`` holds."""
        return (json.dumps(asdict(self)) + "\n").encode()


def read_shard(folder: Path) -> Shard | None:
    """The share that a store holds, or None if it is a whole store.

    Raises:
        InputError: The file is damaged.
    """
    path = folder / SHARD_FILE
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return Shard(**content)
    except FileNotFoundError:
        return None
    except (TypeError, json.JSONDecodeError) as error:
        raise InputError(f"{path}: not the description of a shard ({error!r}); stage the store anew.") from error


def share_out(info: StoreInfo, node: int, nodes: int, seed: int) -> dict[str, list[int]]:
    """The time steps of one node, by split.

    Training samples are drawn at random, so that every node has all seasons, equally many for each node, so that all do
    equally many steps; fewer than ``nodes`` of them are left out. Of the other splits every sample goes to one node, in
    turn, so that nodes differ by one at most.

    Raises:
        InputError: There are fewer training samples than nodes.
    """
    train = info.indices("train")
    each = len(train) // nodes
    if each == 0:
        raise InputError(f"nodes={nodes}: the store has {len(train)} training samples; use as many nodes at most.")
    shuffled = np.random.default_rng(seed).permutation(train).tolist()
    shares = {split: info.indices(split)[node::nodes] for split in SPLITS}
    return shares | {"train": sorted(shuffled[node * each : (node + 1) * each])}
