"""The definitions of rivers as conf/ names them."""

import inspect
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate

from climseg.labels import rivers_bard, rivers_guan_waliser, rivers_kurth2018, rivers_tempestextremes
from climseg.labels.needs import needs_of

CONF = Path(__file__).parents[2] / "conf" / "labels" / "rivers"
DEFINITIONS = {
    "bard": (rivers_bard.atmospheric_rivers, ("IVT",)),
    "guan_waliser": (rivers_guan_waliser.atmospheric_rivers, ("UIVT", "VIVT")),
    "kurth2018": (rivers_kurth2018.atmospheric_rivers, ("TMQ",)),
    "kurth2018_coarse": (rivers_kurth2018.atmospheric_rivers, ("TMQ",)),
    "tempestextremes": (rivers_tempestextremes.atmospheric_rivers, ("IVT",)),
}


def test_every_configuration_is_looked_at_here() -> None:
    assert sorted(path.stem for path in CONF.glob("*.yaml")) == sorted(DEFINITIONS)


@pytest.mark.parametrize("name", DEFINITIONS)
def test_a_configuration_gives_every_threshold_and_the_defaults_are_the_same(name: str) -> None:
    with initialize_config_dir(str(CONF), version_base=None):
        definition = instantiate(compose(name))
    function, channels = DEFINITIONS[name]
    assert definition.func is function
    assert needs_of(definition).channels == channels
    options = list(inspect.signature(function).parameters.values())[1:]
    assert all(option.kind is inspect.Parameter.KEYWORD_ONLY for option in options)
    defaults = {option.name: option.default for option in options}
    relaxed = {"max_width_km": 1250.0} if name == "kurth2018_coarse" else {}
    assert definition.keywords == defaults | relaxed
