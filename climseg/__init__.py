"""climseg finds extreme weather in climate data, pixel by pixel."""

import importlib
from typing import Any, Final

__version__ = "0.1.0"
__all__ = ["__version__", "heuristic", "open_fields"]

# What a notebook takes from here, and where it stands; imported when it is asked for, so that commands start faster.
_MODULES: Final = {"open_fields": "climseg.sources.open", "heuristic": "climseg.cli.labelling"}


def __getattr__(name: str) -> Any:
    """``climseg.open_fields`` and ``climseg.heuristic``."""
    if name in _MODULES:
        return getattr(importlib.import_module(_MODULES[name]), name)
    raise AttributeError(f"module 'climseg' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
