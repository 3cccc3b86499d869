"""Mask files: CF netCDF with the class number of every cell, written time step by time step, and read again.

The variable is LABELS (time, lat, lon) int8, as in ClimateNet's files, so that a mask file can also serve as labels.
Rows, columns and times are those of the input files; the times are in order.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import cftime
import netCDF4
import numpy as np
import xarray as xr
from numpy.typing import NDArray
from xarray.backends.netCDF4_ import NETCDF4_PYTHON_LOCK

import climseg
from climseg.atomic import atomic_file
from climseg.canonical import LABEL_ATTRIBUTES, orient, restore_orientation
from climseg.channels import CHANNELS, CLASSES, LABELS, MISSING_LABEL
from climseg.errors import InputError
from climseg.grid import cell_area

PROBABILITY_PREFIX: Final = "probability_"
_SECONDS: Final = "seconds since 1970-01-01"


class MaskWriter:
    """Writes a mask file one time step after the other; it gets its final name when the block ends well.

    Args:
        output: The file to write; an older one is replaced at the end.
        like: The canonical Dataset that the masks belong to: its axes, and its source's orientation and calendar.
        attributes: Global attributes, beside Conventions and history.
        definition: What the classes mean, in words.
        command: For the history.
        probabilities: Also write the probability of every class but the background.

    Example:
        >>> with MaskWriter(Path("masks.nc"), ds, {"title": "..."}, "expert labels", "climseg ...") as writer:
        ...     writer.write(0, mask)
    """

    def __init__(
        self,
        output: Path,
        like: xr.Dataset,
        attributes: Mapping[str, str],
        definition: str,
        command: str,
        probabilities: bool = False,
    ) -> None:
        self._output = output
        self._axes = like[["time", "lat", "lon"]]
        self._probabilities = CLASSES[1:] if probabilities else ()
        self._definition = definition
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        history = {"history": f"{now} climseg {climseg.__version__}: {command}"}
        self._attributes = {"Conventions": "CF-1.8"} | dict(attributes) | history
        self._written = 0

    def __enter__(self) -> Self:
        """Create the file under its temporary name; returns the writer itself."""
        with ExitStack() as stack:
            partial = stack.enter_context(atomic_file(self._output))
            with NETCDF4_PYTHON_LOCK:
                try:
                    self._file = netCDF4.Dataset(partial, "w", format="NETCDF4")
                except OSError as error:  # "permission denied", also for a full disk
                    raise self._not_written(error) from error
            stack.push(self._close)
            with NETCDF4_PYTHON_LOCK:
                self._create_variables()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close; rename when all went well, remove otherwise."""
        self._stack.__exit__(kind, error, trace)

    def write(self, index: int, mask: NDArray[np.int8], probabilities: NDArray[np.float32] | None = None) -> None:
        """Write one time step.

        Args:
            index: Position on the time axis.
            mask: (lat, lon) class numbers in canonical orientation.
            probabilities: (K, lat, lon) in canonical orientation; needed when the file carries them.
        """
        try:
            with NETCDF4_PYTHON_LOCK:
                self._file[LABELS][index] = self._as_source(mask)
                for k, name in enumerate(self._probabilities, start=1):
                    assert probabilities is not None, "the writer was made for probabilities"
                    self._file[PROBABILITY_PREFIX + name][index] = self._as_source(probabilities[k])
        except (OSError, RuntimeError) as error:
            raise self._not_written(error) from error
        self._written += 1

    def _close(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            with NETCDF4_PYTHON_LOCK:  # where an input cannot be read, other threads still read others
                self._file.close()  # the netCDF library keeps values back until it closes
        except (OSError, RuntimeError) as failure:
            raise self._not_written(failure) from failure
        assert kind is not None or self._written == self._axes.sizes["time"], "a time step was not written"

    def _not_written(self, error: Exception) -> InputError:
        return InputError(f"{self._output}: could not be written ({error}); is the disk full?")

    def _as_source(self, field: NDArray[Any]) -> NDArray[Any]:
        """Rows and columns in the order of the source file."""
        array = xr.DataArray(field, dims=("lat", "lon"), coords=self._axes.drop_vars("time").coords)
        return np.asarray(restore_orientation(array.to_dataset(name="field"))["field"].values)

    def _create_variables(self) -> None:
        self._file.setncatts(self._attributes)
        self._create_axes(restore_orientation(self._axes))
        # No _FillValue: readers would turn class numbers into floats for a value that hardly ever occurs.
        comment = {"comment": f"{MISSING_LABEL} where no class could be told, as a field is missing"}
        self._create(LABELS, "i1", None, LABEL_ATTRIBUTES | {"definition": self._definition} | comment)
        for name in self._probabilities:
            attributes = {"long_name": f"probability of {name.replace('_', ' ')}", "units": "1"}
            self._create(PROBABILITY_PREFIX + name, "f4", np.float32(np.nan), attributes)

    def _create_axes(self, axes: xr.Dataset) -> None:
        units, calendar, values = encode_times(axes["time"])
        # double: CF before 1.9 and older tools know no 64-bit whole numbers
        for name, data in (
            ("time", values.astype(np.float64)),
            ("lat", axes["lat"].values),
            ("lon", axes["lon"].values),
        ):
            self._file.createDimension(name, None if name == "time" else data.size)
            variable = self._file.createVariable(name, data.dtype, (name,))
            variable.setncatts(axes[name].attrs)
            if name == "time":
                variable.setncatts({"units": units, "calendar": calendar})
            variable[:] = data

    def _create(self, name: str, dtype: str, fill: Any, attributes: Mapping[str, Any]) -> None:
        shape = (1, self._axes.sizes["lat"], self._axes.sizes["lon"])
        variable = self._file.createVariable(
            name, dtype, ("time", "lat", "lon"), fill_value=fill, compression="zlib", complevel=4, chunksizes=shape
        )
        variable.setncatts(attributes)


def describe_input(ds: xr.Dataset, paths: Sequence[str | Path]) -> dict[str, str]:
    """Global attributes that say what masks were made from: files, channels, and how channels were approximated."""
    names = [Path(p).name for p in paths]
    comments = [f"{c}: {ds[c].attrs['comment']}" for c in ds.data_vars if c in CHANNELS and "comment" in ds[c].attrs]
    return {
        "input_files": ", ".join(names) if len(names) <= 4 else f"{names[0]} ... {names[-1]} ({len(names)} files)",
        "channels": " ".join(str(c) for c in ds.data_vars if c in CHANNELS),
        "channel_comments": "; ".join(comments) or "none",
    }


def encode_times(times: xr.DataArray) -> tuple[str, str, NDArray[np.int64]]:
    """CF units, calendar and whole numbers for a time axis, in the source's own units where those stay whole.

    Args:
        times: (time,) datetime64 or cftime, with the source's encoding.

    Raises:
        InputError: A time is more than a millisecond off a whole second.
    """
    calendar = str(times.encoding.get("calendar", times.dt.calendar))
    dates = [
        cftime.datetime(t.year, t.month, t.day, t.hour, t.minute, t.second, t.microsecond, calendar=calendar)
        for t in _parts(times)
    ]
    microseconds = np.asarray(cftime.date2num(dates, "microseconds since 1970-01-01", calendar), dtype=np.int64)
    seconds = (microseconds + 500_000) // 1_000_000
    # Times kept as fractions of a day come back some microseconds off.
    if np.abs(microseconds - 1_000_000 * seconds).max(initial=0) > 1000:
        raise InputError(f"the time axis ({times.values[0]} and on) is not in whole seconds.")
    source_units = times.encoding.get("units")
    if source_units is not None:
        whole = cftime.num2date(seconds, _SECONDS, calendar)
        numbers = np.asarray(cftime.date2num(whole, source_units, calendar))
        if np.issubdtype(numbers.dtype, np.integer):
            return str(source_units), calendar, numbers.astype(np.int64)
    return _SECONDS, calendar, seconds


def _parts(times: xr.DataArray) -> list[Any]:
    index = times.to_index()
    return list(index.to_pydatetime() if hasattr(index, "to_pydatetime") else index)


def open_masks(path: str | Path) -> xr.Dataset:
    """Open a mask file lazily: LABELS (time, lat, lon) with class numbers, and probabilities where they were written.

    Raises:
        InputError: No such file, or no LABELS (time, lat, lon) in it.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: no such mask file; 'climseg predict' and 'climseg label' write them.")
    try:
        # Another program's file may have a fill value; decoding it would turn the class numbers into floats.
        ds = xr.open_dataset(path, engine="netcdf4", mask_and_scale=False)
    except Exception as error:  # the netCDF library raises many kinds for a broken file
        raise InputError(f"{path}: not a readable netCDF file ({error}).") from error
    if LABELS not in ds or set(ds[LABELS].dims) != {"time", "lat", "lon"}:
        raise InputError(f"{path}: has no variable {LABELS} (time, lat, lon); expected a mask file of climseg.")
    if ds[LABELS].dtype.kind not in "iu":
        raise InputError(
            f"{path}: {LABELS} is {ds[LABELS].dtype}; expected whole numbers, as in a mask file of climseg."
        )
    if ds.sizes["time"] == 0:
        raise InputError(f"{path}: has no time step.")
    return ds.transpose("time", "lat", "lon", ...)


def class_area(masks: xr.DataArray) -> xr.DataArray:
    """Area of every class at every time.

    Args:
        masks: LABELS (time, lat, lon), latitude in either direction, any convention of longitude; a column that a file
            repeats to close the globe counts once.

    Returns:
        (time, class) in km2, float64; cells without a class belong to none.
    """
    masks = orient(masks.to_dataset(name=LABELS), "the masks")[LABELS]
    area = xr.DataArray(cell_area(masks["lat"], masks["lon"]) / 1e6, dims=("lat", "lon"))
    areas = [area.where(masks == k, 0.0).sum(("lat", "lon")) for k in range(len(CLASSES))]
    out = xr.concat(areas, dim=xr.Variable("class", list(CLASSES))).transpose("time", "class").rename("area")
    return out.assign_attrs(long_name="area", units="km2")
