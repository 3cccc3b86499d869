"""The one opener: files of any kind of source become a canonical Dataset, lazily."""

import logging
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import dask.array as da
import numpy as np
import xarray as xr

from climseg.canonical import COORDINATE_ATTRIBUTES, DIMS, LABEL_ATTRIBUTES, check_canonical
from climseg.channels import CAM5_CHANNELS, CHANNELS, LABELS
from climseg.errors import InputError, near_matches
from climseg.sources import deepcam
from climseg.sources.axes import axes_of, times_of
from climseg.sources.fields import Found, Lookup, describe_variables, names_in, nothing_stored
from climseg.sources.paths import Input, expand_paths
from climseg.sources.recipes import LOWEST_LEVEL, MODEL_LEVELS, PRESSURE_LEVELS, RECIPES, Field, Recipe
from climseg.sources.request import check_request
from climseg.sources.scan import scan_files
from climseg.sources.series import Series
from climseg.sources.stored import FORMATS, StoredFile
from climseg.sources.table import NameTable, built_in_table, read_table, table_names
from climseg.sources.timeline import JoinedTimes, Timeline, join_times
from climseg.sources.zarr_store import EMPTY

log = logging.getLogger(__name__)

# A dask chunk holds no more than this of one field, whatever chunks the files are stored in.
_LARGEST_CHUNK: Final = 16 * 2**20
SOURCES: Final = ("auto", "cam5", "climatenet", "deepcam", "era5", "merra2", "gfs", "generic")


@dataclass(frozen=True)
class Way:
    """How one channel is made of the input.

    Attributes:
        channel: Its name.
        recipe: The recipe taken.
        parts: What the recipe needs: fields, or ways of other channels.
    """

    channel: str
    recipe: Recipe
    parts: tuple["Field | Way", ...]

    def fields(self) -> list[Field]:
        """All fields that are read for it."""
        return [f for part in self.parts for f in ([part] if isinstance(part, Field) else part.fields())]


@dataclass
class Survey:
    """What the input is and which channels it gives; nothing but coordinates has been read.

    Attributes:
        paths: The input files.
        files: Their parts.
        source: Which source was taken.
        why: Why, where source=auto chose it.
        table: Its names.
        ways: The channels that can be had, and how.
        missing: The channels that cannot, and what they need.
        lookup: Where the fields are.
        timeline: The times of fields, of all files that hold them.
    """

    paths: list[str]
    files: list[StoredFile]
    source: str
    why: str
    table: NameTable
    lookup: Lookup
    timeline: Timeline
    ways: dict[str, Way] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    @property
    def where(self) -> str:
        """The input in words, for messages."""
        first = self.files[0].origin
        count = len(dict.fromkeys(file.origin for file in self.files))
        return first if count == 1 else f"The input of {count} files from {first} on"


def open_fields(
    input: Input,
    *,
    source: str = "auto",
    channels: Sequence[str] | None = None,
    labels: bool = False,
    time: str | None = None,
    period: Sequence[str] | None = None,
    accumulation_hours: float | None = None,
    storage_options: Mapping[str, Any] | None = None,
    table: str | Path | None = None,
) -> xr.Dataset:
    """Open netCDF, HDF5, GRIB, Zarr files, or zip archives of them, as one canonical Dataset.

    Files may follow each other in time, hold one variable or level each, or both; other variables are ignored. Channels
    that the files lack are derived or approximated where there is a way (``recipes.py``); the ``comment`` attribute of
    the variable says so.

    Args:
        input: Paths, patterns or URLs.
        source: What the names mean: ``cam5``, ``climatenet``, ``deepcam``, ``era5``, ``merra2``, ``gfs``, ``generic``
            with a table of one's own, or ``auto``.
        channels: Names of channels, in the wanted order; None takes all of CAM5's 16 that can be had.
        labels: Read the mask LABELS too: int8, missing values become ``MISSING_LABEL``.
        time: The time of a single file that has none, for example ``"2011-10-11T00"``.
        period: First and last time to take (ISO 8601, both included); None takes all.
        accumulation_hours: Period of accumulated precipitation, for files that do not say it: 1 for hourly ERA5, 3 for
            its ensemble.
        storage_options: For URLs, passed on to fsspec: ``{"token": "anon"}`` for public buckets.
        table: The name table (YAML) of ``source="generic"``.

    Returns:
        A canonical Dataset of dask arrays, chunked in time as the files are. Nothing but coordinates has been read.
        Every read opens a file and closes it: any dask scheduler, any number of processes may compute it. A time step
        of a field without any value, and a value of LABELS that is no class, raise InputError when they are read.

    Raises:
        InputError: A file, its grid, its times, its units or its variables do not fit, by name.
    """
    survey = survey_input(
        input,
        source=source,
        channels=channels,
        labels=labels,
        time=time,
        period=period,
        accumulation_hours=accumulation_hours,
        storage_options=storage_options,
        table=table,
    )
    if survey.why:
        log.info("source=auto: %s", survey.why)
    wanted = list(channels) if channels is not None else [c for c in CAM5_CHANNELS if c in survey.ways]
    if channels is None and not wanted:
        wanted = list(survey.ways)
    if channels is None:
        _refuse_or_tell(survey)
    if labels:
        wanted.append(LABELS)
    lacking = [name for name in wanted if name not in survey.ways]
    if lacking or not wanted:
        raise InputError(_refusal(survey, lacking, channels is None))
    return assemble(survey, wanted)


def survey_input(
    input: Input,
    *,
    source: str = "auto",
    channels: Sequence[str] | None = None,
    labels: bool = False,
    time: str | None = None,
    period: Sequence[str] | None = None,
    accumulation_hours: float | None = None,
    storage_options: Mapping[str, Any] | None = None,
    table: str | Path | None = None,
) -> Survey:
    """Look at the input as :func:`open_fields` does, and say which channels it gives.

    Returns:
        A survey of the channels asked for, or of all that climseg knows.

    Raises:
        InputError: A file cannot be read at all, or the request makes no sense.
    """
    if source not in SOURCES:
        raise InputError(
            f"There is no source {source!r}{near_matches(source, SOURCES) or '.'} Sources: {', '.join(SOURCES)}."
        )
    if (source == "generic") != (table is not None):
        raise InputError(
            "source=generic and a name table belong together: give source=generic source.table=names.yaml."
        )
    if accumulation_hours is not None and not accumulation_hours > 0.0:
        raise InputError(f"source.accumulation_hours is {accumulation_hours}; expected hours above 0.")
    if labels and source in table_names():
        _check_has_labels(built_in_table(source))
    paths = expand_paths(input)
    check_request(paths, channels, time)
    files = scan_files(paths, storage_options)
    samples = [file for file in files if deepcam.is_sample(file)]
    if samples or source == "deepcam" or all(deepcam.is_statistics(file) for file in files):
        files = _deepcam_samples(files, samples)
    taken, names, why = _choose_table(source, table, files, bool(samples))
    if labels:
        _check_has_labels(names)
    files = _relevant(files, names)
    _check_all_of_one_source(files, names)
    _check_usable(files, time)
    survey = Survey(
        paths, files, taken, why, names, Lookup(files, names, accumulation_hours), Timeline(files, time, period)
    )
    for channel in [*(channels if channels is not None else RECIPES), *([LABELS] if labels else [])]:
        way = _find_way(channel, survey.lookup)
        if way is not None:
            survey.ways[channel] = way
        else:
            survey.missing[channel] = _what_is_missing(channel, survey)
    return survey


def _check_has_labels(table: NameTable) -> None:
    if LABELS not in table.names:
        raise InputError(
            f"{table.title} files carry no labels; make them with a heuristic, for example labels=kurth2018."
        )


def _check_all_of_one_source(files: Sequence[StoredFile], table: NameTable) -> None:
    """Refuse files of another kind of source, which would give nothing; tell of files whose names nobody knows."""
    by_origin: dict[str, set[str]] = {}
    for file in files:
        by_origin.setdefault(file.origin, set()).update(v.name for v in file.layout.fields())
    useless = {origin: names for origin, names in by_origin.items() if not names & table.all_names}
    if len(useless) == len(by_origin):
        return  # refused with the reason where channels are chosen
    for origin, names in useless.items():
        for other in map(built_in_table, table_names()):
            theirs = sorted(names & other.all_names)
            if theirs:
                raise InputError(
                    f"{origin}: has names of {other.title} ({', '.join(theirs[:4])}), while other files of the input "
                    f"have those of {table.title}; give files of one source."
                )
    if useless:
        log.warning(
            "%d of %d files give none of the channels and are left aside, %s first",
            len(useless),
            len(by_origin),
            next(iter(useless)),
        )


def _check_usable(files: Sequence[StoredFile], time: str | None) -> None:
    """Refuse grids that cannot be used, files without times, and empty stores, whatever is asked for."""
    for file in {file.layout: file for file in reversed(files)}.values():
        axes_of(file)
        times_of(file, time)
        fields = file.layout.fields()
        if fields and all(v.attributes.get(EMPTY) for v in fields):
            raise InputError(nothing_stored(file, fields[-1]))


def _deepcam_samples(files: list[StoredFile], samples: list[StoredFile]) -> list[StoredFile]:
    others = [file for file in files if not deepcam.is_sample(file)]
    for file in others:
        if not deepcam.is_statistics(file):
            raise InputError(
                f"{file.origin}: is no DeepCAM sample (no {deepcam.DATA} in it), while the source is deepcam."
            )
        log.info("%s holds statistics, no fields, and is left aside", file.origin)
    if not samples:
        raise InputError(
            f"{files[0].origin}: holds DeepCAM's statistics, no fields; give samples, such as 'data-*-1.h5'."
        )
    return deepcam.as_fields(samples)


def _choose_table(
    source: str, own: str | Path | None, files: Sequence[StoredFile], samples: bool
) -> tuple[str, NameTable, str]:
    """The source taken, its table, and why."""
    if own is not None:
        return source, read_table(Path(own).expanduser()), ""
    if source == "deepcam" or (source == "auto" and samples):
        why = "" if source == "deepcam" else f"took deepcam, as {files[0].origin} has the layout of its samples"
        return "deepcam", built_in_table("cam5"), why
    if source != "auto":
        return source, built_in_table("cam5" if source == "climatenet" else source), ""
    present = names_in(files)
    known = {name: [n for n in present if n in built_in_table(name).all_names] for name in table_names()}
    marks = {name: _marked(built_in_table(name), files) for name in table_names()}
    best = max(table_names(), key=lambda name: (bool(known[name]) and bool(marks[name]), len(known[name])))
    if not known[best]:
        for file in files:
            axes_of(file)
        near = "".join(
            near_matches(n, [t for k in table_names() for t in built_in_table(k).all_names]) for n in present
        )
        raise InputError(
            f"{files[0].origin}: none of its variables has a name of CAM5, ERA5, MERRA-2 or GFS{near or '.'} It has: "
            f"{describe_variables(files)}. Name them in a table of your own: source=generic source.table=names.yaml "
            "with lines such as 'PSL: mslp' below 'names:'."
        )
    shown = ", ".join(known[best][:6]) + (f" and {len(known[best]) - 6} more" if len(known[best]) > 6 else "")
    others = ", ".join(f"{name} knows {len(known[name])}" for name in table_names() if name != best)
    mark = f" and {marks[best]}" if marks[best] else ""
    return (
        best,
        built_in_table(best),
        f"took {best}, for the names {shown}{mark} ({others} of {len(present)} variables)",
    )


def _marked(table: NameTable, files: Sequence[StoredFile]) -> str:
    """The global attribute by which the files are of this source, or an empty string."""
    for layout in dict.fromkeys(file.layout for file in files):
        for key, words in table.recognise.items():
            value = str(layout.attributes.get(key, ""))
            if any(word in value for word in words):
                return f"the attribute {key}={value!r}"
    return ""


def _relevant(files: list[StoredFile], table: NameTable) -> list[StoredFile]:
    """Without those parts of GRIB files that hold a variable that the table does not name."""
    kept = [f for f in files if f.format != "grib" or table.all_names & f.layout.variables.keys()]
    return kept or files


def _find_way(channel: str, lookup: Lookup) -> Way | None:
    """The first recipe of a channel whose needs are all there."""
    for recipe in RECIPES.get(channel, (Recipe((Field(channel),)),)):
        parts: list[Field | Way] = []
        for need in recipe.needs:
            part = _find_way(need, lookup) if isinstance(need, str) else (need if lookup.find(need) else None)
            if part is None:
                break
            parts.append(part)
        if len(parts) == len(recipe.needs) and _is_deep_enough(recipe, lookup):
            return Way(channel, recipe, tuple(parts))
    return None


def _is_deep_enough(recipe: Recipe, lookup: Lookup) -> bool:
    """Whether a column integral has at least five pressure levels, from 925 hPa or below to 300 hPa or above."""
    columns = [need for need in recipe.needs if isinstance(need, Field) and need.where == PRESSURE_LEVELS]
    if not columns:
        return True
    sets = [{p for ps in found.pressures.values() for p in ps} for c in columns if (found := lookup.find(c))]
    common = set.intersection(*sets)
    return len(common) >= 5 and max(common) >= 92500.0 and min(common) <= 30000.0


def _what_is_missing(channel: str, survey: Survey) -> str:
    """What a channel needs, in the names of the source, and what stands in the way if something does."""
    obstacles = _obstacles(channel, survey)
    if obstacles:
        return obstacles[0]
    ways = list(dict.fromkeys(words for recipe in RECIPES.get(channel, ()) if (words := _needs(recipe, survey.table))))
    parts = {way: set(way.split(" and ")) for way in ways}
    ways = [way for way in ways if not any(parts[other] < parts[way] for other in ways)]  # the least is enough to say
    if not ways and channel in RECIPES:
        return f"{survey.table.title} has no name for {channel}"
    return f"{channel} needs {' or '.join(ways)}" if ways and ways != [channel] else f"has no variable {channel}"


def _obstacles(channel: str, survey: Survey) -> list[str]:
    """Why what a channel needs is there and cannot be used."""
    said = survey.lookup.problems | survey.lookup.questions
    return [said[f] for f in _all_fields(channel) if f in said]


def _all_fields(channel: str) -> list[Field]:
    needs = [need for recipe in RECIPES.get(channel, (Recipe((Field(channel),)),)) for need in recipe.needs]
    return [f for need in needs for f in ([need] if isinstance(need, Field) else _all_fields(need))]


def _needs(recipe: Recipe, table: NameTable) -> str:
    """What a recipe needs in a source's names, or an empty string where the source has no name for one of them."""
    words = []
    if not table.hybrid and any(isinstance(n, Field) and n.where in (MODEL_LEVELS, LOWEST_LEVEL) for n in recipe.needs):
        return ""
    for need in recipe.needs:
        name = need if isinstance(need, str) else need.name
        known = table.names.get(name)
        if not known:
            inner = [w for r in RECIPES.get(name, ()) if (w := _needs(r, table))] if isinstance(need, str) else []
            if not inner:
                return ""
            words.append(inner[0])
            continue
        where = None if isinstance(need, str) else need.where
        at = f" at {where} hPa" if isinstance(where, int) else f" on {where}" if where else ""
        words.append(f"{known[0]}{at}")
    return " and ".join(words)


def _refusal(survey: Survey, lacking: Sequence[str], every: bool) -> str:
    """Why the channels asked for, or all of them, cannot be had."""
    obstacles = [sentence for name in lacking for sentence in _obstacles(name, survey)]
    if every and not lacking:
        obstacles = list((survey.lookup.problems | survey.lookup.questions).values())
    if obstacles:
        others = [survey.missing[name] for name in lacking if not _obstacles(name, survey)]
        return obstacles[0] + (f" Besides: {'; '.join(others)}." if others else "")
    has, hint = describe_variables(survey.files), _other_source(survey)
    if not every or lacking:
        return f"{survey.where}: {'; '.join(survey.missing[name] for name in lacking)}. It has: {has}.{hint}"
    names = [n for n in names_in(survey.files) if n not in survey.table.all_names]
    near = "".join(f" {n!r}{m}" for n in names if (m := near_matches(n, survey.table.all_names)))
    reason = f"{survey.where}: no channel can be had from it by the names of {survey.table.title}. It has: {has}."
    return reason + (hint or near)


def _other_source(survey: Survey) -> str:
    """A hint at the source whose names the files have."""
    present = set(names_in(survey.files))
    mine = len(present & survey.table.all_names)
    counts = {name: len(present & built_in_table(name).all_names) for name in table_names()}
    best = max(counts, key=lambda name: counts[name])
    title = built_in_table(best).title
    return f" These are names of {title}: try source={best}." if counts[best] > mine else ""


def _refuse_or_tell(survey: Survey) -> None:
    """Refuse variables that are there and cannot be used; tell of those that want a word from the user."""
    lacking = [channel for channel in CAM5_CHANNELS if channel in survey.missing]
    for channel in lacking:
        problems = [survey.lookup.problems[f] for f in _all_fields(channel) if f in survey.lookup.problems]
        if problems:
            raise InputError(problems[0])
    for channel in lacking:
        questions = [survey.lookup.questions[f] for f in _all_fields(channel) if f in survey.lookup.questions]
        if questions and survey.ways:
            log.warning("%s is left out: %s", channel, questions[0])


def assemble(survey: Survey, wanted: Sequence[str]) -> xr.Dataset:
    """The canonical Dataset, lazy, of channels that a survey found a way to.

    Raises:
        InputError: Their grids, calendars or times do not fit together, or a time is there twice; files are named.
    """
    fields = list(dict.fromkeys(f for name in wanted for f in survey.ways[name].fields()))
    found = {f: survey.lookup.find(f) for f in fields}
    holders = {f: where.slots.keys() for f, where in found.items() if where}
    leading = {f: where.leading() for f, where in found.items() if where}
    times = join_times(survey.timeline, holders, leading, _names(found))
    first = next(iter(next(w for w in found.values() if w).slots))
    axes = axes_of(next(file for file in survey.files if file.layout is first))
    coordinates = {"time": times.coordinate, "lat": axes.grid["lat"], "lon": axes.grid["lon"]}
    chunks = _chunks(found, times)
    arrays = {f: _array(f, where, survey, times, chunks, coordinates) for f, where in found.items() if where}
    out = xr.Dataset(coords=coordinates)
    for name in DIMS:
        kept = {k: v for k, v in out[name].attrs.items() if k == "source_values"}
        out[name].attrs = COORDINATE_ATTRIBUTES[name] | kept
    out["time"].encoding = dict(times.coordinate.encoding)
    for name in wanted:
        way = survey.ways[name]
        values = _compute(way, arrays).transpose(*DIMS).drop_attrs()
        out[name] = (DIMS, values.data if name == LABELS else values.data.astype(np.float32, copy=False))
        comment = _comment(way, found)
        attributes = dict(LABEL_ATTRIBUTES) if name == LABELS else CHANNELS[name].attributes
        out[name].attrs = attributes | ({"comment": comment} if comment else {})
    out.attrs = {"source": _origin_in_words(survey)}
    check_canonical(out, origin=survey.where)
    return out


def _origin_in_words(survey: Survey) -> str:
    """What the files are, as far as they say so themselves."""
    if survey.source == "deepcam":
        return "DeepCAM HDF5"
    formats = " and ".join(dict.fromkeys(FORMATS[file.format] for file in survey.files))
    title = survey.table.title
    return f"{title} {formats}" if _marked(survey.table, survey.files) else f"{formats} with names of {title}"


def _names(found: Mapping[Field, Found | None]) -> dict[Field, str]:
    return {f: next(iter(where.names)) for f, where in found.items() if where}


def _chunks(found: Mapping[Field, Found | None], times: JoinedTimes) -> tuple[int, ...]:
    """Dask chunks in time: as the field with the longest stored ones has them, within the bound of memory."""
    longest, per_step = 1, 1
    chosen: Field | None = None
    for f, where in found.items():
        if where is None:
            continue
        for slot in where.slots.values():
            levels = len(slot.levels) if slot.levels is not None else 1
            per_step = max(per_step, slot.rows.size * slot.columns.size * levels * 4)
            if chosen is None or slot.time_chunk > longest:
                longest, chosen = slot.time_chunk, f
    assert chosen is not None
    size = max(1, min(longest, _LARGEST_CHUNK // per_step))
    return times.chunks(chosen, size)


def _array(
    wanted: Field,
    found: Found,
    survey: Survey,
    times: JoinedTimes,
    chunks: tuple[int, ...],
    coordinates: Mapping[str, Any],
) -> xr.DataArray:
    """One field on (time, [level,] lat, lon), lazy."""
    file_of, step_of = times.position(wanted)
    if found.levels_apart:
        return _stacked(wanted, found, times, chunks, coordinates)
    series = Series(wanted.name, times.files, found.slots, file_of, step_of, times.index)
    array = xr.DataArray(_lazy(series, chunks), dims=_dims(series), coords=dict(coordinates))
    if wanted.where == PRESSURE_LEVELS:
        return array.assign_coords(pressure=("level", np.array(next(iter(found.pressures.values())))))
    if found.hybrid is not None:
        a, b, reference = found.hybrid
        return array.assign_coords(a=("level", a), b=("level", b), reference=reference)
    if wanted.name == "rain":
        return array.assign_coords(accumulation_seconds=("time", _seconds(found, survey, times, file_of, step_of)))
    return array


def _stacked(
    wanted: Field,
    found: Found,
    times: JoinedTimes,
    chunks: tuple[int, ...],
    coordinates: Mapping[str, Any],
) -> xr.DataArray:
    """A column whose levels lie in files, or messages, of their own."""
    levels: dict[float, dict[Any, Any]] = {}
    for layout, slot in found.slots.items():
        levels.setdefault(found.pressures[layout][0], {})[layout] = slot
    arrays = []
    for pressure in sorted(levels):
        file_of, step_of = times.position_of_layouts(levels[pressure].keys(), wanted)
        series = Series(wanted.name, times.files, levels[pressure], file_of, step_of, times.index)
        arrays.append(_lazy(series, chunks))
    stacked = da.stack(arrays, axis=1).rechunk({1: -1})  # type: ignore[no-untyped-call]
    array = xr.DataArray(stacked, dims=("time", "level", "lat", "lon"), coords=dict(coordinates))
    return array.assign_coords(pressure=("level", np.array(sorted(levels))))


def _seconds(found: Found, survey: Survey, times: JoinedTimes, file_of: Any, step_of: Any) -> Any:
    """The period of accumulation of each time."""
    by_file: dict[int, Any] = {}
    for number in np.unique(file_of).tolist():
        file = survey.files[number]
        variable = file.layout.variables[found.slots[file.layout].variable]
        by_file[number] = survey.lookup.seconds(file, variable)
    return np.array([by_file[f][s] for f, s in zip(file_of.tolist(), step_of.tolist(), strict=True)])


def _lazy(series: Series, chunks: tuple[int, ...]) -> Any:
    whole = tuple((size,) for size in series.shape[1:])
    return da.from_array(  # type: ignore[no-untyped-call]
        series,
        chunks=(chunks, *whole),
        name=f"{series.name}-{uuid.uuid4().hex}",  # files may change under a name, so it is never the same twice
        meta=np.empty((0,) * series.ndim, dtype=series.dtype),
        fancy=False,
    )


def _dims(series: Series) -> tuple[str, ...]:
    return ("time", "lat", "lon") if series.ndim == 3 else ("time", "level", "lat", "lon")


def _compute(way: Way, arrays: Mapping[Field, xr.DataArray]) -> xr.DataArray:
    parts = [arrays[part] if isinstance(part, Field) else _compute(part, arrays) for part in way.parts]
    return way.recipe.compute(*parts)


def _comment(way: Way, found: Mapping[Field, Found | None]) -> str:
    """What the channel's comment says: the recipe's, then how units were read."""
    names = [_spoken(part, found) for part in way.parts]
    notes = [note for f in way.fields() if (where := found[f]) is not None for note in where.notes]
    inner = [text for part in way.parts if isinstance(part, Way) and (text := _comment(part, found))]
    return "; ".join(dict.fromkeys(filter(None, [way.recipe.comment.format(*names), *notes, *inner])))


def _spoken(part: "Field | Way", found: Mapping[Field, Found | None]) -> str:
    if isinstance(part, Way):
        plain = len(part.parts) == 1 and isinstance(part.parts[0], Field) and not part.recipe.comment
        return _spoken(part.parts[0], found) if plain else part.channel
    where = found[part]
    return next(iter(where.names)) if where is not None else part.name
