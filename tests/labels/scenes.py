"""Ready scenes to test definitions of rivers and cyclones on, and what they hit and miss there.

``CYCLONES``, ``RIVERS`` and ``DECOYS`` hold one kind each, ``EVERYTHING`` all of them, ``MANY_RIVERS`` eleven wide
rivers, ``QUIET`` nothing; ``scene.on(step)`` makes one.
At their default thresholds the definitions must find every cyclone and every river at 0.25, 0.5 and 1 degree, and
nothing else (BARD: of ``MANY_RIVERS``; Guan and Waliser: with the IVT of ``QUIET``, with ``land`` as the scene's, for
the percentile); ``test_scenes.py`` shows that each object meets, and each decoy fails, the published criteria.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr
from scipy import ndimage

from climseg.channels import ATMOSPHERIC_RIVER
from climseg.grid import great_circle_distance, is_periodic, spacing
from climseg.labels.regions import Mask, label_regions
from climseg.synthetic.placed import (
    Course,
    Decoy,
    HeatLow,
    PlacedBlob,
    PlacedCyclone,
    PlacedLow,
    PlacedPlume,
    PlacedRiver,
    ShearLine,
)
from climseg.synthetic.scene import make_scene

START = pd.Timestamp("2001-09-01")


@dataclass(frozen=True)
class Scene:
    """Objects by name, and whether the made continents are there."""

    cyclones: dict[str, PlacedCyclone]
    rivers: dict[str, PlacedRiver]
    decoys: dict[str, Decoy]
    land: bool = False

    def on(
        self,
        step: float,
        *,
        south_north: tuple[float, float] = (-90.0, 90.0),
        west_east: tuple[float, float] | None = None,
        hours: Sequence[float] = (0.0,),
    ) -> xr.Dataset:
        """The scene on a grid of ``step`` degrees, on the globe or between two latitudes and longitudes, included.

        Args:
            step: Degrees.
            south_north: Degrees, multiples of ``step``.
            west_east: Degrees, multiples of ``step``; the west may be negative.
            hours: Since the start.
        """
        rows = round((south_north[1] - south_north[0]) / step) + 1
        lat = south_north[0] + step * np.arange(rows)
        west, width = (0.0, round(360.0 / step)) if west_east is None else (west_east[0], 0)
        if west_east is not None:
            width = round((west_east[1] - west_east[0]) / step) + 1
        return make_scene(
            [START + pd.Timedelta(hours=h) for h in hours],
            lat,
            west + step * np.arange(width),
            cyclones=list(self.cyclones.values()),
            rivers=list(self.rivers.values()),
            decoys=list(self.decoys.values()),
            start=START,
            land=self.land,
        )


def _wide_river(sign: float, west: float) -> PlacedRiver:
    """Some 6000 km long and 660 km wide, 4 million km2."""
    points = [(sign * 21.0, west), (sign * 30.0, west + 28.0), (sign * 62.0, west + 38.0)]
    return PlacedRiver(points[0], points[1], points[2], half_width=320e3, excess=34.0, jet=26.0, east=8.0)


CYCLONES = Scene(
    cyclones={
        "northern": PlacedCyclone(Course(18.0, 130.0, bearing=300.0, speed=5.0)),
        "southern": PlacedCyclone(Course(-16.0, 70.0, bearing=240.0, speed=4.0)),
        # Starts east of the seam and passes it in nine hours.
        "seam": PlacedCyclone(Course(20.0, 1.3, bearing=280.0, speed=4.5)),
        "near the equator": PlacedCyclone(Course(8.0, 235.0, bearing=290.0, speed=4.0)),
        "middle latitudes": PlacedCyclone(Course(45.0, 170.0, bearing=45.0, speed=3.0)),
    },
    rivers={},
    decoys={},
)
RIVERS = Scene(
    cyclones={},
    rivers={
        "northern": PlacedRiver((24.0, 190.0), (30.0, 212.0), (53.0, 222.0), east=8.0),
        "southern": PlacedRiver((-24.0, 90.0), (-30.0, 112.0), (-53.0, 122.0), east=8.0),
        "seam": PlacedRiver((-24.0, 338.0), (-32.0, 358.0), (-55.0, 370.0), east=8.0),
        "polar": PlacedRiver((27.0, 305.0), (45.0, 322.0), (75.0, 334.0), excess=36.0, jet=27.0),
    },
    decoys={},
)
DECOYS = Scene(
    cyclones={},
    rivers={},
    decoys={
        "tropical moisture": PlacedBlob(Course(9.0, 285.0), radius=500e3, excess=20.0),
        "tropical moisture south of the equator": PlacedBlob(Course(-12.0, 190.0), radius=600e3, excess=22.0),
        "round moist cloud": PlacedBlob(Course(28.0, 145.0), radius=280e3, excess=22.0, wind=(8.0, 8.0)),
        "short plume": PlacedPlume((33.0, 62.0), (36.0, 69.0), (41.0, 71.0), jet=14.0),
        "short southern plume": PlacedPlume((-33.0, 242.0), (-36.0, 249.0), (-41.0, 251.0), jet=14.0),
        "cold northern low": PlacedLow(Course(50.0, 348.0, 80.0, 8.0), depth=2700.0, radius=350e3, dryness=0.6),
        "cold southern low": PlacedLow(Course(-48.0, 200.0, 100.0, 8.0), depth=2700.0, radius=350e3, dryness=0.6),
        "polar low": PlacedLow(Course(80.0, 40.0, 90.0, 5.0), depth=2500.0, radius=250e3, dryness=0.3),
        "weak tropical low": PlacedLow(Course(12.0, 160.0, 280.0, 3.0), depth=600.0, radius=250e3),
        "heat low": HeatLow(Course(24.0, 30.0)),
        "shear line": ShearLine(Course(9.0, 260.0)),
        "dry southern shear line": ShearLine(Course(-32.0, 45.0), width=60e3, wind=13.0),
    },
    land=True,
)
EVERYTHING = Scene(CYCLONES.cyclones, RIVERS.rivers, DECOYS.decoys, land=True)

# Eleven wide rivers, about as much of the globe as they cover on Earth: definitions that take the strongest share of
# each time step for rivers (BARD) mark the bands of westerlies where there are fewer.
MANY_RIVERS = Scene(
    cyclones={},
    rivers={f"northern from {west:g}": _wide_river(1.0, west) for west in np.arange(5) * 72.0}
    | {f"southern from {west:g}": _wide_river(-1.0, west) for west in 10.0 + np.arange(6) * 60.0},
    decoys={},
)
# The climate alone.
QUIET = Scene({}, {}, {})


def river_hits(mask: xr.DataArray, truth: xr.DataArray) -> list[bool]:
    """Whether each true river is found: half of its cells, or of its core (the inner half of its width), are marked.

    Args:
        mask: (lat, lon) True or 2 where a river is marked.
        truth: (lat, lon) LABELS.

    Returns:
        In the order of the rivers' western ends on the map.
    """
    marked, labels = _marked(mask), label_regions(truth.values == ATMOSPHERIC_RIVER, is_periodic(truth["lon"]), 8)
    lat, step = truth["lat"].values, (spacing(truth["lat"]), spacing(truth["lon"]))
    found = []
    for number in sorted(range(1, labels.max() + 1), key=lambda n: int(np.argmax((labels == n).any(axis=0)))):
        river = labels == number
        squeeze = np.cos(np.radians(lat[river.any(axis=1)].mean()))
        # Three times round the globe, so that the seam is no edge.
        depth = ndimage.distance_transform_edt(np.tile(river, 3), sampling=(step[0], step[1] * squeeze))
        depth = depth[:, river.shape[1] : 2 * river.shape[1]]
        core = depth >= 0.5 * depth.max()
        found.append(bool(max(marked[river].mean(), marked[core].mean()) >= 0.5))
    return found


def false_regions(mask: xr.DataArray, truth: xr.DataArray) -> list[tuple[float, float]]:
    """Where connected marked regions (8 neighbours) touch no true object: a cell of each, latitude and longitude.

    Args:
        mask: (lat, lon) True or not 0 where something is marked.
        truth: (lat, lon) LABELS.
    """
    labels = label_regions(_marked(mask), is_periodic(truth["lon"]), 8)
    real = np.unique(labels[truth.values > 0])
    alone = [n for n in range(1, labels.max() + 1) if n not in real]
    cells = [np.argwhere(labels == n)[0] for n in alone]
    return [(float(truth["lat"][row]), float(truth["lon"][column])) for row, column in cells]


def cyclone_hits(
    points: Iterable[tuple[float, float]], cyclones: Iterable[PlacedCyclone], hours: float = 0.0, reach: float = 150e3
) -> tuple[list[bool], list[tuple[float, float]]]:
    """Whether each cyclone has a found point (latitude, longitude) within ``reach`` m, and the points that hit none."""
    found, states = list(points), [cyclone.at(hours) for cyclone in cyclones]
    near = np.array([[_apart(p, (s.lat, s.lon)) <= reach for p in found] for s in states], dtype=bool)
    near = near.reshape(len(states), len(found))
    hit: list[bool] = near.any(axis=1).tolist()
    return hit, [p for p, any_near in zip(found, near.any(axis=0), strict=True) if not any_near]


def _apart(one: tuple[float, float], other: tuple[float, float]) -> float:
    return float(great_circle_distance(*one, *other))


def _marked(mask: xr.DataArray) -> Mask:
    return np.asarray(mask.values != 0)
