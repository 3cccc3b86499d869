import pytest
import torch
from torch import nn

from climseg.errors import InputError
from climseg.models.layers import set_periodic_longitude
from climseg.models.smp import smp_model


def test_a_unet_gives_logits_of_its_input_size() -> None:
    network = smp_model("Unet", "resnet18", in_channels=16, classes=3)
    assert network(torch.randn(2, 16, 32, 64)).shape == (2, 3, 32, 64)
    assert network.stride == 32


def test_the_stride_follows_the_depth_of_the_encoder() -> None:
    options = {"encoder_depth": 3, "decoder_channels": (32, 16, 8)}
    network = smp_model("unet", "resnet18", in_channels=4, classes=3, **options)
    assert network.stride == 8
    assert network(torch.randn(1, 4, 8, 24)).shape == (1, 3, 8, 24)


@pytest.mark.parametrize("arch", ["DeepLabV3", "DeepLabV3Plus", "PAN", "UPerNet"])
def test_a_batch_of_one_trains(arch: str) -> None:
    network = smp_model(arch, "resnet18", in_channels=4, classes=3).train()
    network(torch.randn(1, 4, 128, 256)).sum().backward()


def test_the_default_unet_is_exactly_periodic() -> None:
    torch.manual_seed(0)
    network = smp_model("Unet", "resnet18", in_channels=4, classes=3).eval()
    set_periodic_longitude(network, True)
    x = torch.randn(1, 4, 32, 96)
    with torch.no_grad():
        difference = network(x.roll(32, -1)).softmax(1) - network(x).softmax(1).roll(32, -1)
    assert difference.abs().max() < 1e-4


@pytest.mark.parametrize(
    ("arch", "encoder", "stride"), [("FPN", "resnet18", 32), ("PAN", "resnet18", 128), ("DPT", "tu-test_vit", 32)]
)
def test_a_decoder_that_goes_coarser_than_its_encoder_gets_the_stride_it_needs(
    arch: str, encoder: str, stride: int
) -> None:
    options = {"dynamic_img_size": True} if arch == "DPT" else {}
    network = smp_model(arch, encoder, in_channels=4, classes=3, **options).eval()
    assert network.stride == stride
    assert network(torch.randn(1, 4, stride, 3 * stride)).shape == (1, 3, stride, 3 * stride)


def test_timm_encoders_take_their_own_options() -> None:
    network = smp_model("Unet", "tu-resnet10t", in_channels=4, classes=3, drop_path_rate=0.1)
    assert isinstance(network, nn.Module)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"arch": "Unnet"}, "no network 'Unnet'; did you mean 'Unet'"),
        ({"arch": "x"}, "no network 'x'; known are Unet, UnetPlusPlus"),
        ({"encoder": "resnet81"}, "no encoder 'resnet81'; did you mean 'resnet18'"),
        ({"encoder": "tu-resnett18"}, "timm has no encoder 'resnett18'; did you mean 'resnet18'"),
        ({"encoder_weights": "imagnet"}, "resnet18 has no weights 'imagnet', only imagenet"),
        ({"decoder_chanels": [8]}, "no option 'decoder_chanels' to set; did you mean 'decoder_channels'"),
        ({"activation": "softmax"}, "no option 'activation' to set"),
        ({"encoder_depth": 4}, "refuses its options: .*depth"),
        ({"encoder": "tu-resnet10t", "drop_path_rat": 0.1}, "refuses its options: .*drop_path_rat"),
    ],
)
def test_a_wrong_word_is_refused_and_the_right_one_offered(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        smp_model(**{"arch": "Unet", "encoder": "resnet18", "in_channels": 4, "classes": 3} | arguments)
