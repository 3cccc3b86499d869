"""How fast samples are read, beside other ways to read the same samples on the same machine at the same time."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch.utils.data import DataLoader

from climseg.samples.dataset import StoreSamples, collate
from climseg.store.info import StoreInfo, image_chunk, mask_chunk
from climseg.store.other_readings import by_fromfile, by_netcdf, by_zarr


@dataclass
class Reading:
    """A way to read the samples, and what was measured of it.

    Attributes:
        name: Of the way.
        workers: Loader processes.
        read_bytes: Size of the files of one sample.
        seconds: For all samples of one measurement, one per repeat.
    """

    name: str
    workers: int
    read_bytes: float
    seconds: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Comparison:
    """All ways to read, measured in turn.

    Attributes:
        samples: Number of samples in one measurement.
        delivered_bytes: Size of one image in float32.
        readings: The first is ``np.fromfile``.
    """

    samples: int
    delivered_bytes: int
    readings: list[Reading]

    def speed(self, reading: Reading) -> float:
        """Samples per second, from the median."""
        return self.samples / median(reading.seconds)

    def ratio(self, reading: Reading) -> float:
        """Speed beside that of ``np.fromfile``."""
        return median(self.readings[0].seconds) / median(reading.seconds)


def compare_readings(
    paths: Sequence[Path],
    stores: Mapping[str, Path],
    *,
    batch_size: int,
    workers: Sequence[int],
    threads: int = 1,
    passes: int = 1,
    repeats: int = 3,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Comparison:
    """Read the same samples in all ways, in turn, as often as asked.

    Every way goes once through the samples before its first measurement: so files lie in the page cache, workers have
    started, and memory has its size.

    Args:
        paths: netCDF files of one time step each.
        stores: Stores of these files, all time steps in the training split, by the type in which images are stored;
            ``float32`` is among them.
        batch_size: Of the loader.
        workers: Numbers of loader processes.
        threads: Of the loader without workers.
        passes: How often one measurement goes through all samples.
        repeats: Number of measurements.
        progress: Called with (measurements done, all).
    """
    plain, info = stores["float32"], StoreInfo.read(stores["float32"])
    netcdf_bytes = sum(path.stat().st_size for path in paths) / len(paths)
    ways: list[tuple[Reading, Callable[[], Iterable[Any]]]] = [
        (Reading("np.fromfile", 0, _bytes(plain)), lambda: by_fromfile(plain, info)),
        (Reading("zarr", 0, _bytes(plain)), lambda: by_zarr(plain)),
        (Reading("netCDF", 0, netcdf_bytes), lambda: by_netcdf(paths, info)),
    ]
    for count in workers:
        for dtype, store in stores.items():
            loader = _loader(store, batch_size, count)
            ways.append((Reading(dtype, count, _bytes(store)), partial(iter, loader)))
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        for repeat in range(-1, repeats):
            for number, (reading, samples) in enumerate(ways):
                progress((repeat + 1) * len(ways) + number, (repeats + 1) * len(ways))
                start = time.perf_counter()
                for _ in range(1 if repeat < 0 else passes):
                    for _sample in samples():
                        pass
                if repeat >= 0:
                    reading.seconds.append(time.perf_counter() - start)
    finally:
        torch.set_num_threads(before)
    progress(len(ways) * (repeats + 1), len(ways) * (repeats + 1))
    pixels = info.shape[0] * info.shape[1] * info.shape[2]
    return Comparison(passes * len(info.times), 4 * pixels, [reading for reading, _ in ways])


def _loader(store: Path, batch_size: int, workers: int) -> DataLoader[Any]:
    return DataLoader(
        StoreSamples(store, "train"),
        batch_size=batch_size,
        num_workers=workers,
        persistent_workers=workers > 0,
        collate_fn=collate,
    )


def _bytes(store: Path) -> int:
    return image_chunk(store, 0).stat().st_size + mask_chunk(store, 0).stat().st_size
