"""From one regular latitude-longitude grid to another: bilinear for fields, conservative for rain and masks.

Linear weights are scipy's (the design matrix of a linear B-spline), area weights are Iris's. Both are made once for a
pair of grids and used for every time step; no dask graph carries them, so that every process makes its own.

Bilinear values are those of the four nearest points: a grid four times as coarse is a sample of the fine one, not its
mean. Each wind component is regridded as a scalar, also next to the poles, where east turns fast.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.interpolate import BSpline
from scipy.sparse import csr_array

from climseg.canonical import SOURCE_VALUES, check_canonical, orient
from climseg.channels import LABELS
from climseg.errors import InputError, near_matches
from climseg.grid import Floats, cell_edges, is_periodic, spacing

Field = NDArray[Any]

# Rain is a flux with sharp edges: its total over the globe must stay, which bilinear interpolation does not see to.
CONSERVATIVE: Final = ("PRECT", LABELS)
# Two coordinates this part of a step apart are the same: files store them as float32.
_ROUNDING: Final = 1e-3
# An outermost cell whose edge is nearer to the pole than this part of a step reaches to it. On Gaussian grids the gap
# is 0.27 steps: the first zeros of J0, 2.405 and 5.520, set the distances of the outermost rows from the pole.
_POLE_GAP: Final = 0.4
# Shares of a cell this close count as equal: they are sums of rounded areas.
_TIE: Final = 1e-6
_KNOWN: Final = ("cam5", "0.25deg", "1deg", "like:FILE")


@dataclass(frozen=True, eq=False)
class Grid:
    """A regular latitude-longitude grid, oriented canonically; equal, as a key too, to one of the same coordinates.

    Attributes:
        lat: (lat,) float64 degrees, ascending.
        lon: (lon,) float64 degrees, ascending; a region across Greenwich goes on beyond 360.
    """

    lat: Floats
    lon: Floats

    @classmethod
    def of(cls, ds: xr.Dataset) -> Self:
        """The grid of a canonical Dataset."""
        return cls(*(np.asarray(ds[name].values, dtype=np.float64) for name in ("lat", "lon")))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Grid) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __str__(self) -> str:
        axes = ((name, values) for name, values in (("lat", self.lat), ("lon", self.lon)) if values.size)
        ranges = ", ".join(f"{name} {values[0]:g} to {values[-1]:g}" for name, values in axes)
        return f"{self.lat.size} x {self.lon.size} points ({ranges})" if ranges else "no points"

    @property
    def _key(self) -> tuple[bytes, bytes]:
        return self.lat.tobytes(), self.lon.tobytes()

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.lat.size, self.lon.size

    @property
    def periodic(self) -> bool:
        """Whether the longitudes close around the globe."""
        return is_periodic(self.lon)

    @property
    def lat_edges(self) -> Floats:
        """Edges (lat + 1,) of the rows' cells in degrees; an outermost cell that nearly reaches a pole reaches it."""
        edges = cell_edges(self.lat)
        gap = _POLE_GAP * spacing(self.lat)
        edges[0] = -90.0 if edges[0] < gap - 90.0 else edges[0]
        edges[-1] = 90.0 if edges[-1] > 90.0 - gap else edges[-1]
        return edges

    @property
    def lon_edges(self) -> Floats:
        """Edges (lon + 1,) of the columns' cells in degrees; on a closed grid the last is the first, 360 degrees on."""
        middles = 0.5 * (self.lon[1:] + self.lon[:-1])
        if self.periodic:
            seam = 0.5 * (self.lon[-1] - 360.0 + self.lon[0])
            return np.concatenate([[seam], middles, [seam + 360.0]])
        return np.concatenate([[2 * self.lon[0] - middles[0]], middles, [2 * self.lon[-1] - middles[-1]]])


def target_grid(text: str, ds: xr.Dataset) -> Grid:
    """The grid that a word names, as far as it lies within the area of the input.

    Args:
        text: ``"0.25deg"`` or another number of degrees that divides 180: a global grid with rows at both poles and a
            column at 0 degrees. ``"cam5"``: 768 x 1152, of CAM5 at 0.25 degrees (Kurth et al. 2018). ``"like:FILE"``:
            the axes lat and lon, or latitude and longitude, of a netCDF file.
        ds: Canonical Dataset, the input.

    Returns:
        The grid, for :func:`regrid`. A regional input gives the part inside its area, in its convention of longitude.

    Raises:
        InputError: The word is none of these, the file has no such axes, or nothing lies within the input's area.
    """
    area, wanted = Grid.of(ds), _named_grid(text.strip())
    inside = grid_within(wanted, area)
    if min(inside.shape) < 2:
        raise InputError(
            f"grid={text}: less than 2 x 2 of its points lie within the area of the input, which has {area}. Take a "
            "finer grid, one of that area, or more input."
        )
    steps = np.diff(inside.lon)
    if steps.max() > 1.5 * steps.min():
        raise InputError(
            f"grid={text}: the input's area, {area}, holds it in two parts with a gap between them; select a smaller "
            "region of the input."
        )
    return inside


def grid_within(grid: Grid, area: Grid) -> Grid:
    """The rows and columns of a grid that lie between the outermost ones of another.

    Args:
        grid: The grid wanted.
        area: The grid that has values; where its outermost cells reach a pole, rows up to the pole count as inside.

    Returns:
        A part of ``grid`` with the longitudes in the convention of ``area``; it can be empty.
    """
    edges = area.lat_edges
    south = -90.0 if edges[0] == -90.0 else float(area.lat[0])
    north = 90.0 if edges[-1] == 90.0 else float(area.lat[-1])
    rows = _between(grid.lat, south, north, spacing(grid.lat))
    if area.periodic:
        return Grid(rows, grid.lon)
    columns = np.sort(np.concatenate([grid.lon - 360.0, grid.lon, grid.lon + 360.0]))
    return Grid(rows, _between(columns, float(area.lon[0]), float(area.lon[-1]), spacing(grid.lon)))


def regrid(ds: xr.Dataset, grid: Grid, origin: str = "input") -> xr.Dataset:
    """Bring a canonical Dataset to another grid, lazily: building the result reads no values.

    Fields are interpolated bilinearly, around the globe where the grid closes; rows beyond the outermost one take its
    values. PRECT is averaged over the area of each target cell, so that its integral over the sphere stays. LABELS get
    the class with the largest share of the target cell's area, MISSING_LABEL being one of them; the lower class number
    wins a tie. Cells reach midway to their neighbours and stop at the poles and at the border of a region.

    A target value is NaN where any value it depends on is missing or, for PRECT, where any part of the cell is.

    Args:
        ds: Canonical Dataset.
        grid: From :func:`target_grid`, or another grid inside the area of ``ds``.
        origin: The input to name in an error.

    Returns:
        A canonical Dataset on that grid: dtypes, attributes and chunks in time are kept, rows and columns are whole in
        each chunk, and every ``comment`` says how the variable was regridded. ``ds`` itself if that is its grid.

    Raises:
        InputError: The grid reaches beyond the area of the input.
    """
    source = Grid.of(ds)
    target = grid_within(grid, source)
    if target.shape != grid.shape:
        raise InputError(
            f"{origin}: the grid to interpolate to, {grid}, reaches beyond the input's, {source}; take the part of it "
            "that lies inside, as climseg.regrid.target_grid() does."
        )
    if target == source:
        return ds
    out = xr.Dataset(attrs=ds.attrs)
    for name, variable in ds.data_vars.items():
        method, how = _method(str(name))
        lazy = variable.chunk({"lat": -1, "lon": -1})
        out[name] = _on(target, lazy, partial(method, source=source, target=target))
        comment = variable.attrs.get("comment")
        out[name].attrs["comment"] = f"{comment}; {how}" if comment else how
    for axis, values in (("lat", target.lat), ("lon", target.lon)):
        attributes = {k: v for k, v in ds[axis].attrs.items() if k != SOURCE_VALUES}
        out = out.assign_coords({axis: (axis, values, attributes)})
    check_canonical(out, origin=origin)
    return out


def interpolate(ds: xr.Dataset, grid: Grid) -> xr.Dataset:
    """Interpolate every variable bilinearly, around the globe where the grid of ``ds`` closes.

    Args:
        ds: Floating-point variables in memory with the dims lat and lon, and any others.
        grid: The target; its longitudes are in the convention of ``ds``. Beyond the outermost row, and beyond the
            outermost column of a region, its values are taken.

    Returns:
        A Dataset of variables (..., lat, lon) on that grid; dtypes are kept.
    """
    method = partial(_bilinear, source=Grid.of(ds), target=grid)
    out = xr.Dataset({name: _on(grid, variable, method) for name, variable in ds.data_vars.items()})
    return out.assign_coords(lat=grid.lat, lon=grid.lon)


def _named_grid(text: str) -> Grid:
    """The whole grid that a word names; see :func:`target_grid`."""
    if text == "cam5":
        return Grid(np.linspace(-90.0, 90.0, 768), np.linspace(0.0, 360.0, 1152, endpoint=False))
    if text.startswith("like:"):
        return _grid_of_file(Path(text.removeprefix("like:")).expanduser())
    degrees = re.fullmatch(r"(\d+\.?\d*|\.\d+)deg", text)
    if degrees is None:
        raise InputError(
            f"grid={text}: expected a number of degrees such as 0.25deg, cam5, or like: and the path of a netCDF "
            f"file{near_matches(text, _KNOWN) or '.'}"
        )
    step = float(degrees[1])
    if not 0.01 <= step <= 90.0 or abs(180.0 / step - round(180.0 / step)) > 1e-6:
        raise InputError(
            f"grid={text}: expected a number between 0.01 and 90 that divides 180 degrees, so that rows stand on both "
            "poles; for example 0.25deg, 0.5deg, 1deg or 2.5deg."
        )
    intervals = round(180.0 / step)
    return Grid(np.linspace(-90.0, 90.0, intervals + 1), np.linspace(0.0, 360.0, 2 * intervals, endpoint=False))


def _grid_of_file(path: Path) -> Grid:
    """The grid of a netCDF file, oriented canonically."""
    try:
        # Nothing but the axes matters: variables that do not decode are no obstacle.
        with xr.open_dataset(path, engine="netcdf4", decode_cf=False) as opened:
            axes = [
                next((opened[n].values for n in names if n in opened.variables and opened[n].ndim == 1), None)
                for names in (("lat", "latitude"), ("lon", "longitude"))
            ]
    except OSError as error:
        raise InputError(f"grid=like:{path}: cannot be read as a netCDF file ({error.strerror or error}).") from error
    lat, lon = axes
    if lat is None or lon is None:
        raise InputError(
            f"grid=like:{path}: has no one-dimensional lat and lon (or latitude and longitude); name a file on a "
            "regular latitude-longitude grid."
        )
    coordinates = {"time": ("time", [0]), "lat": ("lat", lat), "lon": ("lon", lon)}
    return Grid.of(orient(xr.Dataset(coords=coordinates), f"grid=like:{path}"))


def _between(values: Floats, low: float, high: float, step: float) -> Floats:
    """The values within two limits, up to rounding."""
    near = _ROUNDING * step
    return np.clip(values[(values >= low - near) & (values <= high + near)], low, high)


def _method(name: str) -> tuple[Callable[..., Field], str]:
    """The function that regrids a variable, and how a comment says it."""
    if name not in CONSERVATIVE:
        return _bilinear, "regridded bilinearly"
    return _majority if name == LABELS else _conservative, "regridded conservatively"


def _on(target: Grid, variable: xr.DataArray, method: Callable[[Field], Field]) -> xr.DataArray:
    """Apply a function from fields (..., lat, lon) to fields on the target grid; lazy arrays stay lazy."""
    out: xr.DataArray = xr.apply_ufunc(
        method,
        variable,
        input_core_dims=[["lat", "lon"]],
        output_core_dims=[["lat", "lon"]],
        exclude_dims={"lat", "lon"},
        keep_attrs=True,
        dask="parallelized",
        output_dtypes=[variable.dtype],
        dask_gufunc_kwargs={"output_sizes": {"lat": target.lat.size, "lon": target.lon.size}},
    )
    return out


def _bilinear(fields: Field, *, source: Grid, target: Grid) -> Field:
    """Fields (..., lat, lon) on the target grid, interpolated along each axis in turn; the dtype is kept."""
    rows, columns = _bilinear_weights(source, target)
    out = np.empty(fields.shape[:-2] + target.shape, fields.dtype)
    for step in np.ndindex(fields.shape[:-2]):
        out[step] = rows @ (fields[step] @ columns.T)
    return out


@lru_cache(maxsize=4)
def _bilinear_weights(source: Grid, target: Grid) -> tuple[csr_array, csr_array]:
    """Weights (target rows, source rows) and (target columns, source columns), float64."""
    return (
        _linear_weights(source.lat, target.lat),
        _linear_weights(source.lon, target.lon, period=360.0 if source.periodic else None),
    )


def _linear_weights(points: Floats, at: Floats, period: float | None = None) -> csr_array:
    """Weights (at, points) of linear interpolation along an axis; beyond its ends the outermost point counts alone."""
    if period is None:
        knots, places = points, np.clip(at, points[0], points[-1])
    else:
        knots, places = np.append(points, points[0] + period), points[0] + (at - points[0]) % period
    spline = BSpline.design_matrix(places, np.concatenate([knots[:1], knots, knots[-1:]]), 1)
    # The knot that closes the circle is the first point again. Rounded, a place on a point has that point's weight
    # alone, so that a missing neighbour does not matter.
    weights = csr_array(
        (spline.data.round(9), spline.indices % points.size, spline.indptr), shape=(at.size, points.size)
    )
    weights.eliminate_zeros()
    return weights


def _conservative(fields: Field, *, source: Grid, target: Grid) -> Field:
    """Means of fields (..., lat, lon) over the target cells, weighted by area; the dtype is kept."""
    mean = _area_mean(source, target)
    out = np.empty(fields.shape[:-2] + target.shape, fields.dtype)
    for step in np.ndindex(fields.shape[:-2]):
        out[step] = mean(fields[step])
    return out


def _majority(labels: Field, *, source: Grid, target: Grid) -> Field:
    """The class of masks (..., lat, lon) with the largest share of each target cell; the lowest of equals."""
    mean = _area_mean(source, target)
    out = np.empty(labels.shape[:-2] + target.shape, labels.dtype)
    for step in np.ndindex(labels.shape[:-2]):
        classes = np.unique(labels[step])
        shares = np.stack([mean((labels[step] == number).astype(np.float32)) for number in classes])
        assert np.isfinite(shares).all(), "every target cell lies within the source's area"
        out[step] = classes[(shares >= shares.max(axis=0) - _TIE).argmax(axis=0)]
    return out


@lru_cache(maxsize=2)  # the weights between two global grids of 0.25 degrees take 80 MB
def _area_mean(source: Grid, target: Grid) -> Callable[[Field], Field]:
    """A function from a field (lat, lon) to its area-weighted means on the target grid, NaN where any part is NaN."""
    # Importing Iris takes most of a second, which only this needs.
    from iris.analysis import AreaWeighted
    from iris.coords import DimCoord
    from iris.cube import Cube

    def axis(name: str, points: Floats, edges: Floats) -> Any:
        return DimCoord(points, standard_name=name, units="degrees", bounds=np.stack([edges[:-1], edges[1:]], axis=1))

    lat_edges, lon_edges = source.lat_edges, source.lon_edges
    from_axes = axis("latitude", source.lat, lat_edges), axis("longitude", source.lon, lon_edges)

    # Iris gives no value to a cell that overhangs the source; such a cell ends at the border here.
    rows = np.clip(target.lat_edges, lat_edges[0], lat_edges[-1])
    columns = target.lon_edges if source.periodic else np.clip(target.lon_edges, lon_edges[0], lon_edges[-1])
    to_axes = axis("latitude", target.lat, rows), axis("longitude", target.lon, columns)

    def cube(field: Field, axes: tuple[Any, Any]) -> Any:
        return Cube(field, dim_coords_and_dims=[(axes[0], 0), (axes[1], 1)])

    empty_source, empty_target = np.zeros(source.shape, np.float32), np.zeros(target.shape, np.float32)
    regridder = AreaWeighted(mdtol=0).regridder(cube(empty_source, from_axes), cube(empty_target, to_axes))

    def mean(field: Field) -> Field:
        complete = bool(np.isfinite(field).all())
        known = field if complete else np.ma.masked_invalid(field)
        means: Field = np.ma.filled(regridder(cube(known, from_axes)).data, np.nan)
        return means

    return mean
