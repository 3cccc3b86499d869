"""What was found in each time step, kept in a folder until all steps are known.

Beside an output ``masks.nc`` it is the folder ``.masks.nc.steps``:

    request.json            what the masks are made from, by which version; a run of another request begins anew
    00000/00000012.npz      the findings of time step 12

A step's file gets its name when it is complete, so that an interrupted run goes on with the steps that are not there.
"""

import json
import logging
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

import climseg
from climseg.atomic import partial_path
from climseg.errors import InputError
from climseg.labels.heuristic import Findings, Storm
from climseg.labels.step import Candidate
from climseg.unfinished import begin, is_left_by, sign

log = logging.getLogger(__name__)

_FOLDER_SIZE: Final = 1000  # steps


def spool_path(output: Path) -> Path:
    """Where the findings for an output lie."""
    return output.with_name(f".{output.name}.steps")


def open_spool(folder: Path, request: Mapping[str, Any]) -> set[int]:
    """Make the folder, or find what an interrupted run of the same request has done already.

    Args:
        folder: From :func:`spool_path`.
        request: What the masks are made from (JSON types).

    Returns:
        The positions of the time steps that are there.
    """
    # Another version may keep other things, and may find others: no mask is made by two.
    whole = {"climseg": climseg.__version__, **request}
    if is_left_by(folder, whole):
        done = {int(path.stem) for path in folder.glob("*/*.npz") if path.stem.isdigit()}
        if done:
            log.info("going on with %s: %d time steps are there", folder, len(done))
        return done
    begin(folder)
    sign(folder, whole)
    return set()


def write_findings(folder: Path, index: int, findings: Findings) -> None:
    """Keep what was found in one time step.

    Raises:
        OSError: The disk is full; what is there already stays of use.
    """
    path = _path(folder, index)
    path.parent.mkdir(exist_ok=True)
    masks = np.stack([findings.rivers, findings.untold, findings.missing])
    storms = [
        {"candidate": asdict(s.candidate), "radius": s.radius, "told": s.told, "cells": s.cells.size}
        for s in findings.storms
    ]
    words = json.dumps({"regions": findings.regions, "storms": storms})
    cells = [s.cells for s in findings.storms]
    partial = partial_path(path)
    try:
        with partial.open("wb") as file:
            np.savez_compressed(
                file,
                masks=np.packbits(masks),
                shape=np.array(findings.rivers.shape),
                cells=np.concatenate(cells) if cells else np.zeros(0, dtype=np.int64),
                words=np.frombuffer(words.encode(), dtype=np.uint8),
            )
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from error  # the system does not say where
    partial.replace(path)


def read_findings(folder: Path, index: int) -> Findings:
    """What was found in one time step.

    Raises:
        InputError: It cannot be read again.
    """
    with _opened(folder, index) as file:
        rows, columns = file["shape"].tolist()
        count = 3 * rows * columns
        masks: NDArray[Any] = np.unpackbits(file["masks"], count=count).reshape(3, rows, columns).astype(np.bool_)
        words = json.loads(file["words"].tobytes())
        storms = _storms(words["storms"], file["cells"])
    rivers, untold, missing = masks
    return Findings(rivers, untold, missing, words["regions"], storms)


def read_candidates(folder: Path, index: int) -> list[Candidate]:
    """The candidates of one time step alone.

    Raises:
        InputError: They cannot be read again.
    """
    with _opened(folder, index) as file:
        words = json.loads(file["words"].tobytes())
    return [_candidate(storm["candidate"]) for storm in words["storms"]]


@contextmanager
def _opened(folder: Path, index: int) -> Iterator[Any]:
    """A step's file; one that cannot be read (a disk that lost power) is removed, so that the step is done again."""
    path = _path(folder, index)
    try:
        with np.load(path) as file:
            yield file
    except (OSError, EOFError, ValueError, KeyError, BadZipFile, zlib.error) as error:
        path.unlink(missing_ok=True)
        raise InputError(
            f"{path}: what was found in time step {index} cannot be read again ({error}); start the same command once "
            "more, and that step alone is done anew."
        ) from error


def _path(folder: Path, index: int) -> Path:
    return folder / f"{index // _FOLDER_SIZE:05d}" / f"{index:08d}.npz"


def _storms(entries: list[dict[str, Any]], cells: NDArray[np.int64]) -> list[Storm]:
    ends = np.cumsum([entry["cells"] for entry in entries])
    pieces = np.split(cells, ends[:-1]) if entries else []
    return [
        Storm(_candidate(entry["candidate"]), piece, entry["radius"], entry["told"])
        for entry, piece in zip(entries, pieces, strict=True)
    ]


def _candidate(values: dict[str, Any]) -> Candidate:
    return Candidate(**(values | {"rejected_by": tuple(values["rejected_by"])}))
