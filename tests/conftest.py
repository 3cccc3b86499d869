"""What the tests share: one small made atmosphere, a store of it, and a checkpoint trained for a moment."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from climseg.channels import LABELS
from climseg.cli.main import run
from climseg.store.info import StoreInfo
from climseg.store.splits import split_by_time
from climseg.store.writer import write_store
from climseg.synthetic import make_atmosphere

CHANNELS = ["TMQ", "U850", "V850", "PSL"]


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real files, or a skip that says so."""
    folder = Path(os.environ.get("CLIMSEG_SHARED", Path(__file__).parents[2] / "shared"))
    if not (folder / "data" / "MANIFEST.md").is_file():
        pytest.skip("the real files are not here (CLIMSEG_SHARED or ../shared)")
    return folder / "data"


@pytest.fixture(scope="session")
def atmosphere() -> xr.Dataset:
    """Canonical fields and LABELS, 16 channels, 24 steps of 12 hours on 5 degrees; not to be changed."""
    times = pd.date_range("2001-08-01", periods=24, freq="12h")
    return make_atmosphere(times, np.linspace(-90, 90, 37), np.arange(0, 360, 5.0), seed=3)


@pytest.fixture(scope="session")
def write_small_store(atmosphere: xr.Dataset) -> Any:
    """A function that writes the small atmosphere into a store."""

    def write(output: Path, **options: Any) -> StoreInfo:
        splits = split_by_time(
            list(atmosphere["time"].to_index()), {"train": 0.6, "validation": 0.2, "test": 0.2}, gap_hours=13
        )
        arguments: dict[str, Any] = {"channels": CHANNELS, "splits": splits, "request": {}} | options
        fields = arguments.pop("fields", atmosphere.drop_vars(LABELS))
        return write_store(fields, atmosphere[LABELS], output, **arguments)

    return write


@pytest.fixture(scope="session")
def store(write_small_store: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of the small atmosphere; not to be changed."""
    folder: Path = tmp_path_factory.mktemp("store") / "small"
    write_small_store(folder)
    return folder


@pytest.fixture(scope="session")
def run_dir(store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a short training run on the small store: long enough for a checkpoint, too short for skill."""
    folder: Path = tmp_path_factory.mktemp("run") / "first"
    words = [f"data.store={store}", f"run_dir={folder}", "model=tiramisu_small", "trainer.max_epochs=2"]
    assert run(["train", *words]) == 0
    return folder


@pytest.fixture(scope="session")
def files(atmosphere: xr.Dataset, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A glob of CAM5-like files of the first four time steps, one file each."""
    folder: Path = tmp_path_factory.mktemp("files")
    for step in range(4):
        atmosphere.isel(time=[step]).to_netcdf(folder / f"step{step}.nc")
    return f"{folder}/*.nc"
