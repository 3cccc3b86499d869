"""Archives of several files, as the Climate Data Store sends them, often under a name that ends in .nc."""

import atexit
import os
import shutil
import tempfile
import zipfile
from functools import lru_cache
from pathlib import Path

from climseg.errors import InputError


@lru_cache(maxsize=256)
def unzip(path: str, modified_ns: int) -> tuple[tuple[str, str], ...]:
    """Unpack an archive into a temporary folder, which goes when the program ends (TMPDIR chooses the disk).

    Args:
        path: The archive.
        modified_ns: Its time stamp: an archive that was replaced is unpacked anew.

    Returns:
        For each member its unpacked path, and its name in messages.

    Raises:
        InputError: It is damaged or encrypted, holds no file, or there is no room for it.
    """
    folder = Path(tempfile.mkdtemp(prefix="climseg-unzipped-"))
    atexit.register(_remove, folder, os.getpid())
    try:
        with zipfile.ZipFile(path) as archive:
            members = [m for m in archive.infolist() if not m.is_dir() and not m.filename.startswith("__MACOSX/")]
            if not members:
                raise InputError(f"{path}: is a zip archive without any file in it.")
            if any(m.flag_bits & 1 for m in members):
                raise InputError(f"{path}: is encrypted; unzip it first.")
            needed, free = sum(m.file_size for m in members), shutil.disk_usage(folder).free
            if needed > free:
                raise InputError(
                    f"{path}: needs {needed:,} bytes unpacked, and {folder.parent} has {free:,} left; set TMPDIR to a "
                    "folder with more room, or unzip it yourself."
                )
            found = []
            for number, member in enumerate(members):
                # Named by number: a member's own path may lead anywhere.
                target = folder / f"{number:05d}{Path(member.filename).suffix[:10]}"
                with archive.open(member) as source, target.open("wb") as copy:
                    shutil.copyfileobj(source, copy)
                found.append((str(target), f"{path}:{member.filename}"))
            return tuple(found)
    except InputError:
        raise
    except Exception as error:  # zipfile raises many kinds for what is damaged, encrypted or unknown to it
        raise InputError(
            f"{path}: cannot be unpacked ({error}); the archive is damaged. Copy or download it again."
        ) from error


def _remove(folder: Path, owner: int) -> None:
    """Remove a folder at the end of the process that made it, not of one that was forked from it."""
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)
