"""The files of an input: how many, how large, of which format."""

from collections import Counter
from pathlib import Path

from climseg.inspection.report import FilesReport
from climseg.sources.open import Survey
from climseg.sources.paths import is_url
from climseg.sources.stored import FORMATS


def describe_files(survey: Survey) -> FilesReport:
    """Number, size and formats of the files of an input."""
    formats = {file.origin: FORMATS[file.format] for file in survey.files}
    sizes = [_bytes(path) for path in survey.paths]
    return FilesReport(
        count=len(survey.paths),
        bytes=None if None in sizes else sum(size for size in sizes if size is not None),
        formats=dict(Counter(formats.values())),
        archives=sum(any(origin.startswith(f"{path}:") for origin in formats) for path in survey.paths),
        first=survey.paths[0],
        last=survey.paths[-1],
    )


def _bytes(path: str) -> int | None:
    """Size of a file, or of all files of a Zarr store in a folder; None for a URL."""
    if is_url(path):
        return None
    if Path(path).is_dir():
        return sum(file.stat().st_size for file in Path(path).rglob("*") if file.is_file())
    return Path(path).stat().st_size
