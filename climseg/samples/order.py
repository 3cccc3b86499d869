"""Which samples a process takes, in which order.

Both orders are functions of numbers that every process knows. So nothing has to be stored to go on in the middle of an
epoch, the global batches do not depend on the number of processes, and all processes take equally many steps.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch.utils.data import Sampler

from climseg.samples.randomness import derived_seed


@dataclass(frozen=True)
class Place:
    """The place of a process among those that share the samples.

    Attributes:
        rank: From 0 on.
        processes: How many they are.
    """

    rank: int = 0
    processes: int = 1


class ShuffledOrder(Sampler[int]):
    """The positions of one process in an epoch, shuffled anew for each epoch.

    Each step takes the next ``batch_size * processes`` samples of one order for all, and the process of rank r the
    r-th part of them: two processes with a batch of 2 see the same samples per step as one with 4. What is left over
    at the end of an epoch is left out. Fewer samples than one global batch make one step, in which some samples come
    twice if the processes are more.

    Args:
        size: Number of samples.
        batch_size: Samples per step and process.
        place: The process.
        seed: Of the orders.
    """

    def __init__(self, size: int, batch_size: int, place: Place, seed: int) -> None:
        self._size = size
        self._place = place
        self._seed = seed
        self._epoch = 0
        self._skip = 0
        self._share = min(batch_size, -(-size // place.processes))
        self.steps = max(1, size // (self._share * place.processes))

    def set_epoch(self, epoch: int) -> None:
        """Take the order of an epoch; Lightning calls it before each."""
        self._epoch = epoch

    def start_at(self, epoch: int, step: int) -> None:
        """Leave out the steps before ``step`` in the next pass, which is that of ``epoch``."""
        self._epoch, self._skip = epoch, step

    def __len__(self) -> int:
        """Samples of a whole epoch for this process."""
        return self.steps * self._share

    def __iter__(self) -> Iterator[int]:
        """The positions; the epoch is that of the first one's asking."""
        first, self._skip = self._skip, 0
        generator = torch.Generator().manual_seed(derived_seed(self._seed, self._epoch))
        order = torch.randperm(self._size, generator=generator).tolist()
        for step in range(first, self.steps):
            start = (step * self._place.processes + self._place.rank) * self._share
            yield from (order[i % self._size] for i in range(start, start + self._share))


class OrderOfTime(Sampler[int]):
    """Every n-th position, for n processes; the last one again where there are fewer than another process has.

    Args:
        size: Number of samples, at least 1.
        place: The process.
        length: As many positions as the process with the most of them has.
    """

    def __init__(self, size: int, place: Place, length: int) -> None:
        self._own = list(range(place.rank, size, place.processes))
        self._fill = [size - 1] * (length - len(self._own))

    @property
    def real(self) -> int:
        """How many of the positions are no repetition: the first ones."""
        return len(self._own)

    def __len__(self) -> int:
        """The same for all processes."""
        return len(self._own) + len(self._fill)

    def __iter__(self) -> Iterator[int]:
        """The positions."""
        return iter(self._own + self._fill)
