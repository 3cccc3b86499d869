"""The ready scenes against the published criteria, computed here in the plainest way."""

from collections.abc import Callable

import numpy as np
import pytest
import xarray as xr
from scipy import ndimage

from climseg.channels import ATMOSPHERIC_RIVER, LABELS, TROPICAL_CYCLONE
from climseg.grid import EARTH_RADIUS, destination, great_circle_distance, is_periodic, relative_vorticity
from climseg.labels.regions import label_regions, measure_regions
from climseg.labels.windows import smallest_rise
from tests.labels import scenes

STEPS = (0.25, 0.5, 1.0)


def transport_ridges(ds: xr.Dataset, scene: scenes.Scene) -> np.ndarray:
    """TempestExtremes: Laplacian of IVT over 8 points at 10 degrees <= -20,000 poleward of 15, 400,000 km2 or more."""
    lat, lon, ivt = ds["lat"].values, ds["lon"].values, ds["IVT"].values.astype(np.float64)
    around = np.zeros_like(ivt)
    for bearing in np.arange(0.0, 360.0, 45.0):
        to_lat, to_lon = destination(lat[:, None], lon[None, :], bearing, 10.0)
        rows, columns = np.interp(to_lat, lat, np.arange(lat.size)), (to_lon - lon[0]) / (lon[1] - lon[0])
        points = np.broadcast_arrays(rows, columns)
        around += ndimage.map_coordinates(ivt, points, order=1, mode="grid-wrap") - ivt
    mask = (4 / 8 * around / np.radians(10.0) ** 2 <= -20_000) & (np.abs(lat) >= 15)[:, None]
    for cyclone in scene.cyclones.values():
        here = cyclone.place(0.0)
        mask &= great_circle_distance(*here, lat[:, None], lon) > np.radians(8.0) * EARTH_RADIUS
    labels = label_regions(mask, True, 8)
    return np.isin(labels, 1 + np.flatnonzero(measure_regions(labels, lat, lon).area >= 4e11))


def moist_filaments(ds: xr.Dataset, scene: scenes.Scene) -> np.ndarray:
    """Kurth et al. 2018: damped TMQ > 24, box diagonal > 1500 km, area over north-south extent < 1000 km."""
    lat, lon = ds["lat"].values, ds["lon"].values
    damped = ds["TMQ"].values * (1 - np.exp(-(lat**2) / (2 * 19.0**2)))[:, None]
    labels = label_regions(damped > 24, True, 4)
    measures = measure_regions(labels, lat, lon)
    kept = (measures.diagonal > 1.5e6) & (measures.area / measures.north_south_extent < 1e6)
    return np.isin(labels, 1 + np.flatnonzero(kept))


def minima(ds: xr.Dataset) -> list[tuple[int, int]]:
    """Cells whose pressure is below that of all 8 neighbours."""
    psl = ds["PSL"].values
    ring = np.ones((3, 3), dtype=bool)
    ring[1, 1] = False
    lowest = ndimage.minimum_filter(psl, footprint=ring, mode="wrap")
    return [(int(row), int(column)) for row, column in np.argwhere(psl < lowest)]


def criteria(ds: xr.Dataset, row: int, column: int) -> dict[str, float]:
    """Measures at a pressure minimum, each over its published threshold: 1 or more passes."""
    lat, lon = ds["lat"].values, ds["lon"].values
    degrees = great_circle_distance(lat[row], lon[column], lat[:, None], lon) / EARTH_RADIUS * 180 / np.pi
    zeta = relative_vorticity(ds["U850"].values, ds["V850"].values, lat, lon) * np.sign(lat[row])
    wind = np.hypot(ds["UBOT"].values, ds["VBOT"].values)

    def rise(field: np.ndarray, radius: float, top_within: float = 0.0) -> float:
        near = np.where(degrees <= top_within + 1e-6, field, np.inf)
        return smallest_rise(field, lat, lon, *np.unravel_index(near.argmin(), near.shape), radius)

    field = {
        name: ds[name].values.astype(np.float64) for name in ("PSL", "T500", "T200", "Z200", "Z1000", "Z300", "Z500")
    }
    return {
        "vorticity": zeta[degrees <= 2.0].max() / 1.6e-4,
        "pressure rise": rise(field["PSL"], 5.0) / 400.0,
        "core": rise(-(field["T500"] + field["T200"]) / 2, 5.0, 2.0) / 0.8,
        "thickness": rise(field["Z1000"] - field["Z200"], 4.0, 2.0) / 50.0,
        "closed contour": rise(field["PSL"], 5.5) / 200.0,
        "upper core": rise(field["Z500"] - field["Z300"], 6.5, 1.0) / 6.0,
        "wind": wind[degrees <= 7.74446 / 2].max() / 17.0,
    }


# What is asked of a point; only TECA looks at vorticity and at these two layers, only TempestExtremes at that one.
TECA = ("vorticity", "pressure rise", "core", "thickness", "wind")
TEMPEST = ("closed contour", "upper core", "wind")


@pytest.fixture(scope="module", params=STEPS, ids=lambda step: f"{step} degrees")
def everything(request: pytest.FixtureRequest) -> xr.Dataset:
    return scenes.EVERYTHING.on(request.param).isel(time=0)


@pytest.mark.parametrize("definition", [transport_ridges, moist_filaments])
def test_every_river_and_nothing_else_is_one_by_the_published_criteria(
    everything: xr.Dataset, definition: Callable[[xr.Dataset, scenes.Scene], np.ndarray]
) -> None:
    truth = everything[LABELS]
    mask = truth.copy(data=definition(everything, scenes.EVERYTHING))
    assert scenes.river_hits(mask, truth) == [True] * 4
    assert scenes.false_regions(mask, truth) == []


@pytest.mark.parametrize("definition", [TECA, TEMPEST], ids=["TECA", "TempestExtremes"])
def test_every_cyclone_and_nothing_else_is_one_by_the_published_criteria(
    everything: xr.Dataset, definition: tuple[str, ...]
) -> None:
    lat, lon = everything["lat"].values, everything["lon"].values
    storms = []
    for row, column in minima(everything):
        measured = criteria(everything, row, column)
        if all(measured[name] >= 1.0 for name in definition):
            storms.append((float(lat[row]), float(lon[column])))
            # Clear of the thresholds: another way to interpolate or to round finds them too.
            assert all(measured[name] >= 1.3 for name in definition)
    hits, false_alarms = scenes.cyclone_hits(storms, scenes.EVERYTHING.cyclones.values())
    assert hits == [True] * 5
    assert false_alarms == []


def test_cyclones_stay_cyclones_for_three_days_and_one_crosses_the_seam() -> None:
    hours = (24.0, 48.0, 72.0)
    ds = scenes.CYCLONES.on(0.5, hours=hours)
    for index, now in enumerate(hours):
        step, cyclones = ds.isel(time=index), scenes.CYCLONES.cyclones.values()
        storms = [
            (float(step["lat"][row]), float(step["lon"][column]))
            for row, column in minima(step)
            if min(criteria(step, row, column).values()) >= 1.0
        ]
        assert scenes.cyclone_hits(storms, cyclones, now) == ([True] * 5, [])
    seam = scenes.CYCLONES.cyclones["seam"]
    assert seam.place(0.0)[1] < 5.0
    assert seam.place(24.0)[1] > 355.0


@pytest.mark.parametrize("definition", [transport_ridges, moist_filaments])
def test_many_wide_rivers_are_rivers_too(definition: Callable[[xr.Dataset, scenes.Scene], np.ndarray]) -> None:
    ds = scenes.MANY_RIVERS.on(1.0).isel(time=0)
    mask = ds[LABELS].copy(data=definition(ds, scenes.MANY_RIVERS))
    assert scenes.river_hits(mask, ds[LABELS]) == [True] * 11
    assert scenes.false_regions(mask, ds[LABELS]) == []


def test_decoys_look_like_storms_in_some_ways(everything: xr.Dataset) -> None:
    measured = [criteria(everything, row, column) for row, column in minima(everything)]
    for name in ("pressure rise", "closed contour"):
        cold = [m for m in measured if m[name] >= 1.0 and m["upper core"] < 0.0]
        assert len(cold) >= 5
    assert sum(m["vorticity"] >= 1.0 and m["wind"] >= 1.0 and m["core"] < 0.0 for m in measured) >= 3


def test_a_river_is_hit_by_half_of_its_cells_or_of_its_core_only() -> None:
    truth = xr.DataArray(
        np.zeros((21, 36), np.int8), coords={"lat": np.linspace(20, 40, 21), "lon": np.arange(36) * 10}
    )
    truth[5:14, [34, 35, 0, 1]] = ATMOSPHERIC_RIVER  # over the seam
    truth[5:14, 10:15] = ATMOSPHERIC_RIVER
    mask = truth == ATMOSPHERIC_RIVER
    assert scenes.river_hits(mask, truth) == [True, True]
    few = mask.copy()
    few[5:14, 10:15] = False
    few[8, 10:15] = True
    few[9:14, [34, 35]] = False
    assert scenes.river_hits(few, truth) == [True, False]


def test_a_region_is_false_when_it_touches_no_object_even_over_the_seam() -> None:
    truth = xr.DataArray(
        np.zeros((21, 36), np.int8), coords={"lat": np.linspace(20, 40, 21), "lon": np.arange(36) * 10}
    )
    truth[4, 35] = TROPICAL_CYCLONE
    mask = truth.copy(data=np.zeros(truth.shape, bool))
    mask[4:6, 0] = True
    mask[3, 35] = True
    mask[10, 20:23] = True
    mask[12, 20] = True
    mask[4, 35] = True
    assert scenes.false_regions(mask, truth) == [(30.0, 200.0), (32.0, 200.0)]


def test_a_cyclone_is_hit_by_a_point_within_reach_over_the_seam() -> None:
    seam = scenes.CYCLONES.cyclones["seam"]
    assert scenes.cyclone_hits([(20.0, 0.3), (50.0, 20.0)], [seam]) == ([True], [(50.0, 20.0)])
    assert scenes.cyclone_hits([], [seam]) == ([False], [])


def test_a_scene_may_be_a_region_that_begins_west_of_the_seam() -> None:
    part = scenes.CYCLONES.on(1.0, south_north=(10.0, 30.0), west_east=(-20.0, 20.0))
    assert (part.sizes["lat"], part.sizes["lon"]) == (21, 41)
    assert not is_periodic(part["lon"])
    assert part["lon"][0] == 340.0
    assert (part[LABELS].isel(time=0).sel(lon=slice(355, 366)) == TROPICAL_CYCLONE).any()
