"""From what a user names as input to existing files, and what each of them is by its first bytes."""

import glob
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from climseg.errors import InputError, near_matches

Input = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

_ZARR_MARKS: Final = (".zgroup", ".zmetadata", ".zattrs", "zarr.json")
_FORMATS: Final = {
    b"CDF\x01": "netcdf",
    b"CDF\x02": "netcdf",
    b"CDF\x05": "netcdf",
    b"\x89HDF\r\n\x1a\n": "netcdf",
    b"GRIB": "grib",
    b"PK\x03\x04": "zip",
    b"PK\x05\x06": "zip",  # without any file in it
}
# First bytes -> what the file is, and what to do with it.
_OTHER_FORMATS: Final = {
    b"\x0e\x03\x13\x01": "an HDF4 file, which climseg does not read; convert it to netCDF",
    b"\x1f\x8b": "compressed with gzip; decompress it with gunzip first",
    b"BZh": "compressed with bzip2; decompress it with bunzip2 first",
}
# A GRIB file may begin with the header of a bulletin.
_BULLETIN: Final = 200


def is_url(text: str) -> bool:
    """Whether an input names an object store, such as ``gs://bucket/name.zarr``."""
    return "://" in text


def expand_paths(input: Input) -> list[str]:
    """Turn a path, a pattern or a list of them into existing paths.

    Args:
        input: Relative paths start from the working directory; ``~`` is the home directory; ``*``, ``?``, ``[...]`` and
            ``**`` are expanded, each pattern in the order of names. Folders that a pattern matches are left out, but
            for Zarr stores. URLs stay as they are.

    Returns:
        Absolute paths and URLs, each once.

    Raises:
        InputError: Nothing matches, a file does not exist, or a folder is given.
    """
    items = [input] if isinstance(input, str | os.PathLike) else list(input)
    if not items:
        raise InputError("The input is an empty list; give at least one file.")
    paths = [path for item in items for path in _expand_one(os.fspath(item))]
    return list(dict.fromkeys(paths))


def file_format(path: str) -> str:
    """What a file is by its first bytes; its name does not count.

    Returns:
        ``netcdf`` (HDF5 too), ``grib``, ``zip`` or ``zarr``.

    Raises:
        InputError: It is something else, empty, or cannot be read.
    """
    if is_url(path) or _is_zarr(Path(path)):
        return "zarr"
    try:
        with Path(path).open("rb") as file:
            start = file.read(512)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}).") from error
    if not start:
        raise InputError(f"{path}: is empty (0 bytes); copy or download it again.")
    for first_bytes, name in _FORMATS.items():
        if start.startswith(first_bytes):
            return name
    for first_bytes, meaning in _OTHER_FORMATS.items():
        if start.startswith(first_bytes):
            raise InputError(f"{path}: is {meaning}.")
    if b"GRIB" in start[:_BULLETIN]:
        return "grib"
    text = start.decode("latin-1").strip()
    if text.lower().startswith(("<!doctype html", "<html")):
        raise InputError(f"{path}: is a web page, not data; the download went wrong (a login or an error page).")
    if all(byte >= 32 or byte in b"\t\r\n\f" for byte in start):
        raise InputError(
            f"{path}: is a text file that begins with {text[:60]!r}; expected netCDF, HDF5, GRIB, Zarr or "
            "a zip of them."
        )
    raise InputError(
        f"{path}: is no file of a known kind (its first bytes are {start[:8]!r}); expected netCDF, HDF5, GRIB, Zarr or "
        "a zip of them."
    )


def input_manifest(paths: Sequence[str | Path]) -> list[dict[str, Any]]:
    """Name, size (bytes) and modification time (ns) of every input file, so that a changed file is noticed.

    For a folder (Zarr) they are those of its metadata; a URL has its name alone.
    """
    return [_manifest_entry(str(path)) for path in paths]


def _manifest_entry(path: str) -> dict[str, Any]:
    if is_url(path):
        return {"path": path}
    file = Path(path).resolve()
    marked = next((file / mark for mark in _ZARR_MARKS if (file / mark).is_file()), file)
    status = marked.stat()
    return {"path": str(file), "size": status.st_size, "modified_ns": status.st_mtime_ns}


def _expand_one(item: str) -> list[str]:
    if not item.strip():
        raise InputError("The input holds an empty path; give a file or a pattern such as 'data/*.nc'.")
    if is_url(item):
        return [item]
    path = Path(item).expanduser().absolute()
    if path.is_dir() and not _is_zarr(path):
        raise InputError(f"{item} is a folder; give the files in it, for example '{item.rstrip('/')}/*.nc'.")
    if path.exists():
        return [str(path)]
    if glob.has_magic(item):
        pattern = str(Path(item).expanduser())  # not yet absolute: the working directory may hold a "[" itself
        found = [Path(p).absolute() for p in sorted(glob.glob(pattern, recursive=True))]  # noqa: PTH207
        files = [str(p) for p in found if not p.is_dir() or _is_zarr(p)]
        if not files:
            raise InputError(f"No file matches {item!r} (looked for {path}).")
        return files
    if not path.parent.is_dir():
        raise InputError(f"{item} does not exist, nor does its folder {path.parent}.")
    names = [p.name for p in path.parent.iterdir()]
    raise InputError(f"There is no file {path.name!r} in {path.parent}{near_matches(path.name, names) or '.'}")


def _is_zarr(path: Path) -> bool:
    return path.is_dir() and any((path / mark).exists() for mark in _ZARR_MARKS)
