import logging
from pathlib import Path

import pytest

from climseg.cli.main import run
from climseg.store.info import StoreInfo
from climseg.store.shard import read_shard

NAMES = ("SLURM_NODEID", "SLURM_NNODES", "GROUP_RANK", "GROUP_WORLD_SIZE")


@pytest.mark.parametrize(
    ("variables", "words", "expected"),
    [
        ({}, [], (0, 1)),
        ({"SLURM_NODEID": "1", "SLURM_NNODES": "2"}, [], (1, 2)),
        ({"GROUP_RANK": "2", "GROUP_WORLD_SIZE": "3"}, [], (2, 3)),
        ({"SLURM_NODEID": "1", "SLURM_NNODES": "2"}, ["node=0", "nodes=3"], (0, 3)),
    ],
)
def test_the_node_is_that_of_the_keys_or_of_the_scheduler(
    variables: dict[str, str],
    words: list[str],
    expected: tuple[int, int],
    store: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert run(["stage", f"data.store={store}", f"target={tmp_path / 'local'}", *words]) == 0
    shard = read_shard(tmp_path / "local")
    assert shard is not None
    assert (shard.node, shard.nodes) == expected


def test_it_says_what_is_there_how_fast_it_came_and_what_was_left_out(
    store: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    train = len(StoreInfo.read(store).indices("train"))
    nodes = next(n for n in range(2, train) if train % n)
    words = ["stage", f"data.store={store}", f"target={tmp_path / 'local'}", "node=0", f"nodes={nodes}"]
    with caplog.at_level(logging.INFO, logger="climseg"):
        assert run(words) == 0
        assert f"{train % nodes} training samples are left out" in caplog.text
        assert f"node 0 of {nodes}: {train // nodes} train" in caplog.text
        assert "GB/s" in caplog.text
        caplog.clear()
        assert run(words) == 0
        assert "all there and verified already" in caplog.text


def test_a_network_trains_from_a_staged_store_on_as_many_nodes_as_it_was_staged_for(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for nodes, code in ((1, 0), (2, 2)):
        folder = tmp_path / str(nodes)
        assert run(["stage", f"data.store={store}", f"target={folder}", "node=0", f"nodes={nodes}"]) == 0
        words = [f"data.store={folder}", f"run_dir={folder / 'run'}", "model=tiramisu_small", "trainer.max_epochs=1"]
        assert run(["train", *words]) == code
    assert "holds the share of one of 2 nodes, but the training runs on 1" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["node=0"], ["nodes=2"], ["node=a", "nodes=b"]])
def test_half_a_number_of_a_node_is_refused(
    words: list[str], store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["stage", f"data.store={store}", f"target={tmp_path / 'local'}", *words]) == 2
    assert "node" in capsys.readouterr().err


def test_prepare_takes_a_type_of_store(files: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["splits.train=1", "splits.validation=0", "splits.test=0", "channels=[TMQ,PSL]", f"input={files}"]
    assert run(["prepare", *words, f"output={tmp_path / 'store'}", "store.dtype=float16", "dry_run=true"]) == 0
    assert "images in float16" in " ".join(capsys.readouterr().out.split())
    for _ in range(2):  # the second time it is complete
        assert run(["prepare", *words, f"output={tmp_path / 'store'}", "store.dtype=float16"]) == 0
    assert StoreInfo.read(tmp_path / "store").dtype == "float16"
    assert run(["prepare", *words, f"output={tmp_path / 'other'}", "store.dtype=float12"]) == 2
    assert "did you mean" in capsys.readouterr().err


def test_a_benchmark_of_input_writes_its_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["grid=[19,36]", "steps=2", "repeats=1", "input.workers=[0,1]", "input.passes=1"]
    assert run(["benchmark", "what=input", *words]) == 0
    said = capsys.readouterr().out
    for name in ("np.fromfile", "zarr", "netCDF", "float32", "float16", "uint16", '"ratio_to_fromfile"'):
        assert name in said
    assert run(["benchmark", "what=input", "input.batch_size=0"]) == 2
    assert "input.batch_size=0: expected at least 1" in capsys.readouterr().err
