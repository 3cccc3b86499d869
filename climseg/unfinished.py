"""Folders of unfinished work: an interrupted run leaves one, and a run of the same request goes on with it.

``request.json`` in the folder says what it is made from (input files and options, JSON types). Another input file, size
or time stamp, or another option makes another request.
"""

import hashlib
import json
import logging
import shutil
from pathlib import Path
from typing import Any, Final

log = logging.getLogger(__name__)

REQUEST_FILE: Final = "request.json"
# Attribute of a netCDF file that is made on the way to something else: the mark of the request that it belongs to.
MARK: Final = "request_sha256"


def is_left_by(folder: Path, request: Any) -> bool:
    """Whether a folder is there that was signed with this request."""
    try:
        left = json.loads((folder / REQUEST_FILE).read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError):  # absent, or broken
        return False
    return bool(left == json.loads(json.dumps(request)))


def begin(folder: Path) -> None:
    """Make the folder, empty; what another request left there goes."""
    if folder.exists():
        log.info("%s is from another request and is begun anew", folder)
        shutil.rmtree(folder)
    folder.mkdir()


def sign(folder: Path, request: Any) -> None:
    """Say what a folder is made from; do this last, so that a signed folder is always whole."""
    (folder / REQUEST_FILE).write_text(json.dumps(request), encoding="utf-8")


def request_mark(request: Any) -> str:
    """The SHA-256 of a request, for :data:`MARK`."""
    return hashlib.sha256(json.dumps(request).encode()).hexdigest()
