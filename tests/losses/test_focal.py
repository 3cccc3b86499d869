import math

import pytest
import segmentation_models_pytorch as smp
import torch
from torch import Tensor

from climseg.errors import InputError
from climseg.losses.focal import FocalLoss, focal
from climseg.losses.weighted_cross_entropy import WeightedCrossEntropy

WEIGHTS = torch.tensor([0.1, 0.6, 0.3])


def batch() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    return 3 * torch.randn(4, 3, 2, 5, generator=generator), torch.randint(-1, 3, (4, 2, 5), generator=generator)


def test_one_pixel_by_hand() -> None:
    logits = torch.tensor([0.7, 0.1, 0.2]).log().view(1, 3, 1, 1)
    loss = FocalLoss(WEIGHTS, gamma=2.0)(logits, torch.tensor([[[2]]]))
    assert loss.item() == pytest.approx(0.3 * 0.8**2 * -math.log(0.2))


@pytest.mark.parametrize("area", [None, torch.tensor([0.5, 1.5])])
def test_with_gamma_zero_it_is_weighted_cross_entropy(area: Tensor | None) -> None:
    logits, target = batch()
    expected = WeightedCrossEntropy(WEIGHTS, area)(logits, target)
    torch.testing.assert_close(FocalLoss(WEIGHTS, 0.0, area)(logits, target), expected)


def test_the_mean_of_two_ranks_is_the_loss_of_the_whole_batch() -> None:
    logits, target = batch()
    loss = FocalLoss(WEIGHTS)
    ranks = torch.stack([loss(logits[:2], target[:2]), loss(logits[2:], target[2:])])
    torch.testing.assert_close(ranks.mean(), loss(logits, target))


@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0, 2.0])
def test_a_certain_pixel_has_a_finite_gradient_for_every_gamma(gamma: float) -> None:
    logits = torch.tensor([200.0, 0.0, 0.0]).view(1, 3, 1, 1).requires_grad_()
    FocalLoss(WEIGHTS, gamma)(logits, torch.tensor([[[0]]])).backward()
    assert torch.isfinite(logits.grad).all()


def test_smp_takes_sigmoids_and_is_not_a_number_without_labels() -> None:
    theirs = smp.losses.FocalLoss("multiclass", ignore_index=-1)
    logits, target = batch()
    # A softmax does not change when all logits of a pixel rise alike; a sigmoid does.
    assert theirs(logits + 5, target).item() != pytest.approx(theirs(logits, target).item(), rel=0.1)
    torch.testing.assert_close(FocalLoss(WEIGHTS)(logits + 5, target), FocalLoss(WEIGHTS)(logits, target))
    assert torch.isnan(theirs(logits, torch.full_like(target, -1)))


@pytest.mark.parametrize("gamma", [-1.0, float("nan"), float("inf"), "2"])
def test_an_impossible_gamma_is_refused(gamma: float) -> None:
    with pytest.raises(InputError, match="gamma"):
        focal([1, 1], gamma=gamma)
