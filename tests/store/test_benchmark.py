from pathlib import Path

import numpy as np
import xarray as xr

from climseg.channels import LABELS
from climseg.cluster import in_process
from climseg.store.benchmark import Comparison, compare_with_copying, copy_files
from climseg.store.info import image_chunk, mask_chunk
from climseg.store.writer import write_store


def test_copying_writes_the_bytes_that_a_store_has(files: str, tmp_path: Path, atmosphere: xr.Dataset) -> None:
    paths = sorted(Path(files).parent.glob("*.nc"))
    with in_process() as cluster:
        written = copy_files(paths, tmp_path / "copy", cluster)
    assert written == 4 * 37 * 72 * (16 * 4 + 1)
    four = atmosphere.isel(time=slice(4))
    channels = [str(name) for name in four.data_vars if name != LABELS]
    write_store(four, four[LABELS], tmp_path / "store", channels=channels, splits=["train"] * 4, request={})
    for chunk in (image_chunk, mask_chunk):
        for step in range(4):
            assert chunk(tmp_path / "copy", step).read_bytes() == chunk(tmp_path / "store", step).read_bytes()


def test_both_are_measured_as_often_as_asked_and_leave_nothing(
    files: str, tmp_path: Path, atmosphere: xr.Dataset
) -> None:
    paths = sorted(Path(files).parent.glob("*.nc"))
    found = compare_with_copying(paths, lambda: atmosphere.isel(time=slice(4)), tmp_path, repeats=2)
    assert len(found.copy) == len(found.prepare) == 2
    assert min(*found.copy, *found.prepare) > 0
    assert (found.channels, found.bytes) == (16, 4 * 37 * 72 * (16 * 4 + 1))
    assert list(tmp_path.iterdir()) == []


def test_the_share_is_of_the_speed() -> None:
    assert np.isclose(Comparison(channels=1, bytes=1, copy=[1.0, 2.0, 9.0], prepare=[4.0, 5.0, 3.0]).share, 0.5)
