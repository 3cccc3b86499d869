import copy

import pytest
import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from climseg.models.build import build_network
from climseg.models.recompute import recomputed
from climseg.models.tiramisu import Tiramisu

SMALL = {"_target_": "climseg.models.tiramisu.Tiramisu", "first_filters": 8, "growth_rate": 4, "down_layers": [2, 2, 3]}
SMALL |= {"up_layers": [2, 2], "kernel_size": 3}


def gradients(network: nn.Module) -> dict[str, torch.Tensor]:
    """Of one step whose dropout is drawn from seed 1."""
    network.zero_grad()
    x = torch.randn(2, 4, 16, 24, generator=torch.Generator().manual_seed(0))
    torch.manual_seed(1)
    network(x).square().mean().backward()
    return {name: p.grad.clone() for name, p in network.named_parameters()}


@pytest.mark.parametrize("norm", [None, "BatchNorm2d", "SyncBatchNorm"])
@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_gradients_and_statistics_are_those_without_checkpointing(dropout: float, norm: str | None) -> None:
    torch.manual_seed(0)
    usual = build_network(SMALL | {"dropout": dropout, "batch_norm": norm is not None}, 4, 3)
    if norm == "SyncBatchNorm":  # as Lightning does on GPUs
        usual = nn.SyncBatchNorm.convert_sync_batchnorm(usual)
    saving = copy.deepcopy(usual)
    saving.checkpoint_activations = True
    for _ in range(2):
        expected, found = gradients(usual), gradients(saving)
        assert all(torch.equal(found[name], expected[name]) for name in expected)
    state = saving.state_dict()
    assert all(torch.equal(state[name], value) for name, value in usual.state_dict().items())
    assert all(norm.momentum == 0.1 for norm in saving.modules() if isinstance(norm, _BatchNorm))


def test_dropout_differs_from_step_to_step() -> None:
    network = Tiramisu(4, first_filters=8, growth_rate=4, dropout=0.5, checkpoint_activations=True)
    x = torch.randn(1, 4, 16, 16)
    assert not torch.equal(network(x), network(x))


def saved_values(network: nn.Module) -> int:
    """Number of values that the forward pass keeps for the gradient."""
    sizes = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        sizes[tensor.data_ptr()] = tensor.numel()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        network(torch.randn(1, 4, 64, 64))
    return sum(sizes.values())


def test_less_than_half_is_kept_for_the_gradient() -> None:
    with_all = Tiramisu(4)
    with_less = Tiramisu(4, checkpoint_activations=True)
    assert saved_values(with_less) < 0.5 * saved_values(with_all)


def test_evaluation_keeps_nothing_and_computes_once() -> None:
    calls = []
    network = Tiramisu(4, first_filters=8, growth_rate=4, checkpoint_activations=True)
    network.bottom.register_forward_pre_hook(lambda *_: calls.append(1))
    x = torch.randn(1, 4, 16, 16, requires_grad=True)
    network.eval()(x).sum().backward()
    assert len(calls) == 1
    network.train()(x).sum().backward()
    assert len(calls) == 3


def test_the_state_dict_and_the_logits_do_not_depend_on_it() -> None:
    torch.manual_seed(0)
    usual = build_network(SMALL, 4, 3).eval()
    saving = build_network(SMALL | {"checkpoint_activations": True}, 4, 3).eval()
    saving.load_state_dict(usual.state_dict())
    x = torch.randn(1, 4, 16, 24)
    assert torch.equal(saving(x), usual(x))


def test_any_block_can_be_computed_again() -> None:
    block = nn.Sequential(nn.Linear(3, 4), nn.Tanh())
    x = torch.randn(5, 3, requires_grad=True)
    (found,) = torch.autograd.grad(recomputed(block, x).sum(), x)
    (expected,) = torch.autograd.grad(block(x).sum(), x)
    assert torch.equal(found, expected)
