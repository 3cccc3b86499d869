"""Checkpoints that are whole or not there at all."""

from pathlib import Path
from typing import Any

import torch
from lightning_fabric.plugins import TorchCheckpointIO
from lightning_fabric.utilities.types import _PATH

from climseg.atomic import atomic_file
from climseg.errors import InputError


class AtomicCheckpointIO(TorchCheckpointIO):
    """Writes beside the final name and renames; Lightning's own goes through /tmp and may leave half a file."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: _PATH, storage_options: Any | None = None) -> None:
        """Save a checkpoint.

        Raises:
            InputError: It cannot be written.
        """
        with atomic_file(Path(path)) as partial:
            try:
                torch.save(checkpoint, partial)
            except (OSError, RuntimeError) as error:
                reason = " ".join(str(error).split())[:100]
                raise InputError(f"{path}: could not be written ({reason}); is the disk full?") from error
