"""The files that a benchmark reads."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from numpy.typing import NDArray

from climseg.cli.progress import progress_bar
from climseg.synthetic import write_files


@contextmanager
def made_files(
    folder: str | None, times: Sequence[Any], lat: NDArray[Any], lon: NDArray[Any], per: Literal["step", "month"]
) -> Iterator[tuple[list[Path], Path]]:
    """Made files, kept in ``folder`` or there for the time of the block, and a folder for what is made of them.

    Args:
        folder: Where; None for a temporary one.
        times: Time steps.
        lat: Latitudes, degrees.
        lon: Longitudes, degrees.
        per: One file per ``step`` or ``month``.
    """
    if folder is not None:
        Path(str(folder)).mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="climseg-", dir=folder) as scratch:
        with progress_bar("making time steps") as progress:
            paths = write_files(Path(str(folder or scratch)), times, lat, lon, per=per, progress=progress)
        yield paths, Path(scratch)
