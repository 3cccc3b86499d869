"""All input files looked at: each by the reader of its format, many side by side."""

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from climseg import isolated
from climseg.errors import InputError
from climseg.sources import grib, netcdf, zarr_store
from climseg.sources.paths import file_format
from climseg.sources.stored import StoredFile, share_layouts
from climseg.sources.unzip import unzip

log = logging.getLogger(__name__)

# Files that one call of a helper process looks at.
_BATCH: Final = 64
# What lies beside data in archives.
_TEXTS: Final = (".txt", ".md", ".html", ".pdf", ".json", ".xml")
# Of the processor, for what takes milliseconds: HDF5 goes round in circles for some damaged headers.
_NETCDF_SECONDS: Final = 10.0


def scan_files(paths: Sequence[str], storage_options: Mapping[str, Any] | None = None) -> list[StoredFile]:
    """What the input files hold; values of coordinates alone are read.

    Args:
        paths: Existing paths and URLs, as :func:`climseg.sources.paths.expand_paths` returns them.
        storage_options: For URLs, passed on to fsspec.

    Returns:
        At least one part per file, in the order of the files, layouts shared.

    Raises:
        InputError: A file is none of the known kinds, damaged or truncated, by name.
    """
    named = [(path, path, file_format(path)) for path in paths]
    unpacked: list[tuple[str, str, str]] = []
    for path, origin, kind in named:
        if kind != "zip":
            unpacked.append((path, origin, kind))
            continue
        for member, name in unzip(path, Path(path).stat().st_mtime_ns):
            try:
                kind = file_format(member)
            except InputError as error:
                if Path(name).suffix.lower() in _TEXTS or Path(name).name.startswith("."):
                    log.info("%s is left aside", name)
                    continue
                raise InputError(str(error).replace(member, name)) from error
            if kind == "zip":
                raise InputError(f"{name}: is an archive within an archive; unzip it first.")
            unpacked.append((member, name, kind))
    stamps = {path: _stamp(path) for path, _, kind in unpacked if kind != "zarr"}
    scanned = _scan_isolated([(path, kind) for path, _, kind in unpacked if kind != "zarr"])
    parts: list[StoredFile] = []
    for path, origin, kind in unpacked:
        if kind == "zarr":
            parts.append(zarr_store.scan(path, dict(storage_options or {})))
            continue
        found = scanned[path]
        if isinstance(found, InputError):
            raise InputError(str(found).replace(path, origin))
        parts += [replace(file, origin=origin, stamp=stamps[path]) for file in found]
    return share_layouts(parts)


def read_stored(file: StoredFile, name: str, key: tuple[Any, ...]) -> Any:
    """Values of a part of one variable as they are stored, by the reader of the file's format.

    Raises:
        InputError: The file was damaged, removed, or changed since it was looked at.
    """
    if file.stamp is not None and Path(file.path).exists() and _stamp(file.path) != file.stamp:
        raise InputError(
            f"{file.origin}: was changed after it was opened, so that its values may mean something else; start again."
        )
    return {"netcdf": netcdf.read, "grib": grib.read, "zarr_store": zarr_store.read}[file.format](file, name, key)


def _stamp(path: str) -> tuple[int, int]:
    try:
        status = Path(path).stat()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}).") from error
    return status.st_size, status.st_mtime_ns


def _scan_isolated(files: list[tuple[str, str]]) -> dict[str, list[StoredFile] | InputError]:
    """The parts of each file, or why it cannot be read."""
    batches = [files[i : i + _BATCH] for i in range(0, len(files), _BATCH)]
    results: dict[str, list[StoredFile] | InputError] = {}
    processes = len(os.sched_getaffinity(0)) if len(batches) > 1 else 1
    for batch, answers in zip(batches, isolated.call_each(scan_batch, batches, processes), strict=True):
        if isinstance(answers, isolated.HelperDiedError):
            answers = [_damaged(*batch[0], answers)] if len(batch) == 1 else [_scan_alone(file) for file in batch]
        results |= {path: answer for (path, _), answer in zip(batch, answers, strict=True)}
    return results


def scan_batch(files: list[tuple[str, str]]) -> list[list[StoredFile] | InputError]:
    """What each file holds, or why it cannot be read; runs in a helper process."""
    answers: list[list[StoredFile] | InputError] = []
    for path, kind in files:
        try:
            if kind == "grib":
                answers.append(grib.scan(path))
            else:
                with isolated.time_limit(_NETCDF_SECONDS):
                    answers.append([netcdf.scan(path)])
        except InputError as error:
            answers.append(error)
        except OSError as error:
            answers.append(InputError(f"{path}: cannot be read ({error.strerror})."))
    parts = iter(share_layouts([part for answer in answers if not isinstance(answer, InputError) for part in answer]))
    return [a if isinstance(a, InputError) else [next(parts) for _ in a] for a in answers]


def _scan_alone(file: tuple[str, str]) -> list[StoredFile] | InputError:
    """One file of a batch in which the helper died."""
    try:
        answer: list[StoredFile] | InputError = isolated.call(scan_batch, [file])[0]
    except isolated.HelperDiedError as error:
        return _damaged(*file, error)
    return answer


def _damaged(path: str, kind: str, error: isolated.HelperDiedError) -> InputError:
    name = "GRIB" if kind == "grib" else "netCDF"
    return InputError(f"{path}: is damaged ({name}'s library ends at its header, {error}); copy or download it again.")
