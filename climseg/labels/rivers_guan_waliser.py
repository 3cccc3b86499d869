"""The rivers of Guan and Waliser: transport that is strong for its place and season, in regions of the right shape."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

import netCDF4
import numpy as np
from numpy.typing import NDArray
from xarray.backends.netCDF4_ import NETCDF4_PYTHON_LOCK

from climseg.errors import InputError, near_matches
from climseg.grid import EARTH_RADIUS, Floats, is_periodic, longitude_difference, row_cell_area, spacing
from climseg.labels.axis import Axis, measure_axis
from climseg.labels.needs import Needs, needs
from climseg.labels.regions import Labels, label_regions, marked, measure_regions
from climseg.labels.step import Field, RegionTable, Rivers, Step

PERCENTILE: Final = "ivt_percentile"  # (month, lat, lon) in a climatology file
_HOW: Final = "climseg label makes one of its input where none is named"


@needs(Needs(("UIVT", "VIVT")))
def atmospheric_rivers(
    step: Step,
    *,
    climatology: str | None = None,
    percentile: float = 85.0,
    min_steps: int = 120,
    min_ivt: float = 100.0,
    min_length_km: float = 2000.0,
    min_elongation: float = 2.0,
    max_turn_degrees: float = 45.0,
    min_coherent_share: float = 0.5,
    min_poleward_ivt: float = 50.0,
) -> Rivers:
    """Mark long regions of strong, coherent, poleward transport along their axis.

    Cells are looked at whose transport exceeds the climatology's percentile of its month and is at least ``min_ivt``;
    their regions (8 neighbours, over the seam of a closed grid) must pass all of:

    - "length": the axis (:func:`climseg.labels.axis.measure_axis`, drawn to where the transport is strong) is longer
      than ``min_length_km``;
    - "elongation": length over width is above ``min_elongation``, the width being area over length;
    - "coherence": in at least ``min_coherent_share`` of the cells the transport is within ``max_turn_degrees`` of the
      region's mean transport;
    - "axis": the mean transport is within ``max_turn_degrees`` of the line through the axis' ends, in whichever sense
      of the line is nearer (that it flows poleward is the next criterion's business);
    - "poleward": the mean transport away from the equator is above ``min_poleward_ivt``.

    The mean transport is the area-weighted mean of its eastward and northward parts, each cell's in its own compass. A
    region with too few cells for the length, even in a single file corner to corner, is rejected for its length and
    has no axis measured (NaN). At the border of an open grid a region is judged by what is seen of it.

    Args:
        step: With UIVT and VIVT, and its month. Where one of them or the percentile is missing (NaN), a cell is no
            river, and untold.
        climatology: Path of a netCDF file with ``ivt_percentile`` (month, lat, lon) in kg/m/s on the grid of ``step``,
            in any order of rows and columns: the percentile of the five months round each month.
        percentile: 0 to 100. Not used here: what :func:`climseg.labels.make_climatology.make_climatology` takes where
            no climatology is given.
        min_steps: Likewise: the fewest time steps in five months.
        min_ivt: kg/m/s.
        min_length_km: km.
        min_elongation: Without unit.
        max_turn_degrees: Degrees.
        min_coherent_share: 0 to 1.
        min_poleward_ivt: kg/m/s.

    Raises:
        InputError: There is no climatology, or it cannot be read, lacks the variable or a month, or has another grid.

    Source: Guan and Waliser 2015 (doi:10.1002/2015JD024257).
    """
    usual = monthly_percentile(climatology, step)
    u, v = step.fields["UIVT"], step.fields["VIVT"]
    ivt = np.hypot(u, v)
    labels = label_regions((ivt > usual) & (ivt >= min_ivt), is_periodic(step.lon), connectivity=8)
    cells = _Cells.of(labels, step)
    found = measure_regions(labels, step.lat, step.lon)
    east, north, poleward = cells.mean(u), cells.mean(v), cells.mean(v * np.sign(step.lat)[:, None].astype(v.dtype))
    coherent = cells.share_along(u, v, east, north, max_turn_degrees)
    longest_cell = EARTH_RADIUS / 1e3 * np.radians(np.hypot(spacing(step.lat), spacing(step.lon)))
    axes = cells.axes(ivt, step, lambda count: count * longest_cell > min_length_km)

    length = np.array([np.nan if axis is None else axis.length / 1e3 for axis in axes])
    bearing = np.array([np.nan if axis is None else axis.bearing for axis in axes])
    direction = np.degrees(np.arctan2(east, north)) % 360.0
    turn = np.abs((direction - bearing + 90.0) % 180.0 - 90.0)
    width = found.area / 1e6 / np.where(length > 0.0, length, np.nan)  # a single cell of a very coarse grid has no axis
    regions = RegionTable(
        measures={
            "lat": found.lat,
            "lon": found.lon,
            "area_km2": found.area / 1e6,
            "length_km": length,
            "width_km": width,
            "coherent_share": coherent,
            "ivt_direction_degrees": direction,
            "axis_bearing_degrees": bearing,
            "poleward_ivt_kg_per_m_s": poleward,
        },
        failed={
            "length": ~(length > min_length_km),
            "elongation": length / width <= min_elongation,
            "coherence": ~(coherent >= min_coherent_share),
            "axis": turn > max_turn_degrees,
            "poleward": ~(poleward > min_poleward_ivt),
        },
    )
    return Rivers(marked(labels, regions.kept), np.isnan(ivt) | np.isnan(usual), regions)


@dataclass(frozen=True)
class _Cells:
    """The cells of all regions, region after region.

    Attributes:
        rows: (cells,) latitude index.
        columns: (cells,) longitude index.
        region: (cells,) number of the region, from 0.
        area: (cells,) in any unit.
        first: (regions + 1,) position of each region's first cell; the last is the number of cells.
    """

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    region: NDArray[np.int64]
    area: Floats
    first: NDArray[np.int64]

    @classmethod
    def of(cls, labels: Labels, step: Step) -> "_Cells":
        rows, columns = np.nonzero(labels)
        region = labels[rows, columns].astype(np.int64) - 1
        order = np.argsort(region, kind="stable")
        rows, columns, region = rows[order], columns[order], region[order]
        first = np.searchsorted(region, np.arange(int(labels.max(initial=0)) + 1))
        return cls(rows, columns, region, row_cell_area(step.lat, step.lon)[rows], first)

    @property
    def counts(self) -> NDArray[np.int64]:
        return np.diff(self.first)

    def mean(self, field: Field) -> Floats:
        """Area-weighted mean (regions,) of a field (lat, lon)."""
        sums = np.bincount(self.region, weights=self.area * field[self.rows, self.columns], minlength=self.counts.size)
        return np.asarray(sums / np.bincount(self.region, weights=self.area, minlength=self.counts.size))

    def share_along(self, u: Field, v: Field, east: Floats, north: Floats, turn: float) -> Floats:
        """Share (regions,) of the cells in which (u, v) is within ``turn`` degrees of the region's (east, north)."""
        cell_u, cell_v = u[self.rows, self.columns].astype(np.float64), v[self.rows, self.columns].astype(np.float64)
        mean_u, mean_v = east[self.region], north[self.region]
        with np.errstate(invalid="ignore"):  # no mean transport at all: no cell is along it
            cosine = (cell_u * mean_u + cell_v * mean_v) / (np.hypot(cell_u, cell_v) * np.hypot(mean_u, mean_v))
        # A hair of tolerance, so that exactly 45 degrees counts whatever the rounding.
        along = cosine >= np.cos(np.radians(turn)) - 1e-9
        return np.asarray(np.bincount(self.region, weights=along, minlength=self.counts.size) / self.counts)

    def axes(self, weights: Field, step: Step, may_matter: Callable[[int], bool]) -> list[Axis | None]:
        """The axis of each region whose number of cells may matter; None for the others."""
        axes: list[Axis | None] = []
        for start, stop in zip(self.first[:-1], self.first[1:], strict=True):
            rows, columns = self.rows[start:stop], self.columns[start:stop]
            weight = weights[rows, columns].astype(np.float64)
            axes.append(measure_axis(rows, columns, weight, step.lat, step.lon) if may_matter(stop - start) else None)
        return axes


def monthly_percentile(climatology: str | None, step: Step) -> Field:
    """The climatology's percentile (lat, lon) of a step's month, in kg/m/s, rows and columns as the step's.

    Raises:
        InputError: There is no climatology, or it cannot be read, lacks the variable or a month, or has another grid.
    """
    if climatology is None:
        raise InputError(
            "The rivers of Guan and Waliser need a climatology of the transport: give the path of its file as the "
            f"option climatology ({_HOW})."
        )
    path = Path(climatology).expanduser()
    if not path.is_file():
        raise InputError(f"{path}: there is no such file; expected a climatology of the transport ({_HOW}).")
    lat, lon, values = _read(str(path), path.stat().st_mtime_ns, step.month)
    # From the western edge of the fields on: a grid over Greenwich may have longitudes below 0 or beyond 360.
    columns = np.argsort((lon - step.lon[0] + 0.5 * spacing(step.lon)) % 360.0)
    rows = np.argsort(lat)
    if not (_same_axis(lat[rows], step.lat) and _same_axis(lon[columns], step.lon)):
        raise InputError(
            f"{path}: the grid of the climatology ({_grid_words(lat, lon)}) is not that of the fields "
            f"({_grid_words(step.lat, step.lon)}); make it from fields on their grid."
        )
    in_order = np.array_equal(rows, np.arange(rows.size)) and np.array_equal(columns, np.arange(columns.size))
    return values if in_order else values[np.ix_(rows, columns)]


@lru_cache(maxsize=24)
def _read(path: str, changed: int, month: int) -> tuple[Floats, Floats, NDArray[np.float32]]:
    """Latitudes, longitudes and the percentile of one month as the file has them; missing values are NaN.

    The file is closed again, so that a process may fork, and read under the lock of all other netCDF files. A file that
    has ``changed`` since (its time of modification in ns) is read again.
    """
    with NETCDF4_PYTHON_LOCK:
        try:
            with netCDF4.Dataset(path) as file:
                names = list(file.variables)
                for name in (PERCENTILE, "month", "lat", "lon"):
                    if name not in names:
                        raise InputError(
                            f"{path}: the climatology has no variable {name!r}{near_matches(name, names)} "
                            f"(there are {', '.join(names) or 'none'})."
                        )
                axes = file[PERCENTILE].dimensions
                if axes != ("month", "lat", "lon"):
                    raise InputError(f"{path}: {PERCENTILE} has the axes {axes}; expected (month, lat, lon).")
                months = np.asarray(file["month"][:]).tolist()
                if month not in months:
                    raise InputError(f"{path}: the climatology has the months {months}; {month} is missing.")
                lat, lon = (np.ma.filled(file[name][:].astype(np.float64), np.nan) for name in ("lat", "lon"))
                values = np.ma.filled(file[PERCENTILE][months.index(month)].astype(np.float32), np.nan)
        except (OSError, RuntimeError) as error:
            raise InputError(f"{path}: the climatology cannot be read ({error}).") from error
    return lat, lon, values


def _same_axis(one: Floats, other: Floats) -> bool:
    """Whether two axes are the same but for rounding; whole turns make no difference."""
    if one.shape != other.shape:
        return False
    return bool((np.abs(longitude_difference(one, other)) <= 1e-3 * spacing(other)).all())


def _grid_words(lat: Floats, lon: Floats) -> str:
    return f"{lat.size} x {lon.size}, latitude {lat[0]:g} to {lat[-1]:g}, longitude {lon[0]:g} to {lon[-1]:g} degrees"
