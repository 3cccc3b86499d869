"""Nothing half-written under a final name: write beside it, then rename."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from climseg.errors import InputError


def partial_path(final: Path) -> Path:
    """Where something is written until it is complete: in the same folder, so that the rename is atomic."""
    return final.with_name(f".{final.name}.partial")


@contextmanager
def atomic_file(final: Path) -> Iterator[Path]:
    """Yield a temporary path that becomes ``final`` when the block ends well, and is removed when it does not.

    Raises:
        InputError: The folder is absent and cannot be made, or the file cannot be written.
    """
    check_writable(final)
    partial = partial_path(final)
    try:
        yield partial
        partial.replace(final)
    finally:
        partial.unlink(missing_ok=True)


def check_writable(final: Path) -> None:
    """Make the folder of ``final`` and see that a file can be made in it; do this before hours of work, not after.

    Raises:
        InputError: It cannot.
    """
    if final.is_dir():
        raise InputError(f"{final} is a folder; name a file to write.")
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        probe = partial_path(final)
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise InputError(f"{final}: cannot be written here ({error.strerror}); choose another output.") from error
