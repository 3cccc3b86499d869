"""Times and grid of an input, in numbers."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import islice
from typing import Any, Final

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from climseg.canonical import SOURCE_VALUES
from climseg.grid import is_periodic, spacing
from climseg.inspection.report import GridReport, TimeReport

# How many missing or repeated times are named.
_NAMED: Final = 5


def describe_times(index: Any, channels: Sequence[str]) -> TimeReport:
    """Range, spacing, gaps and repeats of times.

    A gap is counted where most neighbours are equally far apart: 18 hours between 6-hourly steps miss two of them.

    Args:
        index: A pandas index of datetime64 or xarray's of cftime objects, in order; times may be there twice.
        channels: To which the times belong.
    """
    repeats = index[index.duplicated()]
    times = index[~index.duplicated()]
    hours = _hours_between(times)
    step = _usual(hours)
    missing = int(np.maximum(np.round(hours / step) - 1, 0).sum()) if step is not None else 0
    first_missing = islice(_missing(times, hours, step), _NAMED) if step is not None else ()
    return TimeReport(
        channels=list(channels),
        steps=times.size,
        first=iso_time(times[0]),
        last=iso_time(times[-1]),
        calendar=str(getattr(times, "calendar", "standard")),
        spacing_hours=step,
        smallest_hours=float(hours.min()) if hours.size else None,
        largest_hours=float(hours.max()) if hours.size else None,
        missing=missing,
        first_missing=[iso_time(time) for time in first_missing],
        duplicates=repeats.size,
        first_duplicates=[iso_time(time) for time in repeats[:_NAMED]],
    )


def iso_time(time: Any) -> str:
    """One time in ISO 8601."""
    return str(time.strftime("%Y-%m-%dT%H:%M:%S"))


def _hours_between(times: Any) -> NDArray[np.float64]:
    steps = np.diff(times.values)
    if steps.dtype.kind == "m":
        return np.asarray(steps / np.timedelta64(1, "s") / 3600.0, dtype=np.float64)
    return np.array([step.total_seconds() / 3600.0 for step in steps], dtype=np.float64)


def _usual(hours: NDArray[np.float64]) -> float | None:
    """The distance of more than half of all neighbours, or None."""
    if hours.size == 0:
        return None
    distances, counts = np.unique(np.round(hours, 6), return_counts=True)
    most = int(counts.argmax())
    return float(distances[most]) if 2 * counts[most] > hours.size else None


def _missing(times: Any, hours: NDArray[np.float64], step: float) -> Iterator[Any]:
    """The times that would make all neighbours equally far apart."""
    for before in np.flatnonzero(np.round(hours / step) > 1):
        for number in range(1, round(hours[before] / step)):
            yield times[before] + timedelta(hours=step * number)


def describe_grid(ds: xr.Dataset, channels: Sequence[str]) -> GridReport:
    """Extent, spacing and the conventions of the files.

    Args:
        ds: Canonical Dataset, straight from a source: its coordinates remember those of the files.
        channels: To which the grid belongs.
    """
    lat, lon = (np.asarray(ds[axis].values, dtype=np.float64) for axis in ("lat", "lon"))
    stored_lat, stored_lon = (np.asarray(ds[a].attrs.get(SOURCE_VALUES, ds[a].values)) for a in ("lat", "lon"))
    closed, step = is_periodic(lon), spacing(lat)
    return GridReport(
        channels=list(channels),
        rows=lat.size,
        columns=lon.size,
        lat_spacing=step,
        lon_spacing=spacing(lon),
        south=float(lat[0]),
        north=float(lat[-1]),
        west=float(lon[0]),
        east=float(lon[-1]),
        latitude_order="south to north" if stored_lat[0] < stored_lat[-1] else "north to south",
        longitude_convention=_convention(stored_lon),
        closed=closed,
        whole_globe=closed and bool(lat[0] - step <= -90.0 and lat[-1] + step >= 90.0),
        poles=[name for name, row in (("south", lat[0] + 90.0), ("north", lat[-1] - 90.0)) if abs(row) < 1e-3],
    )


def _convention(lon: NDArray[np.float64]) -> str:
    if lon.min() < 0.0:
        return "-180 to 180"
    return "0 to 360" if lon.max() > 180.0 else "either"
