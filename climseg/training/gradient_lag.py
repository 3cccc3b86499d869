"""Gradient lag (Kurth et al. 2018): the update of step t applies the gradient of step t - 1.

The sum of a step's gradients over all processes may then take until the next step's backward pass asks for it, so that
the network between the nodes and the computation work at the same time.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

# A communication hook of DistributedDataParallel, state bound: a bucket of gradients -> their mean over all ranks.
Hook = Callable[[Any], torch.futures.Future[Tensor]]


class GradientLag:
    """A communication hook that starts the all-reduce of this step's gradients and gives those of the step before.

    In the first step there are none before: the hook gives zeros, and the optimiser must not step (``is_empty``). The
    gradient of the last step is never applied.

    Args:
        parameters: The network's parameters by name.
        reduce: The hook that does the all-reduce.
        scale: The factor that the loss is scaled with now. Dynamic scaling in half precision may change it between two
            steps; a lagged gradient is taken from the one scale to the other.
    """

    def __init__(
        self, parameters: Mapping[str, nn.Parameter], reduce: Hook, scale: Callable[[], float] = lambda: 1.0
    ) -> None:
        self._names = {id(parameter): name for name, parameter in parameters.items()}
        self._reduce = reduce
        self._scale = scale
        # Each gradient flat, in the order of its parameter's memory, as it lies in a bucket. Kept by name, because DDP
        # deals the parameters out anew to its buckets after the first step.
        self._before: dict[str, Tensor] = {}
        self._scale_before = 1.0
        self._under_way: list[tuple[dict[str, int], torch.futures.Future[Tensor]]] = []
        self._scale_under_way = 1.0

    @property
    def is_empty(self) -> bool:
        """Whether there was no step before, asked before a step's backward pass."""
        return not self._before and not self._under_way

    def __call__(self, bucket: Any) -> torch.futures.Future[Tensor]:
        """Send a bucket on its way, and give the same parameters' gradients of the step before."""
        if bucket.index() == 0:
            self._land()
            self._scale_under_way = self._scale()
        sizes = {self._names[id(p)]: p.numel() for p in bucket.parameters()}
        given = bucket.buffer()
        bucket.set_buffer(given.clone())  # the all-reduce works in place, and goes on when this has returned
        self._under_way.append((sizes, self._reduce(bucket)))
        if not self._before:
            given.zero_()
        else:
            change = self._scale_under_way / self._scale_before
            for name, part in zip(sizes, torch.split(given, list(sizes.values())), strict=True):
                part.copy_(self._before[name] * change)
        done: torch.futures.Future[Tensor] = torch.futures.Future(devices=[given.device] if given.is_cuda else None)
        done.set_result(given)
        return done

    def state_dict(self) -> dict[str, Any]:
        """The gradients of the last step, the same on all ranks; waits for those under way."""
        self._land()
        return {"scale": self._scale_before, "gradients": {n: g.clone() for n, g in self._before.items()}}

    def load_state_dict(self, state: Mapping[str, Any], device: torch.device) -> None:
        """Go on from what :meth:`state_dict` gave."""
        self._scale_before = state["scale"]
        self._before = {name: gradient.to(device) for name, gradient in state["gradients"].items()}

    def _land(self) -> None:
        if not self._under_way:
            return
        for sizes, future in self._under_way:
            self._before |= zip(sizes, torch.split(future.wait(), list(sizes.values())), strict=True)
        self._under_way = []
        self._scale_before = self._scale_under_way
