"""What ``label`` and ``prepare`` share: opening what a heuristic takes, and running it."""

import functools
import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NoReturn

import hydra
import numpy as np
import xarray as xr
from omegaconf import DictConfig

from climseg.canonical import iso_times
from climseg.cli.configuration import compose, group_choices
from climseg.cli.fields import on_grid, open_input, plain, source_options
from climseg.cli.progress import progress_bar
from climseg.errors import InputError
from climseg.labels.heuristic import Heuristic, axes, hours
from climseg.labels.make_climatology import lacks_climatology, make_climatology
from climseg.labels.needs import Settled
from climseg.labels.run import find, write
from climseg.labels.spool import spool_path
from climseg.masks import describe_input
from climseg.sources.netcdf import files_kept_open
from climseg.sources.open import Survey, assemble, survey_input
from climseg.sources.paths import input_manifest

log = logging.getLogger(__name__)

# Options of the definitions of rivers that name files.
_FILE_OPTIONS: Final = ("climatology", "parameters")


@dataclass(frozen=True)
class Labelling:
    """An input opened for a heuristic.

    Attributes:
        heuristic: It.
        fields: The channels that it takes.
        settled: Which channels these are, and what stands in.
    """

    heuristic: Heuristic
    fields: xr.Dataset
    settled: Settled


def heuristic(name: str, *options: str) -> Heuristic:
    """A heuristic of conf/labels as a function of a canonical Dataset in memory: ``climseg.heuristic`` of notebooks.

    Args:
        name: As ``labels=`` on the command line: ``"tempestextremes"``.
        options: As there too, each ``"labels.rivers.min_area_km2=2e5"`` or ``"labels/rivers=bard"``.

    Raises:
        InputError: The name, a key or a value is not known; near matches are suggested.

    Example:
        >>> how = climseg.heuristic("kurth2018", "labels.cyclones.tracks=null")
        >>> masks = how(climseg.open_fields("era5/*.nc", channels=how.needs.channels))
    """
    configuration = compose("label", ["input=none", "output=none.nc", f"labels={name}", *options])
    made = hydra.utils.instantiate(configuration.labels)
    if not isinstance(made, Heuristic):
        raise InputError(f"labels={name} is no heuristic: it takes the masks that came with the files.")
    return made


def all_heuristics() -> list[Heuristic]:
    """Those of conf/labels, each with its own options."""
    return [heuristic(name) for name in group_choices()["labels"] if name != "from_file"]


def open_for(
    heuristic: Heuristic, configuration: DictConfig, paths: list[str], *, say_source: bool = True
) -> Labelling:
    """Open the channels that a heuristic takes.

    Args:
        heuristic: What is to be looked for.
        configuration: Of the command; ``source.channels`` is what there is, where it is given.
        paths: The input files.
        say_source: Tell which source was recognised; false where that has been said.

    Raises:
        InputError: A channel is missing and nothing stands in (how to do without is said), or the input covers too
            little time for tracks.
    """
    given = _given_channels(configuration)
    wanted = [c for c in heuristic.needs.all_channels if given is None or c in given]
    _check_given(heuristic, given, wanted)
    survey = survey_input(paths, **(source_options(configuration) | {"channels": wanted, "labels": False}))
    settled = heuristic.needs.settle(survey.ways)
    if settled.missing:
        _check_given(heuristic, given, survey.ways)
        _refuse(heuristic, settled, survey, configuration, paths)
    if survey.why and say_source:
        log.info("source=auto: %s", survey.why)
    fields = on_grid(configuration, paths, assemble(survey, settled.channels))
    heuristic.check_times(hours(fields))
    for warning in heuristic.warnings(*axes(fields)):
        log.warning("Warning: %s", warning)
    for words in settled.stand_ins:
        log.info("stand-in: %s", words)
    return Labelling(heuristic, fields, settled)


def label_request(configuration: DictConfig, paths: list[str]) -> dict[str, Any]:
    """What makes masks or a store: input files and options, so that nothing is gone on with that is of another kind.

    Raises:
        InputError: An option names a file that is not there.
    """
    request = {
        "input_files": input_manifest(paths),
        "source": plain(configuration.source),
        "labels": plain(configuration.labels),
        "grid": configuration.grid,
    }
    rivers = request["labels"].get("rivers") or {}
    named = {key: Path(str(rivers[key])).expanduser() for key in _FILE_OPTIONS if rivers.get(key) is not None}
    for key, file in named.items():
        if not file.is_file():
            raise InputError(f"labels.rivers.{key}={file}: there is no such file.")
    return request | ({"label_files": input_manifest(list(named.values()))} if named else {})


def climatology_path(output: Path) -> Path:
    """Where the climatology lies that is made on the way to a mask file."""
    return output.with_name(f"{output.stem}_climatology.nc")


def check_same_axes(labelling: Labelling, fields: xr.Dataset) -> None:
    """Refuse a store whose channels have other times, or another grid, than those of its labels.

    Raises:
        InputError: They have; the first time that one of them lacks is named.
    """
    labels, store = iso_times(labelling.fields), iso_times(fields)
    if labels != store:
        only = sorted(set(labels) ^ set(store))[0]
        raise InputError(
            f"the channels to store have {len(store)} time steps and those of the labels {len(labels)}: {only} is in "
            "one of them only. Give files that hold both at the same times."
        )
    for name in ("lat", "lon"):
        if not np.array_equal(labelling.fields[name].values, fields[name].values):
            raise InputError(
                f"the channels to store and those of the labels have unequal grids ({name}: {fields.sizes[name]} and "
                f"{labelling.fields.sizes[name]} points); interpolate both to one, such as grid=0.25deg."
            )


def _given_channels(configuration: DictConfig) -> list[str] | None:
    """The channels of ``source.channels``; None where all that the files hold may be taken."""
    given = configuration.source.channels
    if given is None:
        return None
    return [given] if isinstance(given, str) else [str(name) for name in given]


def _check_given(heuristic: Heuristic, given: list[str] | None, available: Collection[str]) -> None:
    """Refuse ``source.channels`` without channels that the heuristic takes; how to do without is said."""
    missing = heuristic.needs.settle(available).missing
    left_out = [name for name in missing if given is not None and name not in given]
    if left_out:
        raise InputError(
            f"source.channels has no channel {', '.join(left_out)}, which labels={heuristic.name} takes; name "
            f"{'it' if len(left_out) == 1 else 'them'} too, or leave source.channels out.{heuristic.mend(available)}"
        )


def _refuse(
    heuristic: Heuristic, settled: Settled, survey: Survey, configuration: DictConfig, paths: list[str]
) -> NoReturn:
    """Say why the files do not give the heuristic its channels, and how to do without."""
    mend = heuristic.mend(survey.ways)
    try:
        open_input(configuration, paths, list(dict.fromkeys([*settled.channels, *settled.missing])))
    except InputError as error:
        raise InputError(f"{error}{mend}") from error
    raise AssertionError(f"{settled.missing} were not to be had, and were opened")


def run_heuristic(
    labelling: Labelling,
    configuration: DictConfig,
    paths: list[str],
    request: dict[str, Any],
    output: Path,
    tables: dict[str, Path],
    explain: bool = False,
    attributes: Mapping[str, str] | None = None,
) -> None:
    """Find, link and write; interrupted, it goes on where it was when it is started again.

    The caller holds :func:`climseg.atomic.sole_writer` of :func:`climseg.labels.spool.spool_path` of the output.

    Args:
        labelling: What and where.
        configuration: Of the command.
        paths: The input files.
        request: From :func:`label_request`.
        output: The mask file.
        tables: From :func:`climseg.labels.run.table_paths`.
        explain: Keep why regions are no rivers.
        attributes: More global attributes of the mask file.
    """
    heuristic, settled = labelling.heuristic, labelling.settled
    fields = labelling.fields[list(settled.channels)]
    about = describe_input(fields, paths)
    title = {"title": "Extreme weather masks by climseg", "source": "heuristic labels, no network"}
    folder = spool_path(output)
    where: dict[str, Any] = {
        "cluster": hydra.utils.instantiate(configuration.cluster),
        "reading": files_kept_open,
        "origin": about["input_files"],
    }
    if lacks_climatology(heuristic.rivers):
        of_the_input = {key: request[key] for key in ("input_files", "source", "grid")}
        heuristic = _with_climatology(heuristic, fields, climatology_path(output), where | {"request": of_the_input})
    with progress_bar("time steps") as progress:
        find(heuristic, fields, folder, request=request, explain=explain, progress=progress, **where)
    with progress_bar("masks") as progress:
        write(
            heuristic,
            fields,
            folder,
            output,
            definition=heuristic.definition(settled),
            attributes=title | about | dict(attributes or {}),
            command=configuration.command_line,
            tables=tables,
            progress=progress,
        )


def _with_climatology(heuristic: Heuristic, fields: xr.Dataset, file: Path, where: dict[str, Any]) -> Heuristic:
    """The heuristic with a climatology of the input itself, which stays beside the masks for further use."""
    rivers = heuristic.rivers
    assert isinstance(rivers, functools.partial)
    asked = {name: rivers.keywords[name] for name in ("percentile", "min_steps")}
    with progress_bar("steps into the climatology") as progress:
        make_climatology(fields, file, progress=progress, **asked, **where)
    return replace(heuristic, rivers=functools.partial(rivers.func, **(rivers.keywords | {"climatology": str(file)})))
