import pytest
import segmentation_models_pytorch as smp
import torch
from sklearn.metrics import f1_score, jaccard_score
from torch import Tensor

from climseg.errors import InputError
from climseg.losses.overlap import OverlapLoss, dice, focal_tversky, jaccard

EVEN = [1.0, 1.0, 1.0]
# Probabilities of two pixels: the first is of class 0, the second of class 1.
TWO_PIXELS = torch.tensor([[0.8, 0.4], [0.2, 0.6]]).log().view(1, 2, 1, 2)
TWO_LABELS = torch.tensor([[[0, 1]]])


def certain(labels: Tensor) -> Tensor:
    """Logits of a network that is sure of labels (B, H, W)."""
    return 100 * torch.nn.functional.one_hot(labels, 3).movedim(-1, 1).float()


def batch() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    target = torch.randint(-1, 3, (2, 6, 7), generator=generator)
    return 2 * torch.randn(2, 3, 6, 7, generator=generator), target


def test_jaccard_of_two_pixels_by_hand() -> None:
    # class 0: 0.8 / (0.8 + 0.2 + 0.4); class 1: 0.6 / (0.6 + 0.4 + 0.2)
    expected = 1 - (0.8 / 1.4 + 0.6 / 1.2) / 2
    assert jaccard([1, 1])(TWO_PIXELS, TWO_LABELS).item() == pytest.approx(expected)


def test_dice_of_two_pixels_by_hand() -> None:
    expected = 1 - (2 * 0.8 / (1.2 + 1) + 2 * 0.6 / (0.8 + 1)) / 2
    assert dice([1, 1])(TWO_PIXELS, TWO_LABELS).item() == pytest.approx(expected)


def test_focal_tversky_of_two_pixels_by_hand() -> None:
    first = 1 - 0.8 / (0.8 + 0.7 * 0.2 + 0.3 * 0.4)
    second = 1 - 0.6 / (0.6 + 0.7 * 0.4 + 0.3 * 0.2)
    expected = (first**0.75 + second**0.75) / 2
    assert focal_tversky([1, 1])(TWO_PIXELS, TWO_LABELS).item() == pytest.approx(expected)


def test_of_a_network_that_is_sure_they_are_the_scores_of_scikit_learn() -> None:
    generator = torch.Generator().manual_seed(3)
    said, target = torch.randint(0, 3, (2, 2, 6, 7), generator=generator)
    flat = target.flatten().numpy(), said.flatten().numpy()
    assert 1 - jaccard(EVEN)(certain(said), target).item() == pytest.approx(jaccard_score(*flat, average="macro"))
    assert 1 - dice(EVEN)(certain(said), target).item() == pytest.approx(f1_score(*flat, average="macro"))


def test_with_every_class_present_they_are_those_of_smp() -> None:
    logits, target = batch()
    options = {"mode": "multiclass", "ignore_index": -1}
    torch.testing.assert_close(jaccard(EVEN)(logits, target), smp.losses.JaccardLoss(**options)(logits, target))
    torch.testing.assert_close(dice(EVEN)(logits, target), smp.losses.DiceLoss(**options)(logits, target))
    tversky = smp.losses.TverskyLoss(**options, alpha=0.3, beta=0.7)(logits, target)
    torch.testing.assert_close(focal_tversky(EVEN, gamma=1)(logits, target), tversky)


def test_an_absent_class_takes_no_part_in_the_mean_and_in_smp_counts_as_perfect() -> None:
    logits = torch.zeros(1, 3, 2, 2)  # a third for each class
    background = torch.zeros(1, 2, 2, dtype=torch.int64)
    assert jaccard(EVEN)(logits, background).item() == pytest.approx(2 / 3)
    assert smp.losses.JaccardLoss("multiclass")(logits, background).item() == pytest.approx(2 / 9)
    assert dice(EVEN)(logits, background).item() == pytest.approx(1 / 2)
    assert smp.losses.DiceLoss("multiclass")(logits, background).item() == pytest.approx(1 / 6)


def test_smp_raises_the_mean_to_gamma_and_has_no_gradient_without_labels() -> None:
    logits, target = batch()
    theirs = smp.losses.TverskyLoss("multiclass", ignore_index=-1, alpha=0.3, beta=0.7, gamma=0.75)
    assert abs(focal_tversky(EVEN)(logits, target).item() - theirs(logits, target).item()) > 1e-5
    theirs(logits.requires_grad_(), torch.full_like(target, -1)).backward()
    assert torch.isnan(logits.grad).any()


def test_classes_weigh_in_the_mean_by_the_scheme() -> None:
    weighted = dice([0.8, 0.2], scheme="inverse")(TWO_PIXELS, TWO_LABELS).item()
    assert weighted == pytest.approx(0.2 * (1 - 1.6 / 2.2) + 0.8 * (1 - 1.2 / 1.8))


def test_a_class_without_weight_gives_zero_where_it_is_alone() -> None:
    loss = dice([0.5, 0.5, 0.0])(torch.zeros(1, 3, 1, 2, requires_grad=True), torch.full((1, 1, 2), 2))
    loss.backward()
    assert loss.item() == 0.0


def test_rows_count_by_their_area() -> None:
    # two rows, one pixel each: the second counts three times as much
    logits, target = TWO_PIXELS.transpose(2, 3), TWO_LABELS.transpose(1, 2)
    loss = jaccard([1, 1], torch.tensor([0.5, 1.5]), area_weighted=True)(logits, target)
    expected = 1 - (0.4 / (0.5 + 0.6) + 0.9 / (1.5 + 0.1)) / 2
    assert loss.item() == pytest.approx(expected)


def test_area_weights_of_another_grid_or_of_none_are_refused() -> None:
    with pytest.raises(InputError, match="7 latitudes, but the batch has 1"):
        jaccard([1, 1], torch.ones(7), area_weighted=True)(TWO_PIXELS, TWO_LABELS)
    with pytest.raises(InputError, match="area weights of the grid"):
        dice([1, 1], area_weighted=True)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"gamma": 0.5}, "gamma=0.5; expected a number of 1 or more"),
        ({"gamma": float("nan")}, "gamma=nan"),
        ({"false_negatives": 0.0}, "false_negatives=0.0"),
        ({"false_positives": -1.0}, "false_positives=-1.0"),
        ({"scheme": "unifrom"}, "did you mean 'uniform'"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, float], said: str) -> None:
    with pytest.raises(InputError, match=said):
        focal_tversky(EVEN, **options)


def test_a_class_never_found_has_the_whole_loss() -> None:
    labels = torch.zeros(1, 2, 2, dtype=torch.int64)
    loss = OverlapLoss(torch.ones(3), 1.0, 1.0)(certain(labels + 1), labels)
    assert loss.item() == pytest.approx(1.0)
