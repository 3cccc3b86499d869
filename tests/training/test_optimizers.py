"""The optimisers of conf/optimizer, as the command line builds them."""

import io
from pathlib import Path

import hydra
import pytest
import torch
from omegaconf import OmegaConf
from torch import Tensor, nn
from torch.optim import Optimizer

CONF = Path(__file__).parents[2] / "conf/optimizer"
NAMES = sorted(path.stem for path in CONF.glob("*.yaml"))


def optimizer_of(name: str, parameters: object, **options: object) -> Optimizer:
    configuration = OmegaConf.merge(OmegaConf.load(CONF / f"{name}.yaml"), options)
    optimizer: Optimizer = hydra.utils.instantiate(configuration)(parameters)
    return optimizer


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(2, 4, 3), nn.ReLU(), nn.Conv2d(4, 1, 3))


def train(model: nn.Module, optimizer: Optimizer, steps: range) -> list[float]:
    losses = []
    for step in steps:
        image = torch.randn(2, 2, 8, 8, generator=torch.Generator().manual_seed(step))
        loss = (model(image) - image[:, :1, 2:-2, 2:-2]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("name", NAMES)
def test_it_lowers_a_loss(name: str) -> None:
    model = network()
    losses = train(model, optimizer_of(name, model.parameters()), range(60))
    assert sum(losses[-10:]) < 0.99 * sum(losses[:10])


@pytest.mark.parametrize("name", NAMES)
def test_saved_and_loaded_it_goes_on_bit_by_bit(name: str) -> None:
    whole = network()
    train(whole, optimizer_of(name, whole.parameters()), range(8))
    first = network()
    optimizer = optimizer_of(name, first.parameters())
    train(first, optimizer, range(4))
    file = io.BytesIO()
    torch.save({"model": first.state_dict(), "optimizer": optimizer.state_dict()}, file)
    file.seek(0)
    saved = torch.load(file, weights_only=True)
    second = network()
    second.load_state_dict(saved["model"])
    resumed = optimizer_of(name, second.parameters())
    resumed.load_state_dict(saved["optimizer"])
    train(second, resumed, range(4, 8))
    for ours, theirs in zip(second.parameters(), whole.parameters(), strict=True):
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize("name", NAMES)
def test_a_weight_without_a_gradient_stays_and_one_with_zero_stays_finite(name: str) -> None:
    none, zero, nought = (nn.Parameter(torch.full((3,), value)) for value in (1.0, 1.0, 0.0))
    optimizer = optimizer_of(name, [none, zero, nought])
    for _ in range(3):
        zero.grad = torch.zeros(3)
        nought.grad = torch.zeros(3)
        optimizer.step()
    assert torch.equal(none, torch.ones(3))
    assert torch.isfinite(zero).all()
    assert (zero <= 1).all()  # weight decay alone
    assert torch.equal(nought, torch.zeros(3))


@pytest.mark.parametrize("name", NAMES)
def test_weights_that_begin_at_zero_move(name: str) -> None:
    weight = nn.Parameter(torch.zeros(3))
    weight.grad = torch.ones(3)
    optimizer_of(name, [weight]).step()
    assert (weight < 0).all()


@pytest.mark.parametrize("name", NAMES)
def test_a_learning_rate_of_zero_changes_nothing(name: str) -> None:
    model = network()
    before = [p.detach().clone() for p in model.parameters()]
    train(model, optimizer_of(name, model.parameters(), lr=0.0), range(2))
    assert all(torch.equal(p, b) for p, b in zip(model.parameters(), before, strict=True))


def scaled_step(name: str, gradient: Tensor) -> Tensor:
    """Where one step under a gradient scaler takes a weight of ones, with a gradient given as a loss's."""
    weight = nn.Parameter(torch.ones(3))
    optimizer = optimizer_of(name, [weight])
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    scaler.scale((weight * gradient).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    return weight.detach()


@pytest.mark.parametrize("name", NAMES)
def test_under_a_gradient_scaler_a_step_is_the_same_and_one_that_overflows_is_left_out(name: str) -> None:
    gradient = torch.tensor([0.5, -0.25, 0.125])
    plain = nn.Parameter(torch.ones(3))
    plain.grad = gradient.clone()
    optimizer_of(name, [plain]).step()
    assert torch.equal(scaled_step(name, gradient), plain.detach())
    assert torch.equal(scaled_step(name, torch.tensor([torch.inf, 0.0, 0.0])), torch.ones(3))


def larc_step(weight: Tensor, gradient: Tensor, **options: float) -> Tensor:
    parameter = nn.Parameter(weight.clone())
    parameter.grad = gradient.clone()
    optimizer_of("larc", [parameter], **options).step()
    return weight - parameter.detach()


def test_larc_takes_the_smaller_of_its_rate_and_the_share_of_the_norms() -> None:
    weight, gradient = torch.tensor([3.0, 4.0]), torch.tensor([0.0, 2.0])
    # eta |w| / |g| = 0.002 * 5 / 2 = 0.005, below lr 0.1 and above lr 0.001
    torch.testing.assert_close(larc_step(weight, gradient, lr=0.1, weight_decay=0.0), 0.005 * gradient)
    torch.testing.assert_close(larc_step(weight, gradient, lr=0.001, weight_decay=0.0), 0.001 * gradient)


def test_larc_counts_weight_decay_in_the_norms() -> None:
    weight, gradient = torch.tensor([3.0, 4.0]), torch.tensor([0.0, 2.0])
    rate = 0.002 * 5 / (2 + 0.1 * 5)
    torch.testing.assert_close(larc_step(weight, gradient, lr=0.1, weight_decay=0.1), rate * (gradient + 0.1 * weight))


def test_without_always_adapt_timm_turns_larc_without_weight_decay_into_sgd() -> None:
    weight, gradient = torch.tensor([3.0, 4.0]), torch.tensor([0.0, 2.0])
    step = larc_step(weight, gradient, lr=0.1, weight_decay=0.0, always_adapt=False)
    torch.testing.assert_close(step, 0.1 * gradient)


def test_the_first_step_of_lamb_by_hand() -> None:
    weight, gradient = torch.tensor([3.0, 4.0]), torch.tensor([0.3, -0.4])
    parameter = nn.Parameter(weight.clone())
    parameter.grad = gradient.clone()
    optimizer_of("lamb", [parameter], lr=0.001).step()
    # Adam's first update is the sign; LAMB adds 0.01 w and gives it the norm of w (You et al. 2020, algorithm 2).
    update = torch.tensor([1.0, -1.0]) + 0.01 * weight
    torch.testing.assert_close(weight - parameter.detach(), 0.001 * 5 * update / update.norm(), rtol=1e-3, atol=0)


def test_lamb_shrinks_a_weight_without_any_gradient_by_its_rate() -> None:
    parameter = nn.Parameter(torch.ones(3))
    parameter.grad = torch.zeros(3)
    optimizer_of("lamb", [parameter], lr=0.001).step()
    torch.testing.assert_close(parameter.detach(), torch.full((3,), 0.999))
