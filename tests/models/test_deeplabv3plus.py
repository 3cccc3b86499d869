import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from climseg.errors import InputError
from climseg.models.deeplabv3plus import DeepLabV3Plus
from climseg.models.layers import set_periodic_longitude


def small(in_channels: int = 4, encoder: str = "resnet18", output_stride: int = 8) -> DeepLabV3Plus:
    torch.manual_seed(0)
    return DeepLabV3Plus(
        in_channels,
        encoder=encoder,
        output_stride=output_stride,
        aspp_channels=16,
        low_level_channels=8,
        decoder_channels=16,
        input_skip_channels=(8, 8),
    )


def test_cost_and_size_are_those_of_kurth_2018() -> None:
    with torch.device("meta"):
        network = DeepLabV3Plus(16).eval()
        with FlopCounterMode(display=False) as counter:
            logits = network(torch.empty(1, 16, 768, 1152))
    assert logits.shape == (1, 3, 768, 1152)
    assert counter.get_total_flops() / 1e12 == pytest.approx(4.35, rel=0.01)
    assert sum(p.numel() for p in network.parameters()) / 1e6 == pytest.approx(43.7, abs=0.05)


@pytest.mark.parametrize(("output_stride", "width"), [(8, 64), (8, 72), (16, 96)])
def test_rolling_the_field_by_its_stride_rolls_the_probabilities(width: int, output_stride: int) -> None:
    network = small(output_stride=output_stride).eval()
    set_periodic_longitude(network, True)
    x = torch.randn(2, 4, 32, width)
    with torch.no_grad():
        probabilities = network(x).softmax(1)
        for strides in (1, 2):
            rolled = network(x.roll(strides * network.stride, -1)).softmax(1)
            assert (rolled - probabilities.roll(strides * network.stride, -1)).abs().max() < 1e-4
        set_periodic_longitude(network, False)
        assert (network(x).softmax(1) - probabilities).abs().max() > 1e-3  # the test can fail


def test_a_batch_of_one_trains() -> None:
    network = small().train()
    network(torch.randn(1, 4, 32, 48)).sum().backward()
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in network.parameters())


def test_at_output_stride_8_the_last_two_stages_are_dilated_by_2_and_4() -> None:
    encoder = DeepLabV3Plus(4, encoder="resnet50").encoder
    assert {c.dilation for n, c in encoder.layer3.named_modules() if n.endswith("conv2")} == {(2, 2)}
    assert {c.dilation for n, c in encoder.layer4.named_modules() if n.endswith("conv2")} == {(4, 4)}
    assert [f.shape[-1] for f in encoder(torch.zeros(1, 4, 32, 32))] == [32, 16, 8, 4, 4, 4]


def test_other_encoders_fit() -> None:
    network = small(encoder="efficientnet-b0", output_stride=16)
    assert network(torch.randn(2, 4, 32, 48)).shape == (2, 3, 32, 48)


def test_an_unknown_encoder_is_refused_with_the_near_match() -> None:
    with pytest.raises(InputError, match="no encoder 'resnet55'; did you mean 'resnet"):
        small(encoder="resnet55")


def test_an_encoder_that_cannot_be_dilated_is_refused() -> None:
    with pytest.raises(InputError, match="vgg11 cannot be built with output stride 8"):
        small(encoder="vgg11")


def test_an_unknown_output_stride_is_refused() -> None:
    with pytest.raises(InputError, match="output_stride 4 is not one of 8, 16 and 32"):
        small(output_stride=4)
