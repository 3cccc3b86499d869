"""Where a training is, also right after it was resumed."""

import pytorch_lightning as pl
from pytorch_lightning.loops.progress import _ProcessedTracker


def epoch_of(trainer: pl.Trainer) -> int:
    """The epoch that is under way, or is next; ``trainer.current_epoch`` lags behind while a run is being resumed."""
    return _epochs(trainer).processed


def steps_done_in_epoch(trainer: pl.Trainer) -> int:
    """Batches of the epoch under way that are done; 0 between two epochs."""
    epochs = _epochs(trainer)
    done: int = trainer.fit_loop.epoch_loop.batch_progress.current.ready
    return done if epochs.started > epochs.processed else 0


def _epochs(trainer: pl.Trainer) -> _ProcessedTracker:
    current = trainer.fit_loop.epoch_progress.current
    assert isinstance(current, _ProcessedTracker)
    return current
