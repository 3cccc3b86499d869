"""A node's share of a store, copied to its own disk.

    TARGET/
      shard.json       which time steps are here (``shard``); written first
      staged.jsonl     a line for each file that was copied and verified
      image/ mask/ ... the files, as in the store
      climseg.json     written last: without it the folder is no store yet

A file is copied to a name beside its own, read again, and gets its own name only if the SHA-256 of both readings is the
same. The line then notes its size and the times of its last change; a file that still has these counts as verified, so
that starting again is quick, and one that was changed or cut off since is copied anew. (What is read again right after
writing comes from memory as a rule: this finds errors on the way, not a disk that fails later.)

There is no Zarr metadata here: most chunks are absent, and Zarr would read them as zeros.
"""

import errno
import fcntl
import hashlib
import json
import logging
import os
import shutil
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

import numpy as np

from climseg.atomic import partial_path
from climseg.blocks import Progress
from climseg.errors import InputError
from climseg.store.info import INFO_FILE, SPLITS, StoreInfo, file_dtype, image_chunk, mask_chunk, packing_files
from climseg.store.shard import SHARD_FILE, Shard, read_shard, share_out

log = logging.getLogger(__name__)

JOURNAL: Final = "staged.jsonl"
_LOCK: Final = ".stage.lock"
_BLOCK: Final = 4 * 2**20


@dataclass(frozen=True)
class Staged:
    """What a run of :func:`stage_store` did.

    Attributes:
        shard: What is there now.
        left_out: Number of training samples that no node has.
        copied_bytes: Bytes that this run copied.
        seconds: How long that took, verification included.
    """

    shard: Shard
    left_out: int
    copied_bytes: int
    seconds: float


@dataclass(frozen=True)
class _File:
    """One file to copy: its path within the store, and how many bytes it must have."""

    name: str
    size: int


def stage_store(
    source: Path,
    target: Path,
    *,
    node: int = 0,
    nodes: int = 1,
    seed: int = 0,
    threads: int = 8,
    progress: Progress = lambda done, total: None,
) -> Staged:
    """Copy the share of one node; what is there and verified is not copied again.

    May be stopped at any time. Several processes may call it for the same target: the first copies, the others wait
    for it and find all there.

    Args:
        source: A whole store.
        target: A folder; files of others in it are left alone.
        node: This node's number, from 0.
        nodes: Number of nodes.
        seed: Of the choice of training samples; the same on all nodes.
        threads: Files that are copied at once.
        progress: Called with (files there, all files).

    Raises:
        InputError: The source is no whole store, or lacks a file; the target holds something else, is too small, or
            does not keep what is written.
    """
    _check(source, target, node, nodes, seed, threads)
    info = StoreInfo.read(source)
    description = (source / INFO_FILE).read_bytes()
    shard = Shard(node, nodes, seed, share_out(info, node, nodes, seed), hashlib.sha256(description).hexdigest())
    files = _files(info, shard)
    target.mkdir(parents=True, exist_ok=True)
    with _alone(target):
        _begin(target, shard)
        there = _verified(target)
        missing = [file for file in files if file.name not in there]
        _check_space(target, sum(file.size for file in missing))
        start = time.perf_counter()
        _copy_all(source, target, missing, threads, lambda done: progress(len(files) - len(missing) + done, len(files)))
        seconds = time.perf_counter() - start
        if missing or not (target / INFO_FILE).is_file():
            _write(target / INFO_FILE, description)
    left_out = len(info.indices("train")) - nodes * len(shard.indices["train"])
    return Staged(shard, left_out, sum(file.size for file in missing), seconds)


def _check(source: Path, target: Path, node: int, nodes: int, seed: int, threads: int) -> None:
    if not 0 <= node < nodes:
        raise InputError(f"node={node}, nodes={nodes}: expected a node from 0 on that is less than nodes.")
    if seed < 0:
        raise InputError(f"seed={seed}: expected 0 or more.")
    if threads < 1:
        raise InputError(f"threads={threads}: expected at least 1.")
    if target.resolve() == source.resolve():
        raise InputError(f"target={target} is the store itself; name another folder.")
    if source.resolve() in target.resolve().parents:
        raise InputError(f"target={target} lies within the store {source}; name a folder outside of it.")
    if target.exists() and not target.is_dir():
        raise InputError(f"target={target} is a file; name a folder.")
    if read_shard(source) is not None:
        raise InputError(f"{source} is itself a share of one node; give the whole store.")


def _files(info: StoreInfo, shard: Shard) -> list[_File]:
    """The files of a share; images first, because a short one at the end keeps few threads waiting."""
    steps = sorted(i for split in SPLITS for i in shard.indices[split])
    cells = len(info.lat) * len(info.lon)
    image = len(info.channels) * cells * file_dtype(info.dtype).itemsize
    here = Path()
    packed = [] if info.dtype == "float32" else [str(path) for path in packing_files(here)]
    table = len(info.times) * len(info.channels) * np.dtype(np.float32).itemsize
    return [
        *(_File(name, table) for name in packed),
        *(_File(str(image_chunk(here, i)), image) for i in steps),
        *(_File(str(mask_chunk(here, i)), cells) for i in steps),
    ]


@contextmanager
def _alone(target: Path) -> Iterator[None]:
    """Wait for other processes that stage into the same folder; one that was killed holds nobody up."""
    with (target / _LOCK).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log.info("another process is staging into %s; waiting for it", target)
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError:
            pass  # some network file systems have no locks; there two processes are not noticed
        yield


def _begin(target: Path, shard: Shard) -> None:
    """See that what is in the target belongs to this share; what an unfinished run of another left goes."""
    signed = (target / SHARD_FILE).is_file()
    if signed and read_shard(target) == shard:
        return
    if (target / INFO_FILE).exists():
        raise InputError(f"{target} holds another store or another share of one; name another target or remove it.")
    if signed:
        log.info("%s is from another request and is begun anew", target)
        for name in ("image", "mask", *(path.parts[0] for path in packing_files(Path()))):
            shutil.rmtree(target / name, ignore_errors=True)
        (target / JOURNAL).unlink(missing_ok=True)
    _write(target / SHARD_FILE, shard.as_json())


def _verified(target: Path) -> set[str]:
    """Names of the files that were verified and have not changed since."""
    noted: dict[str, list[int]] = {}
    journal = target / JOURNAL
    for line in journal.read_text(encoding="utf-8").splitlines() if journal.exists() else []:
        try:
            entry = json.loads(line)
        except json.JSONDecodeError:  # a line that a kill cut off
            continue
        noted[entry["file"]] = entry["stamp"]
    return {name for name, stamp in noted.items() if _stamp(target / name) == stamp}


def _stamp(path: Path) -> list[int] | None:
    """What changes with every change of a file. The last of them cannot be set by hand, as the one before can."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return [status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]


def _check_space(target: Path, needed: int) -> None:
    free = shutil.disk_usage(target).free
    if needed > free:
        raise InputError(
            f"{target}: {needed / 1e9:.3g} GB are to be copied and {free / 1e9:.3g} GB are free; use more nodes, a "
            "store with store.dtype=uint16, or another target."
        )


def _copy_all(
    source: Path, target: Path, files: Sequence[_File], threads: int, progress: Callable[[int], None]
) -> None:
    """Copy in threads, and note each file that is there."""
    progress(0)
    with _open_journal(target) as journal, closing(_results(source, target, files, threads)) as results:
        for done, (file, sha256) in enumerate(results, start=1):
            entry = {"file": file.name, "sha256": sha256, "stamp": _stamp(target / file.name)}
            journal.write(json.dumps(entry) + "\n")
            journal.flush()
            progress(done)


def _open_journal(target: Path) -> IO[str]:
    """The journal, at the beginning of a line."""
    journal = (target / JOURNAL).open("a", encoding="utf-8")
    if journal.tell():
        journal.write("\n")
    return journal


def _results(source: Path, target: Path, files: Sequence[_File], threads: int) -> Generator[tuple[_File, str]]:
    """Each file with its SHA-256 when it is there; after an error, or when the caller leaves, no further one begins."""
    with ThreadPoolExecutor(threads, thread_name_prefix="climseg-stage") as pool:
        try:
            yield from zip(files, pool.map(lambda file: _copy(source, target, file), files), strict=True)
        finally:
            pool.shutdown(cancel_futures=True)


def _copy(source: Path, target: Path, file: _File) -> str:
    """Copy and verify one file; returns its SHA-256."""
    final = target / file.name
    partial = partial_path(final)
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        read = _copy_blocks(source / file.name, partial, file.size)
        if _sha256(partial) != read:
            raise InputError(
                f"{final}: reads otherwise than it was written; the disk or the memory of this node fails."
            )
        partial.replace(final)
    except OSError as error:
        partial.unlink(missing_ok=True)
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise InputError(
            f"{final}: could not be written ({error.strerror}); use more nodes or another target."
        ) from error
    except InputError:
        partial.unlink(missing_ok=True)
        raise
    return read


def _copy_blocks(source: Path, partial: Path, size: int) -> str:
    """Copy a file of this many bytes; returns the SHA-256 of what was read."""
    sha256 = hashlib.sha256()
    try:
        opened = source.open("rb", buffering=0)
    except OSError as error:
        raise InputError(f"{source}: cannot be read ({error.strerror}); make the store anew.") from error
    with opened as reading, partial.open("wb", buffering=0) as writing:
        found = os.fstat(reading.fileno()).st_size
        if found != size:
            raise InputError(f"{source}: holds {found} bytes instead of {size}; make the store anew.")
        while block := reading.read(_BLOCK):
            sha256.update(block)
            rest = memoryview(block)
            while rest:
                rest = rest[writing.write(rest) :]
    return sha256.hexdigest()


def _sha256(path: Path) -> str:
    with path.open("rb", buffering=0) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write(final: Path, content: bytes) -> None:
    partial = partial_path(final)
    partial.write_bytes(content)
    partial.replace(final)
