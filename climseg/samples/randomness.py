"""Randomness as a function of where the training is, so that a resumed run draws what an undisturbed one would."""

import numpy as np


def derived_seed(*numbers: int) -> int:
    """A 64-bit seed that follows from some numbers from 0 on, such as a seed, an epoch and a batch.

    Different numbers, also in another order, give unrelated seeds (numpy's SeedSequence).
    """
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0])
