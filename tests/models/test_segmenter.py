import copy
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from climseg.errors import InputError
from climseg.models.deeplabv3plus import DeepLabV3Plus
from climseg.models.segmenter import Segmenter
from climseg.models.smp import smp_model
from climseg.models.tiramisu import Tiramisu

MEAN, STD = [250.0, 101325.0], [10.0, 1500.0]


class Recorder(nn.Module):
    """Keeps what it was given, and gives it back."""

    def __init__(self, stride: int) -> None:
        super().__init__()
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        self.seen = x
        return x


def tiramisu() -> nn.Module:
    torch.manual_seed(0)
    return Tiramisu(2, first_filters=8, growth_rate=4, dropout=0.0)


def deeplabv3plus() -> nn.Module:
    torch.manual_seed(0)
    return DeepLabV3Plus(2, encoder="resnet18", aspp_channels=16, decoder_channels=16, input_skip_channels=(8, 8))


def unet() -> nn.Module:
    torch.manual_seed(0)
    return smp_model("Unet", "resnet18", in_channels=2, classes=3)


def fields(*size: int) -> Tensor:
    """Random fields in canonical units."""
    noise = torch.randn(2, 2, *size, generator=torch.Generator().manual_seed(0))
    return noise * torch.tensor(STD)[:, None, None] + torch.tensor(MEAN)[:, None, None]


@pytest.mark.parametrize("size", [(73, 144), (5, 7), (1, 1), (37, 90), (16, 32)])
@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize("network", [tiramisu, deeplabv3plus, unet])
def test_any_size_comes_back(network: Callable[[], nn.Module], periodic: bool, size: tuple[int, int]) -> None:
    segmenter = Segmenter(network(), MEAN, STD, periodic).eval()
    with torch.no_grad():
        logits = segmenter(fields(*size))
    assert logits.shape == (2, 3, *size)
    assert logits.dtype == torch.float32
    assert torch.isfinite(logits).all()


def test_a_global_quarter_degree_field_comes_back() -> None:
    segmenter = Segmenter(Tiramisu(2), MEAN, STD, True).to("meta").eval()
    assert segmenter(torch.empty(1, 2, 721, 1440, device="meta")).shape == (1, 3, 721, 1440)


def test_the_network_sees_normalised_fields() -> None:
    segmenter = Segmenter(Recorder(1), MEAN, STD, False)
    x = torch.tensor([260.0, 99825.0])[None, :, None, None].expand(1, 2, 3, 4)
    assert torch.equal(segmenter(x)[0, :, 0, 0], torch.tensor([1.0, -1.0]))


@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize("size", [(73, 144), (7, 9), (3, 20), (1, 1)])
def test_padding_and_cropping_is_the_identity(size: tuple[int, int], periodic: bool) -> None:
    segmenter = Segmenter(Recorder(8), [0.0, 0.0], [1.0, 1.0], periodic)
    x = fields(*size)
    assert torch.equal(segmenter(x), x)
    assert all(n % 8 == 0 for n in segmenter.network.seen.shape[-2:])


def test_a_region_is_continued_by_its_edges() -> None:
    segmenter = Segmenter(Recorder(4), [0.0], [1.0], periodic=False)
    segmenter(torch.tensor([[1.0, 2.0, 3.0, 4.0, 5.0], [6.0, 7.0, 8.0, 9.0, 10.0]])[None, None])
    assert segmenter.network.seen[0, 0].tolist() == [
        [1.0, 1.0, 1.0, 2.0, 3.0, 4.0, 5.0, 5.0],
        [1.0, 1.0, 1.0, 2.0, 3.0, 4.0, 5.0, 5.0],
        [6.0, 6.0, 6.0, 7.0, 8.0, 9.0, 10.0, 10.0],
        [6.0, 6.0, 6.0, 7.0, 8.0, 9.0, 10.0, 10.0],
    ]


def test_a_globe_is_continued_around_itself_by_half_a_stride_or_more() -> None:
    segmenter = Segmenter(Recorder(4), [0.0], [1.0], periodic=True)
    segmenter(torch.arange(6.0).expand(1, 1, 4, 6))  # 6 longitudes: 2 more would do, 6 keep the seam away
    assert segmenter.network.seen[0, 0, 0].tolist() == [3, 4, 5, 0, 1, 2, 3, 4, 5, 0, 1, 2]


def test_a_globe_that_the_stride_divides_is_not_padded() -> None:
    segmenter = Segmenter(Recorder(4), [0.0], [1.0], periodic=True)
    segmenter(torch.arange(8.0).expand(1, 1, 4, 8))
    assert segmenter.network.seen[0, 0, 0].tolist() == [0, 1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize("network", [tiramisu, deeplabv3plus])
def test_rolling_a_global_field_rolls_the_probabilities(network: Callable[[], nn.Module]) -> None:
    segmenter = Segmenter(network(), MEAN, STD, periodic=True).eval()
    x = fields(73, 144)
    with torch.no_grad():
        difference = segmenter(x.roll(48, -1)).softmax(1) - segmenter(x).softmax(1).roll(48, -1)
    assert difference.abs().max() < 1e-4


def test_a_network_of_the_globe_can_predict_on_a_region() -> None:
    segmenter = Segmenter(tiramisu(), MEAN, STD, periodic=True).eval()
    regional = Segmenter(tiramisu(), MEAN, STD, periodic=False).eval()
    x = fields(32, 48)
    with torch.no_grad():
        assert not torch.equal(segmenter(x), regional(x))
        segmenter.periodic = False
        assert torch.equal(segmenter(x), regional(x))


@pytest.mark.parametrize("network", [tiramisu, deeplabv3plus, unet])
def test_the_state_dict_carries_statistics_and_weights(network: Callable[[], nn.Module], tmp_path: Path) -> None:
    trained = Segmenter(network(), MEAN, STD, periodic=True).eval()
    torch.save(trained.state_dict(), tmp_path / "weights.pt")
    torch.manual_seed(1)
    fresh = Segmenter(copy.deepcopy(trained.network), [0.0, 0.0], [1.0, 1.0], periodic=True).eval()
    for parameter in fresh.parameters():
        nn.init.normal_(parameter)
    state = torch.load(tmp_path / "weights.pt", weights_only=True)
    assert {name.split(".")[0] for name in state} == {"mean", "std", "network"}
    fresh.load_state_dict(state)
    x = fields(20, 40)
    assert torch.equal(fresh(x), trained(x))


def test_logits_are_float32_under_autocast_and_close() -> None:
    segmenter = Segmenter(tiramisu(), MEAN, STD, periodic=True).eval()
    x = fields(32, 48)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        mixed = segmenter(x)
    assert mixed.dtype == torch.float32
    with torch.no_grad():
        assert (mixed.softmax(1) - segmenter(x).softmax(1)).abs().max() < 0.1


def test_an_exported_segmenter_gives_the_same_logits() -> None:
    segmenter = Segmenter(deeplabv3plus(), MEAN, STD, periodic=True).eval()
    x = fields(37, 90)
    exported = torch.export.export(segmenter, (x,)).module()
    with torch.no_grad():
        torch.testing.assert_close(exported(x), segmenter(x), rtol=1e-4, atol=1e-4)


def test_fields_in_half_precision_are_refused() -> None:
    segmenter = Segmenter(tiramisu(), MEAN, STD, periodic=True)
    with pytest.raises(InputError, match="bf16-mixed"):
        segmenter(fields(16, 16).bfloat16())


@pytest.mark.parametrize(
    ("mean", "std", "message"),
    [
        ([0.0, 0.0], [1.0, 0.0], "channel 1 has mean 0.0 and standard deviation 0.0"),
        ([0.0, float("nan")], [1.0, 1.0], "channel 1 has mean nan"),
        ([0.0, 0.0], [1.0], r"not shapes \[2\] and \[1\]"),
    ],
)
def test_statistics_that_cannot_normalise_are_refused(mean: list[float], std: list[float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Segmenter(Recorder(1), mean, std, periodic=False)


def test_a_network_without_a_stride_is_refused() -> None:
    with pytest.raises(InputError, match="Identity has no attribute `stride`"):
        Segmenter(nn.Identity(), MEAN, STD, periodic=False)
