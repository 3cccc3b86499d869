"""Training in several processes: Lightning's DDP, communication hooks that act on every device, gradient lag."""

import math
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import torch
import torch.distributed as dist
from pytorch_lightning.strategies import DDPStrategy
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

from climseg.errors import InputError, near_matches
from climseg.training.gradient_lag import GradientLag, Hook

COMM_HOOKS: Final = ("fp16", "bf16", "powersgd")
_LAG: Final = "gradient_lag"


class HookedDDPStrategy(DDPStrategy):
    """DDP whose communication hook also acts on the CPU, where Lightning's own leaves it out without a word.

    Args:
        comm_hook: How gradients travel: ``fp16`` or ``bf16`` (half as many bytes), ``powersgd`` (matrices of rank 1,
            Vogels et al. 2019; it starts after 10 steps), or None (float32).
        gradient_lag: Apply the gradients of the step before.
        bucket_megabytes: Gradients that travel together. DDP's own default is 25.

    Raises:
        InputError: There is no such hook, or it does not work with gradient lag.
    """

    def __init__(
        self,
        comm_hook: str | None = None,
        gradient_lag: bool = False,
        bucket_megabytes: float | None = None,
        **options: Any,
    ) -> None:
        if comm_hook is not None and comm_hook not in COMM_HOOKS:
            near = near_matches(str(comm_hook), COMM_HOOKS) or "."
            raise InputError(f"comm_hook={comm_hook}: no such hook{near} Known: {', '.join(COMM_HOOKS)}, null.")
        if comm_hook == "powersgd" and gradient_lag:
            # PowerSGD's later all-reduces start when its first one is through: at another moment on each rank, in
            # between the next step's (a training of 2 ranks stood still).
            raise InputError("comm_hook=powersgd and gradient_lag=true do not work together; choose one of them.")
        if bucket_megabytes is None and comm_hook == "powersgd":
            bucket_megabytes = 25.0  # when it is named, DDP makes the first bucket no smaller than the others
        if bucket_megabytes is not None:
            options["bucket_cap_mb"] = bucket_megabytes
        super().__init__(**options)
        self._comm_hook = comm_hook
        self._lagged = gradient_lag
        self._bucket_megabytes = bucket_megabytes
        self.lag: GradientLag | None = None
        self._lag_state: Mapping[str, Any] | None = None

    def _setup_model(self, model: nn.Module) -> DistributedDataParallel:
        if self.root_device.type == "cpu" and self._comm_hook != "powersgd":
            # Else DDP deals out the parameters to its buckets anew after the first step, and gloo sums in an order that
            # depends on the place in a bucket: a resumed run of more than two ranks would differ in the last bits.
            # The all-reduce that this adds comes in between those of PowerSGD, which resumes inexactly anyway.
            self._ddp_kwargs["find_unused_parameters"] = True
        return super()._setup_model(model)

    def _register_ddp_hooks(self) -> None:
        model = self.model
        assert isinstance(model, DistributedDataParallel)
        if self._comm_hook is None and not self._lagged:
            return
        hook = self._reducing_hook(model)
        if self._lagged:
            parameters = {name: p for name, p in model.module.named_parameters() if p.requires_grad}
            self.lag = GradientLag(parameters, hook, self._loss_scale)
            if self._lag_state is not None:
                self.lag.load_state_dict(self._lag_state, self.root_device)
            hook = self.lag
        model.register_comm_hook(hook, _call_hook)

    def _reducing_hook(self, model: DistributedDataParallel) -> Hook:
        if self._comm_hook == "powersgd":
            self._check_powersgd(model)
            return partial(powerSGD_hook, PowerSGDState(process_group=None, start_powerSGD_iter=10))
        hooks = {"fp16": default_hooks.fp16_compress_hook, "bf16": default_hooks.bf16_compress_hook}
        # A process group does one thing after the other. In that of all the rest, whatever the ranks tell each other in
        # the next step would wait for the lagged gradients, and nothing of their exchange would be hidden.
        group = dist.new_group() if self._lagged else None
        return partial(hooks.get(str(self._comm_hook), default_hooks.allreduce_hook), group)  # type: ignore[arg-type]

    def _check_powersgd(self, model: DistributedDataParallel) -> None:
        """On gloo, PowerSGD mixes up the all-reduces of several buckets (seen with torch 2.14)."""
        if dist.get_backend() != "gloo":
            return
        needed = sum(p.numel() * p.element_size() for p in model.module.parameters() if p.requires_grad) / 2**20
        if needed > (self._bucket_megabytes or 25):
            raise InputError(
                f"comm_hook=powersgd: the gradients ({needed:.0f} MB) travel in several buckets of "
                f"{self._bucket_megabytes:g} MB, which PowerSGD mixes up on the CPU (gloo); give "
                f"bucket_megabytes={math.ceil(needed)}, or another comm_hook."
            )

    def _loss_scale(self) -> float:
        scaler = getattr(self.precision_plugin, "scaler", None)
        return float(scaler.get_scale()) if scaler is not None else 1.0

    def lag_state(self) -> dict[str, Any]:
        """What a checkpoint keeps of the gradient lag; empty without."""
        return {} if self.lag is None else {_LAG: self.lag.state_dict()}

    def load_lag_state(self, checkpoint: Mapping[str, Any]) -> None:
        """Go on with the lagged gradients of a checkpoint, once the network is wrapped."""
        self._lag_state = checkpoint.get(_LAG)


# DDP looks at the annotations.
def _call_hook(hook: Hook, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:  # type: ignore[name-defined]
    return hook(bucket)
