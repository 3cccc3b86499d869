"""Whether a training can go on from a checkpoint: what Lightning would refuse late, or take over without a word."""

from pathlib import Path
from typing import Any, Final

import torch

from climseg.errors import InputError
from climseg.training.task import SegmentationTask

# Of an optimiser's group: no setting, or one that the schedule changes.
_NO_SETTINGS: Final = ("params", "lr", "initial_lr")


def check_resumable(last: Path, task: SegmentationTask) -> None:
    """Refuse to go on with another optimiser or with other settings of it.

    Lightning takes the settings of the checkpoint: a new ``optimizer.lr`` would do nothing, and another optimiser
    fails in its first step.

    Args:
        last: A checkpoint that :func:`climseg.training.contract.load_checkpoint` can read.
        task: What is to go on.

    Raises:
        InputError: The checkpoint holds no optimiser, another one, or one with other settings.
    """
    content = torch.load(last, map_location="cpu", weights_only=True, mmap=True)
    states = content.get("optimizer_states")
    if not states:
        raise InputError(f"{last}: holds weights only, no state of an optimiser; choose another run_dir.")
    before, now = _settings(states[0]["param_groups"][0]), _settings(task.new_optimizer().param_groups[0])
    if before.keys() != now.keys():
        raise InputError(f"{last}: was trained with another optimizer; give the same one, or another run_dir.")
    for name, value in now.items():
        if before[name] != value:
            shown = "learning rate (optimizer.lr, lr_scaling, global batch)" if name == "lr" else f"optimizer.{name}"
            raise InputError(
                f"{last}: the run has the {shown} {before[name]}, not {value}, and would keep it; give the same, or "
                "another run_dir."
            )


def _settings(group: dict[str, Any]) -> dict[str, Any]:
    """The settings of an optimiser's group, with the learning rate that it had before the schedule."""
    return {k: v for k, v in group.items() if k not in _NO_SETTINGS} | {"lr": group.get("initial_lr", group["lr"])}
