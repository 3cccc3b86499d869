"""What holds for every loss that conf/loss offers."""

from collections.abc import Sequence
from pathlib import Path

import hydra
import pytest
import torch
from hydra import compose, initialize_config_dir
from torch import Tensor, nn

from climseg.channels import MISSING_LABEL

CONF = Path(__file__).parents[2] / "conf"
NAMES = sorted(path.stem for path in (CONF / "loss").glob("*.yaml"))
FREQUENCIES = [0.9, 0.03, 0.07]
EVERY_TERM = [f"loss.weights.{name}=1" for name in NAMES if name != "weighted_sum"]


def loss_of(name: str, overrides: Sequence[str] = ()) -> nn.Module:
    """The loss as ``climseg train loss=name`` builds it; a weighted sum of all."""
    more = EVERY_TERM if name == "weighted_sum" and not overrides else overrides
    with initialize_config_dir(str(CONF), version_base=None):
        configuration = compose("train", [f"loss={name}", "data.store=none", *more])
    loss: nn.Module = hydra.utils.instantiate(configuration.loss, _partial_=True)(
        frequencies=FREQUENCIES, area_weights=torch.ones(4)
    )
    return loss


def batch(dtype: torch.dtype = torch.float32, scale: float = 2.0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    logits = scale * torch.randn(2, 3, 4, 5, generator=generator, dtype=torch.float64)
    target = torch.randint(0, 3, (2, 4, 5), generator=generator)
    target[0, 1, 2] = target[1, 3, 4] = MISSING_LABEL
    return logits.to(dtype), target


@pytest.fixture(params=NAMES)
def loss(request: pytest.FixtureRequest) -> nn.Module:
    return loss_of(request.param)


def test_its_gradient_is_that_of_finite_differences(loss: nn.Module) -> None:
    logits, target = batch(torch.float64)
    loss = loss.double()
    assert torch.autograd.gradcheck(lambda x: loss(x, target), logits.requires_grad_())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_a_batch_without_any_label_gives_zero_with_a_gradient_of_zero(loss: nn.Module, dtype: torch.dtype) -> None:
    logits, target = batch(dtype)
    value = loss(logits.requires_grad_(), torch.full_like(target, MISSING_LABEL))
    value.backward()
    assert value.shape == ()
    assert value.item() == 0.0
    assert torch.equal(logits.grad, torch.zeros_like(logits))


def test_an_ignored_pixel_changes_nothing_and_gets_no_gradient(loss: nn.Module) -> None:
    logits, target = batch()
    other = logits.clone()
    other[0, :, 1, 2] = torch.tensor([50.0, -50.0, 3.0])
    value = loss(logits.requires_grad_(), target)
    value.backward()
    assert value.item() == loss(other, target).item()
    assert not logits.grad[0, :, 1, 2].any()
    assert logits.grad[0, :, 1, 1].all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_logits_give_the_loss_of_float32_also_under_autocast(
    loss: nn.Module, dtype: torch.dtype
) -> None:
    logits, target = batch(dtype)
    with torch.autocast("cpu", dtype):
        value = loss(logits, target)
    assert value.dtype == torch.float32
    assert torch.equal(value, loss(logits.float(), target))


def test_a_field_too_large_for_sums_in_float16_has_a_finite_loss_and_gradient(loss: nn.Module) -> None:
    generator = torch.Generator().manual_seed(1)
    logits = torch.randn(1, 3, 4, 40_000, generator=generator).half().requires_grad_()
    value = loss(logits, torch.zeros(1, 4, 40_000, dtype=torch.int64))
    value.backward()
    assert torch.isfinite(value)
    assert torch.isfinite(logits.grad).all()


@pytest.mark.parametrize("scale", [1.0, -1.0])
def test_certainty_right_or_wrong_has_a_finite_gradient(loss: nn.Module, scale: float) -> None:
    target = batch()[1].clamp_min(0)
    logits = (scale * 1e4 * torch.nn.functional.one_hot(target, 3).movedim(-1, 1).float()).requires_grad_()
    value = loss(logits, target)
    value.backward()
    assert torch.isfinite(logits.grad).all()
    assert value.item() == pytest.approx(0.0, abs=1e-7) if scale > 0 else value.item() > 0.3


def test_the_memory_format_of_the_logits_does_not_matter(loss: nn.Module) -> None:
    logits, target = batch()
    turned = target.transpose(1, 2).contiguous().transpose(1, 2)
    torch.testing.assert_close(loss(logits.to(memory_format=torch.channels_last), turned), loss(logits, target))


def test_it_leaves_no_trace_in_a_state_dict(loss: nn.Module) -> None:
    assert loss.state_dict() == {}


@pytest.mark.parametrize("name", NAMES)
def test_a_gradient_step_lowers_it(name: str) -> None:
    loss = loss_of(name)
    logits, target = batch()
    value = loss(logits.requires_grad_(), target)
    value.backward()
    assert loss(logits - 0.1 * logits.grad, target) < value
