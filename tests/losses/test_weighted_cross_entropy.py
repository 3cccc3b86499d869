import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from climseg.channels import MISSING_LABEL
from climseg.errors import InputError
from climseg.losses.weighted_cross_entropy import WeightedCrossEntropy, weighted_cross_entropy

WEIGHTS = torch.tensor([0.1, 0.6, 0.3])
GRID_WEIGHTS = torch.tensor([0.5, 1.5])


def batch(seed: int = 0, scale: float = 3.0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    logits = scale * torch.randn(4, 3, 2, 5, generator=generator)
    return logits, torch.randint(0, 3, (4, 2, 5), generator=generator)


def test_equal_logits_cost_the_weight_times_log_of_the_number_of_classes() -> None:
    logits = torch.zeros(1, 3, 1, 2)
    target = torch.tensor([[[0, 1]]])
    assert WeightedCrossEntropy(WEIGHTS)(logits, target).item() == pytest.approx((0.1 + 0.6) * math.log(3) / 2)


def test_one_pixel_by_hand() -> None:
    probabilities = torch.tensor([0.2, 0.5, 0.3])
    loss = WeightedCrossEntropy(WEIGHTS)(probabilities.log().view(1, 3, 1, 1), torch.tensor([[[1]]]))
    assert loss.item() == pytest.approx(0.6 * math.log(2))


def test_with_equal_weights_it_is_the_cross_entropy_of_torch() -> None:
    logits, target = batch()
    torch.testing.assert_close(WeightedCrossEntropy(torch.ones(3))(logits, target), F.cross_entropy(logits, target))


def test_the_mean_of_two_ranks_is_the_loss_of_the_whole_batch() -> None:
    logits, target = batch()
    target[0] = MISSING_LABEL  # one rank has fewer labelled pixels than the other
    loss = WeightedCrossEntropy(WEIGHTS, GRID_WEIGHTS)
    ranks = torch.stack([loss(logits[:2], target[:2]), loss(logits[2:], target[2:])])
    torch.testing.assert_close(ranks.mean(), loss(logits, target))


def test_ignored_pixels_add_nothing_to_the_sum() -> None:
    logits, target = batch()
    loss = WeightedCrossEntropy(WEIGHTS)
    before = loss(logits, target) * target.numel()
    pixel = loss(logits[1:2, :, 1:, 2:3], target[1:2, 1:, 2:3])
    target[1, 1, 2] = MISSING_LABEL
    torch.testing.assert_close(loss(logits, target) * target.numel(), before - pixel)


def test_a_batch_without_any_label_gives_zero_with_a_gradient() -> None:
    logits, target = batch()
    logits.requires_grad_()
    loss = WeightedCrossEntropy(WEIGHTS)(logits, torch.full_like(target, MISSING_LABEL))
    loss.backward()
    assert loss.item() == 0.0
    assert torch.equal(logits.grad, torch.zeros_like(logits))


def test_rows_count_by_their_area() -> None:
    logits, target = batch()
    north, south = (
        WeightedCrossEntropy(WEIGHTS)(logits[:, :, row : row + 1], target[:, row : row + 1]) for row in (0, 1)
    )
    torch.testing.assert_close(
        WeightedCrossEntropy(WEIGHTS, GRID_WEIGHTS)(logits, target), (0.5 * north + 1.5 * south) / 2
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_large_logits_in_half_precision_give_the_loss_of_float32(dtype: torch.dtype) -> None:
    logits, target = batch(scale=1e4)
    logits = logits.clamp(-6e4, 6e4).to(dtype)
    assert logits.abs().max() > 1e4
    loss = WeightedCrossEntropy(WEIGHTS)(logits, target)
    expected = WeightedCrossEntropy(WEIGHTS)(logits.float(), target)
    assert loss.dtype == torch.float32
    assert torch.isfinite(loss)
    assert torch.equal(loss, expected)


def test_under_autocast_the_loss_is_that_of_float32() -> None:
    logits, target = batch()
    loss = WeightedCrossEntropy(WEIGHTS, GRID_WEIGHTS)
    with torch.autocast("cpu", torch.bfloat16):
        mixed = loss(logits, target)
    assert mixed.dtype == torch.float32
    assert torch.equal(mixed, loss(logits, target))


def test_area_weights_of_another_height_are_refused() -> None:
    with pytest.raises(InputError, match="7 latitudes, but the batch has 2"):
        WeightedCrossEntropy(WEIGHTS, torch.ones(7))(*batch())


def test_the_loss_leaves_no_trace_in_a_state_dict() -> None:
    assert WeightedCrossEntropy(WEIGHTS, GRID_WEIGHTS).state_dict() == {}


def test_the_loss_of_a_data_set_has_the_weights_of_its_classes() -> None:
    loss = weighted_cross_entropy([0.982, 0.00071, 0.0169], GRID_WEIGHTS)
    assert loss.weights.tolist() == pytest.approx([0.0218, 0.812, 0.166], rel=3e-3)
    assert loss.area_weights is None
    assert weighted_cross_entropy([0.5, 0.5], GRID_WEIGHTS, area_weighted=True).area_weights is not None


def test_area_weighting_without_a_grid_is_refused() -> None:
    with pytest.raises(InputError, match="area weights of the grid"):
        weighted_cross_entropy([0.5, 0.5], area_weighted=True)
