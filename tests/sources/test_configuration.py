import inspect
from pathlib import Path

import pytest
import yaml
from hydra.utils import get_method

from climseg.sources.open import SOURCES

CONF = Path(__file__).parents[2] / "conf" / "source"


@pytest.mark.parametrize("path", sorted(CONF.glob("*.yaml")), ids=lambda path: path.stem)
def test_a_source_s_file_lists_exactly_the_options_of_its_function_with_their_defaults(path: Path) -> None:
    options = yaml.safe_load(path.read_text())
    function = get_method(options.pop("_target_"))
    assert options.pop("_partial_") is True
    parameters = list(inspect.signature(function).parameters.values())
    assert parameters[0].name == "input"
    # The file's own name is the source.
    assert options == {parameter.name: parameter.default for parameter in parameters[1:]} | {"source": path.stem}


def test_every_source_has_its_file() -> None:
    assert sorted(SOURCES) == sorted(path.stem for path in CONF.glob("*.yaml"))
