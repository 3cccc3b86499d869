"""Whether the messages of a GRIB file hang together, which ecCodes takes for granted.

Where a section of a GRIB2 message has the length 0, ecCodes looks for its end forever. Layout: WMO Manual on Codes,
volume I.2, FM 92 GRIB, editions 1 and 2.
"""

import struct
from pathlib import Path
from typing import BinaryIO, Final

_START: Final = b"GRIB"
_BLOCK: Final = 2**16
# Of a message in edition 1: from here on its length is counted otherwise, and it is not skipped but searched.
_LARGE: Final = 0x800000


def check_sections(path: Path) -> None:
    """Refuse a GRIB2 message whose sections do not fill it.

    Raises:
        ValueError: There is one; where it begins is named. A message that the file cuts short is left to ecCodes.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        at = _next_message(file, 0)
        while at is not None:
            head = file.read(16)
            if len(head) < 16:
                return
            edition, length = head[7], int.from_bytes(head[4:7], "big")
            if edition == 2:
                (length,) = struct.unpack(">Q", head[8:])
                if at + length > size:
                    return
                _check_message(file, at, at + length)
            elif edition != 1 or length >= _LARGE:
                length = len(_START)
            at = _next_message(file, at + max(length, len(_START)))


def _check_message(file: BinaryIO, start: int, end: int) -> None:
    at = start + 16
    while at < end - 4:
        file.seek(at)
        (length,) = struct.unpack(">I", file.read(4))
        if length < 5:
            break
        at += length
    if at != end - 4:  # where the closing 7777 lies
        raise ValueError(f"the sections of the message at byte {start} do not fill it")


def _next_message(file: BinaryIO, start: int) -> int | None:
    """The position of the next message, where the file then stands."""
    overlap = len(_START) - 1
    while True:
        file.seek(start)
        block = file.read(_BLOCK)
        found = block.find(_START)
        if found >= 0:
            file.seek(start + found)
            return start + found
        if len(block) < _BLOCK:
            return None
        start += len(block) - overlap
