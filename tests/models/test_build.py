import os
import sys
import types

import pytest
import torch

from climseg.errors import InputError
from climseg.models.build import build_network
from climseg.models.tiramisu import Tiramisu

TIRAMISU = {"_target_": "climseg.models.tiramisu.Tiramisu", "first_filters": 8, "growth_rate": 4}


def test_a_network_is_built_from_plain_values() -> None:
    network = build_network(TIRAMISU | {"down_layers": [2, 2], "up_layers": [2]}, in_channels=4, classes=2)
    assert isinstance(network, Tiramisu)
    assert network(torch.zeros(1, 4, 8, 8)).shape == (1, 2, 8, 8)


def test_a_function_of_climseg_models_may_build_a_network() -> None:
    config = {"_target_": "climseg.models.smp.smp_model", "arch": "Unet", "encoder": "resnet18"}
    assert build_network(config, in_channels=4, classes=3).stride == 32


def test_weights_are_not_downloaded_where_a_state_dict_follows() -> None:
    config = {"_target_": "climseg.models.smp.smp_model", "arch": "Unet", "encoder": "resnet18"}
    config["encoder_weights"] = "weights that do not exist"
    with pytest.raises(InputError, match="no weights"):
        build_network(config, in_channels=4, classes=3)
    build_network(config, in_channels=4, classes=3, pretrained=False)


@pytest.mark.parametrize(
    "target",
    [
        "os.system",
        "subprocess.run",
        "builtins.eval",
        "shutil.rmtree",
        "pathlib.Path",
        "torch.load",
        "climseg.models.build.importlib.import_module",
        "climseg.models.smp.get_encoder",
        "climseg.models.smp.encoders",
        "climseg.grid.spacing",
    ],
)
def test_what_is_not_a_network_is_refused(target: str) -> None:
    with pytest.raises(InputError, match=r"refused|cannot be imported"):
        build_network({"_target_": target, "command": "true"}, in_channels=4, classes=3)


def test_what_is_not_a_network_is_refused_before_it_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    called = []
    monkeypatch.setattr(os, "system", lambda **arguments: called.append(arguments))
    trap = types.ModuleType("trap")
    trap.Trap = type("Trap", (), {"__init__": lambda self, **arguments: called.append(arguments)})
    monkeypatch.setitem(sys.modules, "trap", trap)
    for target in ("os.system", "trap.Trap"):
        with pytest.raises(InputError, match=f"{target} is refused"):
            build_network({"_target_": target}, in_channels=4, classes=3)
    assert called == []


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({}, "_target_ is None"),
        ({"_target_": "Tiramisu"}, "_target_ is 'Tiramisu', but the full name"),
        ({"_target_": "climseg.models.tiramisu.Tiramsu"}, "no 'Tiramsu'; did you mean 'Tiramisu'"),
        ({"_target_": "climseg.models.tiramsu.Tiramisu"}, "cannot be imported"),
        (TIRAMISU | {"growth_rte": 4}, "no argument 'growth_rte'; did you mean 'growth_rate'"),
        (TIRAMISU | {"in_channels": 4}, "in_channels comes from the data"),
        ({"_target_": "climseg.models.smp.smp_model", "arch": "Unet"}, "missing a required argument: 'encoder'"),
        ({"_target_": "torch.nn.ReLU"}, "in_channels"),
    ],
)
def test_a_mistake_in_the_configuration_is_named(config: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        build_network(config, in_channels=4, classes=3)
