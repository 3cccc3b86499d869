"""What an inspection says: plain values, so that ``dataclasses.asdict`` of it is the content of a JSON file.

Times are ISO 8601 on the input's own calendar, shares lie between 0 and 1.
"""

from dataclasses import dataclass, field
from typing import Final

FOUND: Final = "found"
DERIVED: Final = "derived"
APPROXIMATED: Final = "approximated"
MISSING: Final = "missing"


@dataclass(frozen=True)
class FilesReport:
    """The files.

    Attributes:
        count: How many, an archive counting once.
        bytes: Together; None where an object store holds one.
        formats: Number of files by format, the members of archives counted.
        archives: How many are zip archives.
        first: The first of them, as given or expanded.
        last: The last.
    """

    count: int
    bytes: int | None
    formats: dict[str, int]
    archives: int
    first: str
    last: str


@dataclass(frozen=True)
class TimeReport:
    """The times of some channels.

    Attributes:
        channels: Their names.
        steps: How many, each time counting once.
        first: The first time.
        last: The last.
        calendar: CF calendar.
        spacing_hours: Between neighbours, where more than half of them are that far apart, else None.
        smallest_hours: Smallest distance of neighbours, or None for a single step.
        largest_hours: Largest.
        missing: Steps that are missing between the first and the last, where there is a spacing.
        first_missing: The first of them.
        duplicates: Times that are there more than once, the repeats.
        first_duplicates: The first of them.
    """

    channels: list[str]
    steps: int
    first: str
    last: str
    calendar: str
    spacing_hours: float | None
    smallest_hours: float | None
    largest_hours: float | None
    missing: int
    first_missing: list[str]
    duplicates: int
    first_duplicates: list[str]


@dataclass(frozen=True)
class GridReport:
    """The grid of some channels; degrees.

    Attributes:
        channels: Their names.
        rows: Latitudes.
        columns: Longitudes, a repeated one counting once.
        lat_spacing: Mean distance of rows.
        lon_spacing: Mean distance of columns.
        south: Southernmost latitude.
        north: Northernmost latitude.
        west: Westernmost longitude, in [0, 360).
        east: Easternmost longitude; beyond 360 for a region that crosses Greenwich.
        latitude_order: Of the files: "north to south" or "south to north".
        longitude_convention: Of the files: "0 to 360", "-180 to 180", or "either" where the region is the same in both.
        closed: Whether the columns close round the globe.
        whole_globe: Whether the rows reach both poles too, to one spacing.
        poles: Poles on which a row lies: "north", "south".
    """

    channels: list[str]
    rows: int
    columns: int
    lat_spacing: float
    lon_spacing: float
    south: float
    north: float
    west: float
    east: float
    latitude_order: str
    longitude_convention: str
    closed: bool
    whole_globe: bool
    poles: list[str]


@dataclass(frozen=True)
class ValuesReport:
    """The values of one channel at the time steps that were read, in canonical units.

    Attributes:
        steps: How many steps were read, whether with success or not.
        minimum: Smallest value; None where nothing is there.
        mean: Mean over cells and steps, unweighted, as a store's statistics have it.
        maximum: Largest value.
        missing_share: Share of values that are missing or infinite, among the steps that could be read.
        missing_at: Times with missing or infinite values.
        unreadable: By time, why a step could not be read; above all steps without any value.
        constant_at: Times at which one value stands everywhere.
        impossible: The first refusal of values that the unit cannot give, with the likely mistake; or an empty string.
        mistake: That mistake alone, such as "hPa labelled Pa"; empty where none explains the values.
        impossible_at: Times of such values.
        too_small: Whether a field of the whole globe stays near zero, as after one conversion too many.
    """

    steps: int
    minimum: float | None
    mean: float | None
    maximum: float | None
    missing_share: float
    missing_at: list[str]
    unreadable: dict[str, str]
    constant_at: list[str]
    impossible: str
    mistake: str
    impossible_at: list[str]
    too_small: bool


@dataclass(frozen=True)
class ChannelReport:
    """One channel.

    Attributes:
        name: Its name.
        state: "found", "derived" (a formula), "approximated" (something stands in) or "missing".
        names: What the files call what it is made of.
        comment: How it is made, as in the attribute of the same name; or an empty string.
        levels: Levels used, in words, where it is made of a column.
        stored_units: Units attributes of what it is made of.
        units: Canonical units.
        needs: For a missing channel: what it needs, or what stands in the way, and the mend.
        in_the_way: Whether what it needs is there and cannot be used: commands without ``channels=`` refuse that.
        refused: Why it cannot be opened although all it needs is there (times that are there twice); else empty.
        values: Of the steps that were read; None where it cannot be opened.
    """

    name: str
    state: str
    names: list[str]
    comment: str
    levels: list[str]
    stored_units: list[str]
    units: str
    needs: str = ""
    in_the_way: bool = False
    refused: str = ""
    values: ValuesReport | None = None


@dataclass(frozen=True)
class LabelsReport:
    """The mask that came with the files.

    Attributes:
        present: Whether there is one that can be used.
        problem: Why one that is there cannot be used; or an empty string.
        class_shares: Share of each class among the labelled cells of the steps that were read.
        missing_share: Share of cells without a label.
    """

    present: bool
    problem: str = ""
    class_shares: dict[str, float] = field(default_factory=dict)
    missing_share: float = 0.0


@dataclass(frozen=True)
class Verdict:
    """What the input is good for.

    Attributes:
        purpose: For example "a new network".
        ready: Whether it is.
        sentence: How to go on, or what is lacking and the mend.
    """

    purpose: str
    ready: bool
    sentence: str


@dataclass(frozen=True)
class Inspection:
    """All that an inspection says.

    Attributes:
        source: The source taken.
        title: What it is called.
        why: Why it was taken, where source=auto chose.
        files: The files.
        times: The time axis; several where channels differ.
        grids: The grid; several where channels differ.
        together: Channels that share times and grid, the largest group first.
        channels: The channels asked for, or all that climseg knows.
        labels: The mask in the files.
        sampled: Times that were read.
        problems: What keeps the channels from being one Dataset.
        remarks: What is strange in the values.
        bytes_per_step: In memory and in a store, of the channels there and a mask.
        store_bytes: Of a store of all steps.
        verdicts: What the input is good for.
    """

    source: str
    title: str
    why: str
    files: FilesReport
    times: list[TimeReport]
    grids: list[GridReport]
    together: list[list[str]]
    channels: list[ChannelReport]
    labels: LabelsReport
    sampled: list[str]
    problems: list[str]
    remarks: list[str]
    bytes_per_step: int
    store_bytes: int
    verdicts: list[Verdict] = field(default_factory=list)

    def channel(self, name: str) -> ChannelReport | None:
        """The report of one channel, or None where it was not asked for."""
        return next((channel for channel in self.channels if channel.name == name), None)
