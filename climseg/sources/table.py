"""Name tables: what one kind of source calls each channel and each ingredient of a channel. Tables are YAML files.

A table has ``names``: for each channel (``channels.CHANNELS``), LABELS, or ingredient (``recipes.INGREDIENTS``) the
names under which files hold it, the first that a file has being taken; a level is told where the name alone does not
say it, by the file's own axis of levels. Optional are ``title``; ``recognise``: global attributes and words in them by
which source=auto tells a source; ``hybrid``: levels may be hybrid; ``unitless``: a file without any units attribute has
canonical units; ``misprints``: units attributes known to be wrong, by name; ``levels`` and ``accumulated``: units of
level axes, and hours of accumulation, that the documentation says and files do not.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

from climseg.channels import CHANNELS, LABELS
from climseg.errors import InputError, near_matches
from climseg.sources.recipes import INGREDIENTS

_FOLDER: Final = Path(__file__).parent / "tables"
_KEYS: Final = ("title", "recognise", "unitless", "hybrid", "misprints", "levels", "accumulated", "names")


@dataclass(frozen=True)
class NameTable:
    """One kind of source.

    Attributes:
        title: What messages and attributes call it.
        names: For each channel or ingredient its names in files, preferred ones first.
        recognise: Global attributes, and words in them that this source has.
        unitless: A file without any units attribute has canonical units.
        hybrid: Such files may have hybrid levels, with the coefficients hyam and hybm.
        misprints: For a name in files: a wrong units attribute, and what it means.
        levels: Units of axes of levels that are documented and may lack the attribute.
        accumulated: Hours over which a variable is accumulated by its documentation.
    """

    title: str
    names: Mapping[str, tuple[str, ...]]
    recognise: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unitless: bool = False
    hybrid: bool = False
    misprints: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    levels: Mapping[str, str] = field(default_factory=dict)
    accumulated: Mapping[str, float] = field(default_factory=dict)

    @property
    def all_names(self) -> frozenset[str]:
        """All names in files that the table knows."""
        return frozenset(name for names in self.names.values() for name in names)


def table_names() -> list[str]:
    """The tables that come with climseg, in the order in which source=auto prefers them."""
    return ["cam5", "era5", "merra2", "gfs"]


@cache
def built_in_table(name: str) -> NameTable:
    """A table that comes with climseg."""
    return read_table(_FOLDER / f"{name}.yaml")


def read_table(path: Path) -> NameTable:
    """Read a name table.

    Raises:
        InputError: The file is absent, no YAML, or has keys or names that are none; the near match is named.
    """
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: the name table cannot be read ({error}).") from error
    except yaml.YAMLError as error:
        raise InputError(f"{path}: the name table is no YAML ({' '.join(str(error).split())}).") from error
    names = content.get("names") if isinstance(content, dict) else None
    if not isinstance(names, dict) or not names:
        raise InputError(
            f"{path}: expected a name table: 'names:' and below it lines such as 'PSL: mslp' or 'u: [uwnd, u]'."
        )
    for key in content:
        if key not in _KEYS:
            raise InputError(
                f"{path}: unknown key {key!r}{near_matches(str(key), _KEYS) or '.'} Known: {', '.join(_KEYS)}."
            )
    known = [*CHANNELS, LABELS, *INGREDIENTS]
    for key in names:
        if key not in known:
            raise InputError(
                f"{path}: {key!r} is no channel and no ingredient of one{near_matches(str(key), known) or '.'} "
                f"Known: {', '.join(known)}."
            )
    recognise, misprints = (_as_mapping(content.get(key), f"{path}: {key}") for key in ("recognise", "misprints"))
    return NameTable(
        title=str(content.get("title", path.stem)),
        names={key: _as_tuple(value, f"{path}: {key}") for key, value in names.items()},
        recognise={k: _as_tuple(v, f"{path}: recognise") for k, v in recognise.items()},
        unitless=bool(content.get("unitless", False)),
        hybrid=bool(content.get("hybrid", False)),
        misprints={k: _as_mapping(v, f"{path}: misprints of {k}") for k, v in misprints.items()},
        levels=_as_mapping(content.get("levels"), f"{path}: levels"),
        accumulated=_hours(content.get("accumulated"), f"{path}: accumulated"),
    )


def _as_mapping(value: Any, where: str) -> dict[str, Any]:
    if value is None or isinstance(value, dict):
        return value or {}
    raise InputError(f"{where} is {value!r}; expected lines of a name, a colon and a value below it.")


def _hours(value: Any, where: str) -> dict[str, float]:
    hours = _as_mapping(value, where)
    for name, number in hours.items():
        if isinstance(number, bool) or not isinstance(number, int | float) or number <= 0:
            raise InputError(f"{where}: {name} is {number!r}; expected hours above 0.")
    return hours


def _as_tuple(value: Any, where: str) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list) and value and all(isinstance(v, str) for v in value):
        return tuple(value)
    raise InputError(f"{where} is {value!r}; expected the variable's name in the files, or a list of names.")
