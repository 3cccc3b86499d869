import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from climseg.errors import InputError
from climseg.models.layers import set_periodic_longitude
from climseg.models.tiramisu import Tiramisu


@pytest.mark.parametrize(
    ("in_channels", "first_filters", "tflop", "million_parameters"), [(16, 64, 1.396, 7.50), (4, 48, 1.234, 7.13)]
)
def test_cost_and_size_are_those_of_kurth_2018(
    in_channels: int, first_filters: int, tflop: float, million_parameters: float
) -> None:
    with torch.device("meta"):
        network = Tiramisu(in_channels, first_filters=first_filters).eval()
        with FlopCounterMode(display=False) as counter:
            logits = network(torch.empty(1, in_channels, 768, 1152))
    assert logits.shape == (1, 3, 768, 1152)
    assert round(counter.get_total_flops() / 1e12, 3) == tflop
    assert round(sum(p.numel() for p in network.parameters()) / 1e6, 2) == million_parameters


@pytest.mark.parametrize("batch_norm", [False, True])
@pytest.mark.parametrize("width", [96, 112])
def test_rolling_the_field_by_its_stride_rolls_the_probabilities(width: int, batch_norm: bool) -> None:
    torch.manual_seed(0)
    network = Tiramisu(4, first_filters=8, growth_rate=4, batch_norm=batch_norm).eval()
    set_periodic_longitude(network, True)
    x = torch.randn(2, 4, 32, width)
    with torch.no_grad():
        probabilities = network(x).softmax(1)
        for strides in (1, 3):
            rolled = network(x.roll(strides * network.stride, -1)).softmax(1)
            assert (rolled - probabilities.roll(strides * network.stride, -1)).abs().max() < 1e-4
        set_periodic_longitude(network, False)
        assert (network(x).softmax(1) - probabilities).abs().max() > 1e-3  # the test can fail


def test_weights_follow_he_2015() -> None:
    torch.manual_seed(0)
    network = Tiramisu(16)
    convolution = network.down_blocks[0].layers[0][0]
    assert convolution.weight.std().item() == pytest.approx((2 / (64 * 25)) ** 0.5, rel=0.02)
    assert convolution.bias.abs().max() == 0


def test_without_dropout_training_and_evaluation_agree() -> None:
    torch.manual_seed(0)
    network = Tiramisu(2, first_filters=4, growth_rate=4, dropout=0.0)
    x = torch.randn(1, 2, 16, 16)
    assert torch.equal(network.train()(x), network.eval()(x))


def test_a_batch_of_one_trains_with_batch_normalisation() -> None:
    network = Tiramisu(2, first_filters=4, growth_rate=4, batch_norm=True)
    network(torch.randn(1, 2, 32, 32)).sum().backward()
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in network.parameters())


def test_an_even_kernel_is_refused() -> None:
    with pytest.raises(InputError, match="kernel_size 4 is even"):
        Tiramisu(4, kernel_size=4)


def test_blocks_that_do_not_match_are_refused() -> None:
    with pytest.raises(InputError, match="3 down_layers need 2 up_layers, not 3"):
        Tiramisu(4, down_layers=[2, 2, 2], up_layers=[2, 2, 2])
