import errno
import json
import multiprocessing
import os
import signal
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch

from climseg.errors import InputError
from climseg.samples.dataset import StoreSamples
from climseg.store import stage
from climseg.store.info import StoreInfo
from climseg.store.shard import read_shard, share_out
from climseg.store.stage import stage_store

SPLITS = ("train", "validation", "test")


def spy_on_copies(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A list that fills with the names of the files that are copied."""
    copied: list[str] = []
    original = stage._copy
    monkeypatch.setattr(stage, "_copy", lambda s, t, file: (copied.append(file.name), original(s, t, file))[1])
    return copied


def test_training_samples_are_equally_many_and_on_one_node_each(store: Path) -> None:
    info = StoreInfo.read(store)
    train = info.indices("train")
    for nodes in (1, 2, 3, 5):
        shares = [share_out(info, node, nodes, seed=4)["train"] for node in range(nodes)]
        assert {len(share) for share in shares} == {len(train) // nodes}
        together = [i for share in shares for i in share]
        assert len(set(together)) == len(together)
        assert set(together) <= set(train)


def test_every_other_sample_is_on_exactly_one_node(store: Path) -> None:
    info = StoreInfo.read(store)
    for split in ("validation", "test"):
        shares = [share_out(info, node, 3, seed=4)[split] for node in range(3)]
        assert sorted(i for share in shares for i in share) == info.indices(split)
        assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_the_choice_depends_on_the_seed_alone(store: Path) -> None:
    info = StoreInfo.read(store)
    first, again, other = (share_out(info, 1, 2, seed)["train"] for seed in (1, 1, 2))
    assert first == again != other


def test_one_node_has_the_whole_store(store: Path, tmp_path: Path) -> None:
    staged = stage_store(store, tmp_path / "local")
    assert staged.left_out == 0
    for split in SPLITS:
        whole, local = StoreSamples(store, split), StoreSamples(tmp_path / "local", split)
        assert local.indices == whole.indices
        assert all(torch.equal(a["image"], b["image"]) for a, b in zip(whole, local, strict=False))


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_share_is_read_as_a_store_and_holds_nothing_of_other_nodes(
    dtype: Any, write_small_store: Any, tmp_path: Path
) -> None:
    info = write_small_store(tmp_path / "store", dtype=dtype)
    staged = stage_store(tmp_path / "store", tmp_path / "local", node=1, nodes=3, seed=7)
    assert read_shard(tmp_path / "local") == staged.shard
    assert StoreInfo.read(tmp_path / "local") == info
    assert staged.left_out == len(info.indices("train")) % 3
    here = sorted(i for indices in staged.shard.indices.values() for i in indices)
    assert sorted(int(p.name) for p in (tmp_path / "local/image/c").iterdir()) == here
    assert sorted(int(p.name) for p in (tmp_path / "local/mask/c").iterdir()) == here
    whole, local = StoreSamples(tmp_path / "store", "train"), StoreSamples(tmp_path / "local", "train")
    assert local.indices == staged.shard.indices["train"]
    for position, index in enumerate(local.indices):
        sample, same = local[position], whole[whole.indices.index(index)]
        assert sample["index"] == index
        assert torch.equal(sample["image"], same["image"])
        assert torch.equal(sample["mask"], same["mask"])


def test_a_second_run_copies_nothing(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = stage_store(store, tmp_path / "local")
    copied = spy_on_copies(monkeypatch)
    second = stage_store(store, tmp_path / "local")
    assert copied == []
    assert (first.copied_bytes, second.copied_bytes) == (24 * 37 * 72 * 17 - _gap_bytes(store), 0)


def _gap_bytes(store: Path) -> int:
    return StoreInfo.read(store).splits.count("gap") * 37 * 72 * 17


@pytest.mark.parametrize("damage", ["one bit, with the old time stamp", "cut off", "removed"])
def test_a_file_that_was_damaged_is_copied_again_and_no_other(
    damage: str, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    staged = stage_store(store, tmp_path / "local")
    index = staged.shard.indices["train"][2]
    name = f"image/c/{index}/0/0/0"
    file, right = tmp_path / "local" / name, (store / name).read_bytes()
    before = file.stat()
    if damage == "removed":
        file.unlink()
    else:
        file.write_bytes(right[:-1] + (bytes([right[-1] ^ 1]) if damage.startswith("one") else b""))
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    copied = spy_on_copies(monkeypatch)
    stage_store(store, tmp_path / "local")
    assert copied == [name]
    assert file.read_bytes() == right


def test_a_disk_that_does_not_keep_what_is_written_is_found(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = stage._copy_blocks

    def lose_a_bit(source: Path, partial: Path, size: int) -> str:
        sha256 = original(source, partial, size)
        content = partial.read_bytes()
        partial.write_bytes(bytes([content[0] ^ 4]) + content[1:])
        return sha256

    monkeypatch.setattr(stage, "_copy_blocks", lose_a_bit)
    with pytest.raises(InputError, match="reads otherwise than it was written"):
        stage_store(store, tmp_path / "local")
    assert not any(p.is_file() for p in (tmp_path / "local/image").rglob("*"))
    with pytest.raises(InputError, match="not a complete climseg store"):
        StoreInfo.read(tmp_path / "local")


def test_an_interrupted_run_goes_on_where_it_was(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop_after_five(done: int, total: int) -> None:
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stage_store(store, tmp_path / "local", threads=1, progress=stop_after_five)
    with pytest.raises(InputError, match="not a complete climseg store"):
        StoreSamples(tmp_path / "local", "train")
    journal = tmp_path / "local/staged.jsonl"
    noted = len(journal.read_text().split())
    with journal.open("a") as file:
        file.write('{"file": "image/c/0/0')  # what a kill leaves
    copied = spy_on_copies(monkeypatch)
    staged = stage_store(store, tmp_path / "local")
    everything = 2 * sum(map(len, staged.shard.indices.values()))
    assert 0 < len(copied) <= everything - 5
    assert noted > 0
    copied.clear()
    stage_store(store, tmp_path / "local")
    assert copied == []


def _stage_slowly(store: Path, target: Path) -> None:
    original = stage._copy

    def slow(*arguments: Any) -> str:
        time.sleep(0.05)
        return original(*arguments)

    stage._copy = slow
    stage_store(store, target, threads=2)


def test_a_killed_run_goes_on_and_holds_nobody_up(store: Path, tmp_path: Path) -> None:
    target = tmp_path / "local"
    process = multiprocessing.get_context("fork").Process(target=_stage_slowly, args=(store, target))
    process.start()
    journal = target / "staged.jsonl"
    deadline = time.monotonic() + 20
    while not (journal.exists() and journal.read_text().count("\n") >= 3) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert not (target / "climseg.json").exists()
    staged = stage_store(store, target)
    whole = sum(len(indices) for indices in staged.shard.indices.values()) * 37 * 72 * 17
    assert 0 < staged.copied_bytes < whole
    assert len(StoreSamples(target, "train")) == len(StoreSamples(store, "train"))


def test_of_several_processes_one_copies_and_the_others_wait(store: Path, tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_stage_slowly, args=(store, tmp_path / "local")) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]
    lines = (tmp_path / "local/staged.jsonl").read_text().split("\n")
    names = [json.loads(line)["file"] for line in lines if line]
    assert len(names) == len(set(names))  # each was copied once


def test_too_small_a_disk_is_refused_before_anything_is_copied(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = NamedTuple("Usage", [("free", int)])(1000)
    monkeypatch.setattr(stage.shutil, "disk_usage", lambda path: free)
    copied = spy_on_copies(monkeypatch)
    with pytest.raises(InputError, match=r"GB are to be copied and 1e-06 GB are free"):
        stage_store(store, tmp_path / "local")
    assert copied == []


def test_a_disk_that_fills_up_ends_with_a_sentence_and_is_gone_on_with(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, calls = stage._copy_blocks, []

    def full(source: Path, partial: Path, size: int) -> str:
        calls.append(source)
        if len(calls) > 4:
            partial.write_bytes(b"the beginning")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return original(source, partial, size)

    monkeypatch.setattr(stage, "_copy_blocks", full)
    with pytest.raises(InputError, match=r"could not be written \(No space left on device\)"):
        stage_store(store, tmp_path / "local", threads=1)
    assert not list((tmp_path / "local").rglob("*.partial"))
    monkeypatch.setattr(stage, "_copy_blocks", original)
    copied = spy_on_copies(monkeypatch)
    stage_store(store, tmp_path / "local")
    assert str(calls[0].relative_to(store)) not in copied


def test_a_damaged_store_is_refused_by_the_file(write_small_store: Any, tmp_path: Path) -> None:
    write_small_store(tmp_path / "store")
    chunk = tmp_path / "store/image/c/0/0/0/0"
    chunk.write_bytes(chunk.read_bytes()[:-4])
    with pytest.raises(InputError, match="image/c/0/0/0/0: holds 42620 bytes instead of 42624"):
        stage_store(tmp_path / "store", tmp_path / "local")
    chunk.unlink()
    with pytest.raises(InputError, match="image/c/0/0/0/0: cannot be read"):
        stage_store(tmp_path / "store", tmp_path / "local")


def test_what_does_not_fit_is_refused(store: Path, tmp_path: Path) -> None:
    stage_store(store, tmp_path / "local", node=0, nodes=2)
    with pytest.raises(InputError, match="holds another store or another share"):
        stage_store(store, tmp_path / "local", node=1, nodes=2)
    with pytest.raises(InputError, match="is itself a share"):
        stage_store(tmp_path / "local", tmp_path / "further")
    with pytest.raises(InputError, match="is the store itself"):
        stage_store(store, store)
    with pytest.raises(InputError, match="lies within the store"):
        stage_store(store, store / "image" / "mine")
    with pytest.raises(InputError, match="seed=-1: expected 0 or more"):
        stage_store(store, tmp_path / "other", seed=-1)
    with pytest.raises(InputError, match="expected a node from 0 on that is less than nodes"):
        stage_store(store, tmp_path / "other", node=2, nodes=2)
    with pytest.raises(InputError, match="use as many nodes at most"):
        stage_store(store, tmp_path / "other", node=0, nodes=99)


def test_an_unfinished_share_of_another_seed_is_begun_anew(store: Path, tmp_path: Path) -> None:
    def stop(done: int, total: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stage_store(store, tmp_path / "local", nodes=2, seed=1, progress=stop)
    staged = stage_store(store, tmp_path / "local", nodes=2, seed=2)
    here = sorted(i for indices in staged.shard.indices.values() for i in indices)
    assert sorted(int(p.name) for p in (tmp_path / "local/image/c").iterdir()) == here


def test_files_of_others_in_the_target_are_left_alone(store: Path, tmp_path: Path) -> None:
    (tmp_path / "scratch").mkdir()
    (tmp_path / "scratch/notes.txt").write_text("mine")
    stage_store(store, tmp_path / "scratch")
    assert (tmp_path / "scratch/notes.txt").read_text() == "mine"


def test_a_node_without_a_validation_sample_has_none(store: Path, tmp_path: Path) -> None:
    count = len(StoreInfo.read(store).indices("validation"))
    nodes = count + 1
    stage_store(store, tmp_path / "local", node=count, nodes=nodes)
    assert len(StoreSamples(tmp_path / "local", "validation")) == 0


def test_a_damaged_description_of_a_share_is_refused(store: Path, tmp_path: Path) -> None:
    stage_store(store, tmp_path / "local")
    (tmp_path / "local/shard.json").write_text("{")
    with pytest.raises(InputError, match="not the description of a shard"):
        StoreSamples(tmp_path / "local", "train")
