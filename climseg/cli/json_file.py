"""Reports as JSON files."""

import json
from pathlib import Path
from typing import Any

from climseg.atomic import atomic_file, check_writable
from climseg.errors import InputError


def json_path(value: object, content: str) -> Path:
    """The file to write; refused before any work when it cannot be.

    Args:
        value: What the user gave.
        content: What is written, as the beginning of a sentence: ``"scores are"``.
    """
    output = Path(str(value))
    if output.suffix != ".json":
        raise InputError(f"output={output}: {content} JSON; give a name that ends in .json.")
    check_writable(output)
    return output


def write_json(output: Path, content: dict[str, Any]) -> None:
    """Write plain values, under the final name when the file is complete."""
    with atomic_file(output) as partial:
        partial.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
