import pytest
import segmentation_models_pytorch as smp
import torch
from sklearn.metrics import jaccard_score
from torch import Tensor

from climseg.errors import InputError
from climseg.losses.lovasz import LovaszLoss, lovasz

EVEN = [1.0, 1.0, 1.0]


def batch() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    return 2 * torch.randn(2, 3, 6, 7, generator=generator), torch.randint(-1, 3, (2, 6, 7), generator=generator)


def test_two_pixels_by_hand() -> None:
    # Probabilities of class 0 are 0.8 and 0.4, of class 1 0.2 and 0.6; the labels are 0 and 1. Both classes have the
    # errors 0.4 and 0.2. Class 0: the worst is the false positive, which takes the index from 1 to 1/2, the next
    # to 0: 0.4/2 + 0.2/2. Class 1: the worst is the miss, which takes it from 1 to 0: 0.4.
    logits = torch.tensor([[0.8, 0.4], [0.2, 0.6]]).log().view(1, 2, 1, 2)
    assert lovasz([1, 1])(logits, torch.tensor([[[0, 1]]])).item() == pytest.approx((0.3 + 0.4) / 2)


def test_of_a_network_that_is_sure_it_is_the_jaccard_loss_of_scikit_learn() -> None:
    generator = torch.Generator().manual_seed(3)
    said, target = torch.randint(0, 3, (2, 2, 6, 7), generator=generator)
    logits = 100 * torch.nn.functional.one_hot(said, 3).movedim(-1, 1).float()
    expected = jaccard_score(target.flatten().numpy(), said.flatten().numpy(), average="macro")
    assert 1 - lovasz(EVEN)(logits, target).item() == pytest.approx(expected)


def test_it_is_that_of_smp_on_a_small_field_also_with_a_class_absent() -> None:
    logits, target = batch()
    theirs = smp.losses.LovaszLoss("multiclass", ignore_index=-1)
    torch.testing.assert_close(lovasz(EVEN)(logits, target), theirs(logits, target))
    target[target == 1] = 0
    torch.testing.assert_close(lovasz(EVEN)(logits, target), theirs(logits, target))


def test_classes_weigh_in_the_mean_by_the_scheme() -> None:
    logits = torch.tensor([[0.8, 0.4], [0.2, 0.6]]).log().view(1, 2, 1, 2)
    loss = lovasz([0.8, 0.2], scheme="inverse")(logits, torch.tensor([[[0, 1]]]))
    assert loss.item() == pytest.approx(0.2 * 0.3 + 0.8 * 0.4)


def test_smp_gives_no_scalar_without_labels() -> None:
    logits, target = batch()
    theirs = smp.losses.LovaszLoss("multiclass", ignore_index=-1)(logits, torch.full_like(target, -1))
    assert theirs.shape == (0, 3)


def test_in_a_large_field_each_pixel_has_its_gradient_and_in_smp_a_step_of_rounding() -> None:
    # Background alone: every pixel is a miss, so each weighs 1 / P in the loss.
    pixels = 3_000_000
    target = torch.zeros(1, 1, pixels, dtype=torch.int64)

    def gradient(loss: torch.nn.Module) -> Tensor:
        logits = torch.zeros(1, 3, 1, pixels, requires_grad=True)
        loss(logits, target).backward()
        return logits.grad[0, 0, 0]

    exact = -(1 / 3) * (2 / 3) / pixels  # of softmax at a third
    ours = gradient(LovaszLoss(torch.ones(3)))
    theirs = gradient(smp.losses.LovaszLoss("multiclass", ignore_index=-1))
    assert (ours / exact - 1).abs().max() < 1e-4
    assert (theirs / exact - 1).abs().max() > 0.05


def test_an_unknown_scheme_is_refused() -> None:
    with pytest.raises(InputError, match="did you mean 'uniform'"):
        lovasz(EVEN, scheme="unifrom")
