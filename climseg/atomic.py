"""Nothing half-written under a final name, and one writer at a time: write beside it, then rename."""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from climseg.errors import InputError


def partial_path(final: Path) -> Path:
    """Where something is written until it is complete: in the same folder, so that the rename is atomic."""
    return final.with_name(f".{final.name}.partial")


@contextmanager
def sole_writer(final: Path) -> Iterator[None]:
    """Keep other processes from writing the same output within the block; a killed process holds nobody up.

    Raises:
        InputError: Another process is writing it, or the folder cannot be made or written.
    """
    _check_folder(final)
    lock = final.with_name(f".{final.name}.lock")
    with _locked(lock, final) as file:
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)
            _held.discard(file)


# Locks of this process. A fork, such as a loader's worker, lets go of them at once: it would keep them for some seconds
# when its parent is killed.
_held: set[IO[str]] = set()


def _let_go() -> None:
    for file in _held:
        file.close()
    _held.clear()


os.register_at_fork(after_in_child=_let_go)


def _locked(lock: Path, final: Path) -> IO[str]:
    """The opened lock file, held by this process."""
    while True:
        file = lock.open("w")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            # Some network file systems have no locks; there two writers are not noticed.
            if error.errno in (errno.EAGAIN, errno.EACCES):
                file.close()
                raise InputError(f"{final} is being written by another process; wait for it, or stop it.") from error
        if lock.exists() and os.path.samestat(lock.stat(), os.fstat(file.fileno())):
            _held.add(file)
            return file
        file.close()  # the writer before us removed the file between our opening and locking it


@contextmanager
def atomic_file(final: Path) -> Iterator[Path]:
    """Yield a temporary path that becomes ``final`` when the block ends well, and is removed when it does not.

    Raises:
        InputError: The folder is absent and cannot be made, the file cannot be written, or another process writes it.
    """
    _check_is_no_folder(final)
    partial = partial_path(final)
    with sole_writer(final):
        try:
            yield partial
            partial.replace(final)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise InputError(f"{final}: could not be written ({error.strerror}).") from error
        finally:
            partial.unlink(missing_ok=True)


def check_writable(final: Path) -> None:
    """Make the folder of ``final`` and see that a file can be made in it; do this before hours of work, not after.

    Raises:
        InputError: It cannot.
    """
    _check_is_no_folder(final)
    _check_folder(final)


def _check_is_no_folder(final: Path) -> None:
    if final.is_dir():
        raise InputError(f"{final} is a folder; name a file to write.")


def _check_folder(final: Path) -> None:
    probe = final.with_name(f".{final.name}.{os.getpid()}.probe")
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise InputError(f"{final}: cannot be written here ({error.strerror}); choose another output.") from error
