"""climseg finds extreme weather in climate data, pixel by pixel."""

__version__ = "0.1.0"
