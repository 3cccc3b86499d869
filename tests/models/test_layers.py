import copy
import io

import pytest
import segmentation_models_pytorch as smp
import timm.layers
import torch
from torch import Tensor, nn

from climseg.models.layers import pad_longitude, set_periodic_longitude

LAYERS = {
    "3x3": nn.Conv2d(2, 3, 3, padding=1),
    "5x7": nn.Conv2d(2, 3, (5, 7), padding=(2, 3)),
    "strided 7x7": nn.Conv2d(2, 3, 7, stride=2, padding=3),
    "dilated further than the field is wide": nn.Conv2d(2, 3, 3, padding=20, dilation=20),
    "depthwise": nn.Conv2d(2, 4, 3, padding=1, groups=2),
    "padding by the word same": nn.Conv2d(2, 3, (3, 4), padding="same", dilation=2),
    "replicate padding": nn.Conv2d(2, 3, 3, padding=1, padding_mode="replicate"),
    "same padding of timm": timm.layers.Conv2dSame(2, 3, 3, stride=2),
    "standardised weights of timm": timm.layers.StdConv2d(2, 3, 3, padding=1),
    "transposed": nn.ConvTranspose2d(2, 3, 3, stride=2, padding=1, output_padding=1),
    "transposed 4x4": nn.ConvTranspose2d(2, 3, 4, stride=2, padding=1),
    "transposed 5x5": nn.ConvTranspose2d(2, 3, 5, stride=2, padding=2, output_padding=1),
    "max pool": nn.MaxPool2d(3, stride=2, padding=1),
    "max pool, rounded up": nn.MaxPool2d(3, stride=2, ceil_mode=True),
    "max pool of timm": timm.layers.pool2d_same.MaxPool2dSame(3, stride=2),
    "average pool": nn.AvgPool2d(3, stride=1, padding=1, count_include_pad=False),
    "average pool that counts padding": nn.AvgPool2d(5, stride=2, padding=2),
    "average pool of timm": timm.layers.AvgPool2dSame(3, stride=2),
}


def fields(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
@pytest.mark.parametrize("width", [12, 18])
def test_a_periodic_layer_sees_the_field_repeated_around_the_globe(layer: nn.Module, width: int) -> None:
    layer = copy.deepcopy(layer)
    x = fields(2, 2, 8, width)
    laps = 5
    usual = layer(x)
    middle = layer(x.repeat(1, 1, 1, laps)).tensor_split(laps, dim=-1)[laps // 2]  # far from both edges

    set_periodic_longitude(layer, True)

    assert layer(x).shape == usual.shape
    torch.testing.assert_close(layer(x), middle)


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_switched_off_again_a_layer_is_what_it_was(layer: nn.Module) -> None:
    layer = copy.deepcopy(layer)
    x = fields(2, 2, 8, 12)
    usual = layer(x)
    set_periodic_longitude(layer, True)
    assert not torch.equal(layer(x), usual)
    set_periodic_longitude(layer, False)
    assert torch.equal(layer(x), usual)
    set_periodic_longitude(layer, True)
    assert not torch.equal(layer(x), usual)


def test_latitude_is_padded_with_zeros_and_longitude_with_the_other_side() -> None:
    box_sum = nn.Conv2d(1, 1, 3, padding=1, bias=False)
    nn.init.ones_(box_sum.weight)
    set_periodic_longitude(box_sum, True)
    x = torch.tensor([[1.0, 2.0, 4.0, 8.0]])[None, None]  # one row: nothing to the north or south
    assert box_sum(x).squeeze().tolist() == [11.0, 7.0, 14.0, 13.0]


def test_max_pooling_does_not_take_padding_for_a_value() -> None:
    pool = nn.MaxPool2d(3, stride=2, padding=1)
    set_periodic_longitude(pool, True)
    assert pool(torch.tensor([[-8.0, -4.0, -2.0, -1.0]])[None, None]).squeeze().tolist() == [-1.0, -1.0]


@pytest.mark.parametrize("cells", [0, 1, 3, 4, 5, 7, 8, 20])
@pytest.mark.parametrize("width", [1, 4, 7])
def test_padding_counts_columns_modulo_the_width(width: int, cells: int) -> None:
    x = torch.arange(width).expand(2, 1, 3, width)
    expected = torch.arange(-cells, width + cells) % width
    assert torch.equal(pad_longitude(x, cells), expected.expand(2, 1, 3, -1))


def test_padding_keeps_the_memory_format_forward_and_backward() -> None:
    x = fields(2, 3, 4, 6).to(memory_format=torch.channels_last).requires_grad_()
    padded = pad_longitude(x, 2)
    (gradient,) = torch.autograd.grad(padded.sum(), x)
    assert padded.is_contiguous(memory_format=torch.channels_last)
    assert gradient[0, 0, 0].tolist() == [2, 2, 1, 1, 2, 2]


def test_1x1_convolutions_and_pooling_of_whole_cells_are_left_alone() -> None:
    network = nn.Sequential(nn.Conv2d(2, 2, 1), nn.MaxPool2d(2), nn.ConvTranspose2d(2, 2, 2, stride=2))
    x = fields(1, 2, 8, 12)
    usual = network(x)
    set_periodic_longitude(network, True)
    assert torch.equal(network(x), usual)


@pytest.fixture
def network() -> nn.Module:
    """Every kind of layer, twice as coarse inside."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(2, 4, 5, padding=2),
        nn.MaxPool2d(3, stride=2, padding=1),
        timm.layers.Conv2dSame(4, 4, 3),
        nn.ConvTranspose2d(4, 3, 3, stride=2, padding=1, output_padding=1),
    )


def test_the_state_dict_keeps_its_names_and_values(network: nn.Module) -> None:
    before = {name: value.clone() for name, value in network.state_dict().items()}
    set_periodic_longitude(network, True)
    after = network.state_dict()
    assert list(after) == list(before)
    assert all(torch.equal(after[name], before[name]) for name in before)


def test_copies_and_pickles_stay_periodic_and_independent(network: nn.Module) -> None:
    x = fields(1, 2, 8, 12)
    usual = network(x)
    set_periodic_longitude(network, True)
    periodic = network(x)
    buffer = io.BytesIO()
    torch.save(network, buffer)
    buffer.seek(0)
    for twin in (copy.deepcopy(network), torch.load(buffer, weights_only=False)):
        assert torch.equal(twin(x), periodic)
        set_periodic_longitude(twin, False)
        assert torch.equal(twin(x), usual)
    assert torch.equal(network(x), periodic)


def test_an_exported_network_stays_periodic(network: nn.Module) -> None:
    x = fields(1, 2, 8, 12)
    set_periodic_longitude(network, True)
    exported = torch.export.export(network.eval(), (x,)).module()
    torch.testing.assert_close(exported(x), network(x))


def test_channels_last_gives_the_same_values(network: nn.Module) -> None:
    x = fields(2, 2, 8, 12)
    set_periodic_longitude(network, True)
    expected = network(x)
    network.to(memory_format=torch.channels_last)
    torch.testing.assert_close(network(x.to(memory_format=torch.channels_last)), expected)


@pytest.mark.parametrize("encoder", ["resnet18", "efficientnet-b0", "tu-tf_mobilenetv3_small_100"])
def test_a_unet_of_segmentation_models_pytorch_becomes_exactly_periodic(encoder: str) -> None:
    torch.manual_seed(0)
    unet = smp.Unet(encoder, encoder_weights=None, in_channels=4, classes=3).eval()
    x = fields(1, 4, 32, 96)
    with torch.no_grad():
        set_periodic_longitude(unet, True)
        torch.testing.assert_close(unet(x.roll(32, -1)), unet(x).roll(32, -1), rtol=0, atol=1e-5)
        set_periodic_longitude(unet, False)
        assert (unet(x.roll(32, -1)) - unet(x).roll(32, -1)).abs().max() > 1e-3
