"""climseg finds extreme weather in climate data, pixel by pixel."""

from typing import Any

__version__ = "0.1.0"
__all__ = ["__version__", "open_fields"]


def __getattr__(name: str) -> Any:
    """``climseg.open_fields``, imported when it is asked for: the commands start faster without it."""
    if name == "open_fields":
        from climseg.sources.open import open_fields

        return open_fields
    raise AttributeError(f"module 'climseg' has no attribute {name!r}")
