"""The coastlines in the package against places whose coordinates are known."""

from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from climseg.coastlines import coastlines


@pytest.mark.parametrize(
    ("place", "lon", "lat"),
    [
        ("Cape Agulhas", 20.00, -34.83),
        ("Cape Horn", -67.29, -55.98),
        ("North Cape", 25.78, 71.17),
        ("Cape York", 142.53, -10.69),
        ("Cape Comorin", 77.55, 8.08),
        ("Cape Dezhnev", -169.65, 66.08),
        ("Ka Lae, Hawaii", -155.68, 18.91),
        ("Le Morne, Mauritius", 57.32, -20.46),
    ],
)
def test_a_coast_passes_within_a_quarter_of_a_degree_of(place: str, lon: float, lat: float) -> None:
    points = np.concatenate(coastlines())
    away = np.hypot((points[:, 0] - lon + 180) % 360 - 180, points[:, 1] - lat)
    assert away.min() < 0.25, place


def test_no_line_jumps_or_closes_a_polygon_along_the_antimeridian_or_the_south_pole() -> None:
    for line in coastlines():
        assert line.shape[0] >= 2
        assert line.shape[1] == 2
        assert -180 <= line[0, 0] <= 180
        assert np.abs(np.diff(line, axis=0)).max() < 6.0
        assert line[:, 1].min() > -86.0  # the southernmost sea, under the Ross ice shelf
        at_antimeridian = np.abs((line[:, 0] % 360) - 180) < 1e-6
        assert not np.any(at_antimeridian[1:] & at_antimeridian[:-1])


def test_the_open_ocean_and_the_inland_of_continents_have_no_coast() -> None:
    points = np.concatenate(coastlines())
    for lon, lat in [(-120.0, -40.0), (-40.0, 30.0), (100.0, 50.0), (134.0, -25.0)]:
        away = np.hypot((points[:, 0] - lon + 180) % 360 - 180, points[:, 1] - lat)
        assert away.min() > 5.0, (lon, lat)


def test_the_file_is_small() -> None:
    assert Path(str(files("climseg") / "coastlines.npz")).stat().st_size < 300_000
