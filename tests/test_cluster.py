import filecmp
import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import xarray as xr
from distributed import LocalCluster

from climseg import blocks
from climseg.atomic import partial_path
from climseg.channels import LABELS
from climseg.cli.labelling import heuristic
from climseg.cluster import ClusterError, address, local, slurm
from climseg.errors import InputError
from climseg.labels.run import find, write
from climseg.labels.spool import spool_path
from climseg.masks import open_masks


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """The address of a scheduler with two workers, as somebody else may have started it."""
    with LocalCluster(
        n_workers=2, threads_per_worker=1, scheduler_kwargs={"dashboard": False, "dashboard_address": "127.0.0.1:0"}
    ) as cluster:
        yield cluster.scheduler_address


@pytest.fixture
def six_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of four steps of the small atmosphere."""
    monkeypatch.setattr(blocks, "_WORTH_A_TASK", 4 * 4 * 4 * 37 * 72)


def files_of(folder: Path) -> list[Path]:
    return sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())


def assert_equal_stores(one: Path, other: Path) -> None:
    assert files_of(one) == files_of(other)
    assert filecmp.cmpfiles(one, other, files_of(one), shallow=False)[1:] == ([], [])


@pytest.mark.usefixtures("six_blocks")
def test_stores_from_one_process_from_two_and_from_a_cluster_are_equal(
    write_small_store: Any, store: Path, atmosphere: xr.Dataset, scheduler: str, tmp_path: Path
) -> None:
    fields = atmosphere.drop_vars(LABELS).chunk(time=2)
    for name, cluster in {
        "one": partial(local, 1),
        "two": partial(local, 2),
        "cluster": partial(address, scheduler),
    }.items():
        steps: list[int] = []
        write_small_store(
            tmp_path / name,
            fields=fields,
            cluster=cluster,
            progress=lambda done, total, steps=steps: steps.append(done),
        )
        assert steps == [0, 4, 8, 12, 16, 20, 24]
        assert_equal_stores(tmp_path / name, store)


@pytest.mark.usefixtures("six_blocks")
def test_a_mistake_in_the_files_reaches_the_user_from_a_worker(
    write_small_store: Any, atmosphere: xr.Dataset, scheduler: str, tmp_path: Path
) -> None:
    fields = atmosphere.drop_vars(LABELS).copy(deep=True)
    fields["V850"][5, 3, 4] = np.nan
    with pytest.raises(InputError, match="V850 has 1 missing or infinite of 2664 values at 2001-08-03T12:00:00"):
        write_small_store(tmp_path / "store", fields=fields.chunk(time=2), cluster=partial(address, scheduler))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("six_blocks")
def test_a_heuristic_looks_at_the_steps_in_the_workers(atmosphere: xr.Dataset, scheduler: str, tmp_path: Path) -> None:
    how = heuristic("kurth2018", "labels.cyclones.candidates.min_vorticity=2e-5")
    fields, output = atmosphere[list(how.needs.channels)], tmp_path / "masks.nc"
    folder = spool_path(output)
    find(how, fields.chunk(time=3), folder, request={}, cluster=partial(address, scheduler))
    write(how, fields, folder, output, definition="", attributes={}, command="", tables={})
    with open_masks(output) as masks:
        np.testing.assert_array_equal(masks[LABELS], how(fields))
        assert (masks[LABELS] > 0).any()


@pytest.mark.usefixtures("six_blocks")
def test_a_worker_that_dies_ends_in_a_sentence_and_what_is_done_is_kept(
    write_small_store: Any, store: Path, atmosphere: xr.Dataset, tmp_path: Path
) -> None:
    driver = os.getpid()

    def killed_by_the_system(values: np.ndarray, block_info: Any = None) -> np.ndarray:
        if os.getpid() != driver and block_info[0]["chunk-location"][0] >= 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return values

    fields = atmosphere.drop_vars(LABELS).chunk(time=4)
    fields["PSL"] = fields["PSL"].copy(
        data=da.map_blocks(killed_by_the_system, fields["PSL"].data, dtype=np.float32, meta=np.empty((0, 0, 0), "f4"))
    )
    with pytest.raises(ClusterError, match=r"A worker process died.*cluster\.workers=1\."):
        write_small_store(tmp_path / "store", fields=fields, cluster=partial(local, 2))
    assert len((partial_path(tmp_path / "store") / "progress.jsonl").read_text().splitlines()) >= 4
    write_small_store(tmp_path / "store", fields=fields)
    assert_equal_stores(tmp_path / "store", store)


@pytest.mark.parametrize(
    ("cluster", "sentence"),
    [
        (partial(local, -1), r"cluster\.workers=-1: expected 0 or more"),
        (partial(address, "10.0.0.1"), r"cluster\.address=10\.0\.0\.1: no dask scheduler with a worker answers there"),
        (
            partial(slurm, jobs=1, cores=2, memory="4GB", walltime="00:10:00"),
            r"Slurm refuses the job \(invalid account\); set cluster\.account",
        ),
    ],
)
def test_a_cluster_that_is_not_there_is_refused_with_the_mend(
    cluster: Any,
    sentence: str,
    write_small_store: Any,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    commands = tmp_path_factory.mktemp("commands")
    (commands / "sbatch").write_text("#!/bin/sh\necho invalid account >&2\nexit 1\n")
    (commands / "sbatch").chmod(0o755)
    monkeypatch.setenv("PATH", str(commands), prepend=os.pathsep)
    monkeypatch.setenv("HOME", str(commands))
    with pytest.raises(ClusterError, match=sentence):
        write_small_store(tmp_path / "store", cluster=cluster)
    assert list(tmp_path.iterdir()) == []
