"""How long a classic netCDF file must be by its own header.

The netCDF library reads what a truncated classic file lacks as zeros, without an error; HDF5 notices by itself.
Layout: "NetCDF classic file format specification", Unidata: versions 1 (classic), 2 (64-bit offset), 5 (64-bit data).
"""

import math
import struct
from pathlib import Path
from typing import BinaryIO, Final

# nc_type -> bytes per value: byte, char, short, int, float, double, then the unsigned and 64-bit ones of version 5.
_SIZES: Final = {1: 1, 2: 1, 3: 2, 4: 4, 5: 4, 6: 8, 7: 1, 8: 2, 9: 4, 10: 8, 11: 8}


class _Header:
    """Reads the big-endian fields of a header one after another."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.version = file.read(4)[3]

    def integer(self, wide: bool) -> int:
        data = self.file.read(8 if wide else 4)
        value: int = struct.unpack(">Q" if wide else ">I", data)[0]
        return value

    def count(self) -> int:
        """A NON_NEG: eight bytes in version 5."""
        return self.integer(wide=self.version == 5)

    def list_length(self) -> int:
        """The length of a list, past its tag."""
        self.integer(wide=False)
        return self.count()

    def skip(self, size: int) -> None:
        """Skip bytes that are padded to a multiple of four."""
        self.file.seek(_padded(size), 1)

    def skip_attributes(self) -> None:
        for _ in range(self.list_length()):
            self.skip(self.count())
            kind = self.integer(wide=False)
            self.skip(self.count() * _SIZES[kind])


def expected_size(path: Path) -> int:
    """Bytes that a classic netCDF file needs to hold all values its header promises.

    Args:
        path: A file that begins with ``CDF``.

    Raises:
        ValueError: The header itself is cut short or broken.
    """
    try:
        with path.open("rb") as file:
            return _expected_size(_Header(file))
    except (struct.error, KeyError, IndexError) as error:
        raise ValueError("the header is cut short or broken") from error


def _expected_size(header: _Header) -> int:
    records = header.count()
    if records in (2**32 - 1, 2**64 - 1):  # "streaming": the number of records was never written
        records = 0
    dimensions = []
    for _ in range(header.list_length()):
        header.skip(header.count())
        dimensions.append(header.count())
    header.skip_attributes()

    ends = [0]  # of the variables without a record dimension
    record_variables = []  # (begin, size of one record)
    for _ in range(header.list_length()):
        header.skip(header.count())
        shape = [dimensions[header.count()] for _ in range(header.count())]
        header.skip_attributes()
        value_size = _SIZES[header.integer(wide=False)]
        header.count()  # vsize: redundant, and wrong for variables beyond 4 GiB
        begin = header.integer(wide=header.version != 1)
        if shape and shape[0] == 0:
            record_variables.append((begin, math.prod(shape[1:]) * value_size))
        else:
            ends.append(begin + math.prod(shape) * value_size)
    if records:
        # A record holds every record variable, each padded, except that a single one is not.
        sizes = [size for _, size in record_variables]
        stride = sizes[0] if len(sizes) == 1 else sum(_padded(size) for size in sizes)
        ends += [begin + (records - 1) * stride + size for begin, size in record_variables]
    return max(ends)


def _padded(size: int) -> int:
    return -4 * (-size // 4)
