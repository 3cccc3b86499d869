"""The world's coastlines, kept inside the package: a map never needs a download."""

from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray


@cache
def coastlines() -> list[NDArray[np.float64]]:
    """Coastlines of all land and islands, and the shore of the Caspian Sea, at the scale 1:50 million.

    From Natural Earth's 1:50m land (public domain, naturalearthdata.com) as packed by TopoJSON world-atlas 2.0.2
    (land-50m.json). ``coastlines.npz`` was made from its arcs: rounded to 0.01 degrees, points that then repeat left
    out, and lines cut where they only close a polygon along the antimeridian or the South Pole. It holds ``points``
    (n, 2) int16 in hundredths of a degree (longitude, latitude) and ``lengths`` (lines,), the points of every line.

    Returns:
        Lines (n, 2) of longitude and latitude in degrees. A line starts within -180 and 180 and runs on beyond them
        where it crosses the antimeridian, so that neighbouring points are always near.
    """
    with (files("climseg") / "coastlines.npz").open("rb") as file, np.load(file) as data:
        points = data["points"] / 100.0
        ends = np.cumsum(data["lengths"])
    lines = np.split(points, ends[:-1])
    return [np.column_stack([np.unwrap(line[:, 0], period=360.0), line[:, 1]]) for line in lines]
