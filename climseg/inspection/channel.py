"""How each channel comes from the files: the variable itself, a formula, something that stands in, or not at all."""

from collections.abc import Mapping

import numpy as np

from climseg.channels import CHANNELS
from climseg.inspection.report import APPROXIMATED, DERIVED, FOUND, MISSING, ChannelReport
from climseg.sources.fields import Found
from climseg.sources.open import Survey
from climseg.sources.recipes import LOWEST_LEVEL, MODEL_LEVELS, PRESSURE_LEVELS, Field


def describe_channel(name: str, survey: Survey, comment: str = "", refused: str = "") -> ChannelReport:
    """One channel, without values.

    Args:
        name: Of a channel that the survey looked for.
        survey: Of the input.
        comment: Attribute of the opened channel.
        refused: Why it cannot be opened; or an empty string.
    """
    units = CHANNELS[name].units
    if name not in survey.ways:
        needs = survey.missing[name]
        in_the_way = needs in survey.lookup.problems.values()
        return ChannelReport(name, MISSING, [], "", [], [], units, needs=needs, in_the_way=in_the_way)
    fields = dict.fromkeys(survey.ways[name].fields())
    found = {f: where for f in fields if (where := survey.lookup.find(f)) is not None}
    return ChannelReport(
        name=name,
        state=_state(comment or survey.ways[name].recipe.comment),
        names=[spoken for where in found.values() for spoken in where.names],
        comment=comment,
        levels=_levels(found),
        stored_units=list(dict.fromkeys(units for where in found.values() for units in _stored_units(where))),
        units=units,
        refused=refused,
    )


def _state(comment: str) -> str:
    if "approximation:" in comment:
        return APPROXIMATED
    return DERIVED if "derived:" in comment else FOUND


def _stored_units(found: Found) -> list[str]:
    attributes = [layout.variables[slot.variable].attributes for layout, slot in found.slots.items()]
    return [str(a.get("units", "none")) for a in attributes]


def _levels(found: Mapping[Field, Found]) -> list[str]:
    """The levels that are used of columns, such as ``q, u, v: 12 pressure levels from 100 to 1000 hPa``."""
    names: dict[str, list[str]] = {}
    for wanted, where in found.items():
        words = _levels_of(wanted, where)
        if words:
            names.setdefault(words, []).append(next(iter(where.names)).split(" ")[0])
    return [f"{', '.join(own)}: {words}" for words, own in names.items()]


def _levels_of(wanted: Field, found: Found) -> str:
    if wanted.where == PRESSURE_LEVELS:
        hpa = sorted({pressure / 100.0 for levels in found.pressures.values() for pressure in levels})
        return f"{len(hpa)} pressure levels from {hpa[0]:g} to {hpa[-1]:g} hPa"
    if found.hybrid is None or wanted.where not in (MODEL_LEVELS, LOWEST_LEVEL):
        return ""
    taken = "the lowest of " if wanted.where == LOWEST_LEVEL else ""
    return f"{taken}{np.size(found.hybrid[0])} hybrid levels"
