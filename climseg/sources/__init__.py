"""Sources: files of one kind become a canonical Dataset, lazily.

One module per kind of source, each with one function ``open_x(input, **options)``; ``conf/source/`` names them for
the command line. Files are found and opened by ``files``, their axes named by ``axes``, and several files become one
Dataset in ``combine``; what is left to a source is its table of names and its conversions.
"""

from climseg.sources.cam5 import open_cam5
from climseg.sources.era5 import open_era5

__all__ = ["open_cam5", "open_era5"]
