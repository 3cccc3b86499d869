"""``climseg inspect``: what files hold, what is strange in them, and what they are good for."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import hydra
from omegaconf import DictConfig
from rich import box
from rich.console import Console
from rich.filesize import decimal
from rich.table import Table

import climseg
from climseg.cli.fields import input_paths, source_options
from climseg.cli.json_file import json_path, write_json
from climseg.cli.labelling import all_heuristics
from climseg.cli.progress import progress_bar
from climseg.errors import InputError
from climseg.inspection.inspect import inspect_survey
from climseg.inspection.remarks import share
from climseg.inspection.report import MISSING, GridReport, Inspection, TimeReport, Verdict
from climseg.inspection.verdicts import what_lacks
from climseg.labels.heuristic import Heuristic
from climseg.sources.open import Survey, assemble, survey_input

if TYPE_CHECKING:
    from climseg.training.contract import Contract


def run(configuration: DictConfig) -> None:
    """Survey, read a sample, show, write."""
    output = None if configuration.output is None else json_path(configuration.output, "the report is")
    steps = _steps(str(configuration.steps))
    checkpoint = None if configuration.checkpoint is None else str(configuration.checkpoint)
    contract = None if checkpoint is None else _contract(checkpoint)
    paths = input_paths(configuration.input)
    # Not labels=true: a mask in the files is looked for in any case, and none is no mistake here.
    survey = survey_input(paths, **(source_options(configuration) | {"labels": False}))
    labels = hydra.utils.instantiate(configuration.labels)
    heuristic = labels if isinstance(labels, Heuristic) else None
    with progress_bar("time steps") as progress:
        inspection = inspect_survey(
            survey, steps=steps, heuristic=heuristic, heuristics=all_heuristics(), progress=progress
        )
    if contract is not None:
        verdict = _checkpoint_verdict(f"checkpoint={checkpoint}", contract, survey, inspection)
        inspection = replace(inspection, verdicts=[*inspection.verdicts, verdict])
    if output is not None:
        write_json(output, {"climseg": climseg.__version__, "input": paths} | asdict(inspection))
    _show(inspection)


def _steps(value: str) -> int | None:
    """How many time steps to read; None for all."""
    if value == "all":
        return None
    if not value.isdecimal():
        raise InputError(f"steps={value}: expected a number of time steps, such as 8, or all, or 0 for none.")
    return int(value)


def _contract(path: str) -> "Contract":
    """What a network expects."""
    from climseg.training.contract import load_checkpoint  # torch takes seconds to load; most inspections need none

    return load_checkpoint(path).contract


def _checkpoint_verdict(purpose: str, contract: "Contract", survey: Survey, inspection: Inspection) -> Verdict:
    """Whether ``climseg predict`` takes the files with a network."""
    from climseg.inference.fit import fit_to_network  # loads torch

    lacking = what_lacks(inspection, contract.channels, complete=True)
    if lacking:
        return Verdict(purpose, False, f"{'; '.join(lacking)}.")
    fields = assemble(survey, contract.channels)
    try:
        fit_to_network(fields, contract, origin=survey.where)
    except InputError as error:
        try:
            fit_to_network(fields, contract, origin=survey.where, regrid=True)
        except InputError as worse:
            return Verdict(purpose, False, str(worse))
        return Verdict(purpose, False, str(error))
    count = len(contract.channels)
    return Verdict(purpose, True, f"channels ({count}), units and grid are those of its training.")


def _show(inspection: Inspection) -> None:
    """Print the report, 80 columns wide where the output is no terminal."""
    console = Console(markup=False, highlight=False)
    console.print(_overview(inspection))
    console.print(_origins(inspection))
    if any(c.values is not None and c.values.minimum is not None for c in inspection.channels):
        console.print(_values(inspection))
    for heading, sentences in (("Problems", inspection.problems), ("Remarks", inspection.remarks)):
        if sentences:
            console.print(f"{heading}\n")
            console.print(_list("-", sentences))
            console.print()
    console.print("Verdict\n")
    for verdict in inspection.verdicts:
        console.print(
            _list("*", [f"{'Ready' if verdict.ready else 'Not ready'} for {verdict.purpose}: {verdict.sentence}"])
        )


def _overview(inspection: Inspection) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    files = inspection.files
    grid.add_row("files", files.first if files.count == 1 else f"{files.first} ... {files.last}")
    grid.add_row("", ", ".join(_file_words(inspection)))
    grid.add_row("source", inspection.title)
    if inspection.why:
        grid.add_row("", inspection.why)
    for time in inspection.times:
        grid.add_row("time", _of(time, inspection.times) + ". ".join(_time_words(time)))
    for axes in inspection.grids:
        grid.add_row("grid", _of(axes, inspection.grids) + "; ".join(_grid_words(axes)))
    grid.add_row("labels", _label_words(inspection))
    if inspection.together and not inspection.sampled:
        grid.add_row("values", "not read (steps=0)")
    if inspection.bytes_per_step:
        size = (
            f"{decimal(inspection.bytes_per_step)} a time step in memory, {decimal(inspection.store_bytes)} as a store"
        )
        grid.add_row("size", size)
    return grid


def _file_words(inspection: Inspection) -> Iterator[str]:
    files = inspection.files
    yield f"{files.count} {'file' if files.count == 1 else 'files'}"
    if files.bytes is not None:
        yield decimal(files.bytes)
    many = len(files.formats) > 1 or files.archives
    yield " and ".join(f"{count} {name}" if many else name for name, count in files.formats.items())
    if files.archives:
        yield "in zip archives" if files.archives > 1 else "in a zip archive"


def _of(axis: TimeReport | GridReport, all_axes: Sequence[TimeReport | GridReport]) -> str:
    """The channels of an axis, where there are several."""
    return f"{', '.join(axis.channels)}: " if len(all_axes) > 1 else ""


def _time_words(time: TimeReport) -> Iterator[str]:
    if time.steps == 1:
        yield f"1 step, {time.first}, calendar {time.calendar}"
    else:
        apart = f" of {time.spacing_hours:g} h" if time.spacing_hours is not None else ""
        yield f"{time.steps} steps{apart} from {time.first} to {time.last}, calendar {time.calendar}"
    uneven = time.smallest_hours != time.largest_hours and not time.missing
    if uneven:
        yield f"Not evenly spaced: {time.smallest_hours:g} to {time.largest_hours:g} h apart"
    if time.missing:
        yield f"{time.missing} {_steps_are(time.missing)} missing: {_some(time.first_missing, time.missing)}"
    if time.duplicates:
        named = _some(time.first_duplicates, time.duplicates)
        yield f"{time.duplicates} {_steps_are(time.duplicates)} there twice: {named}"


def _steps_are(count: int) -> str:
    return "step is" if count == 1 else "steps are"


def _some(times: Sequence[str], count: int) -> str:
    return ", ".join(times) + (", ..." if count > len(times) else "")


def _grid_words(grid: GridReport) -> Iterator[str]:
    yield f"{grid.rows} x {grid.columns} points, {grid.lat_spacing:.4g} x {grid.lon_spacing:.4g} degrees (lat x lon)"
    if grid.whole_globe:
        yield "global, " + ("with both poles" if len(grid.poles) == 2 else "without points on both poles")
    else:
        kind = "all longitudes" if grid.closed else "a region"
        yield f"{kind}, lat {grid.south:g} to {grid.north:g}, lon {grid.west:g} to {grid.east:g}"
    lon = {"either": ""}.get(grid.longitude_convention, f", longitudes {grid.longitude_convention}")
    yield f"in the files {grid.latitude_order}{lon}"


def _label_words(inspection: Inspection) -> str:
    labels = inspection.labels
    if not labels.present:
        return labels.problem or "none in the files"
    shares = ", ".join(f"{name.replace('_', ' ')} {share(s)}" for name, s in labels.class_shares.items())
    missing = f"; {share(labels.missing_share)} of the cells not labelled" if labels.missing_share else ""
    return f"LABELS: {shares or 'not read'}{missing}"


def _origins(inspection: Inspection) -> Table:
    """How each channel comes from the files."""
    table = _table("channel", "how")
    table.add_column("from", overflow="fold")
    table.add_column("stored in", overflow="fold", max_width=12)
    for channel in inspection.channels:
        if channel.state == MISSING:
            table.add_row(channel.name, channel.state, channel.needs.removeprefix(f"{channel.name} "))
            continue
        words = [channel.comment or ", ".join(channel.names), *channel.levels]
        words += ["cannot be opened, see the problems"] if channel.refused else []
        text = "; ".join(words).removeprefix("derived: ").removeprefix("approximation: ")
        table.add_row(channel.name, channel.state, text, ", ".join(channel.stored_units))
    return table


def _values(inspection: Inspection) -> Table:
    """What was read."""
    count = len(inspection.sampled)
    times = f"at {inspection.sampled[0]}" if count == 1 else f"in {count} time steps"
    table = _table("channel", "unit", title=f"values {times}")
    for heading in ("minimum", "mean", "maximum", "missing"):
        table.add_column(heading, justify="right", no_wrap=True)
    for channel in inspection.channels:
        values = channel.values
        if values is not None and values.steps > 0:
            numbers = [_number(n) for n in (values.minimum, values.mean, values.maximum)]
            table.add_row(
                channel.name, channel.units, *numbers, share(values.missing_share) if values.missing_at else ""
            )
    return table


def _table(*columns: str, **options: Any) -> Table:
    table = Table(box=box.SIMPLE, pad_edge=False, padding=(0, 1, 0, 0), title_justify="left", **options)
    for name in columns:
        table.add_column(name, no_wrap=True)
    return table


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


def _list(mark: str, sentences: Sequence[str]) -> Table:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for sentence in sentences:
        grid.add_row(mark, sentence)
    return grid
