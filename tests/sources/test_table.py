from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from climseg.channels import CAM5_CHANNELS, CHANNELS, LABELS
from climseg.errors import InputError
from climseg.sources.recipes import EQUIVALENTS, INGREDIENTS
from climseg.sources.table import built_in_table, read_table, table_names
from climseg.units import is_convertible

WriteTable = Callable[..., Path]


@pytest.mark.parametrize("name", table_names())
def test_a_built_in_table_reads_and_names_what_there_is(name: str) -> None:
    table = built_in_table(name)
    assert table.title
    assert set(table.names) <= {*CHANNELS, *INGREDIENTS, LABELS}
    names = [n for names in table.names.values() for n in names]
    assert len(names) == len(set(names)), "one name stands for two things"


def test_every_table_of_the_folder_is_known_to_auto() -> None:
    folder = Path(__file__).parents[2] / "climseg" / "sources" / "tables"
    assert sorted(table_names()) == sorted(path.stem for path in folder.glob("*.yaml"))


def test_cam5_has_its_sixteen_channels_under_their_own_names() -> None:
    assert {name: built_in_table("cam5").names[name] for name in CAM5_CHANNELS} == {n: (n,) for n in CAM5_CHANNELS}


def test_only_cam5_brings_labels() -> None:
    assert [name for name in table_names() if LABELS in built_in_table(name).names] == ["cam5"]


def test_what_stands_for_a_quantity_is_not_the_quantity_itself() -> None:
    for name, (units, _, _) in EQUIVALENTS.items():
        own = INGREDIENTS.get(name) or CHANNELS[name].units
        assert not is_convertible(units, own), name


def test_a_table_of_ones_own_is_read(write_table: WriteTable) -> None:
    path = write_table(
        {"PSL": "mslp", "u": ["uwnd", "u"]},
        title="NCEP reanalysis",
        recognise={"source": "NCEP", "title": ["R1", "R2"]},
        misprints={"mslp": {"PA": "Pa"}},
    )
    table = read_table(path)
    assert table.title == "NCEP reanalysis"
    assert table.names == {"PSL": ("mslp",), "u": ("uwnd", "u")}
    assert table.all_names == {"mslp", "uwnd", "u"}
    assert table.recognise == {"source": ("NCEP",), "title": ("R1", "R2")}
    assert table.misprints == {"mslp": {"PA": "Pa"}}
    assert not table.unitless
    assert not table.hybrid


def test_the_title_is_the_name_of_the_file_where_none_is_given(write_table: WriteTable) -> None:
    assert read_table(write_table({"PSL": "mslp"})).title == "names"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("names: [", "is no YAML"),
        ("names:\n\t PSL: mslp", "is no YAML"),
        ("", "expected a name table"),
        ("- PSL", "expected a name table"),
        ("names:", "expected a name table"),
        ("names: {}", "expected a name table"),
        ("PSL: mslp", "expected a name table"),
        ("names: {PSL: mslp}\nnmes: {}", "unknown key 'nmes'; did you mean 'names'? Known: title, recognise"),
        ("names: {PSL: mslp}\n1: 2", "unknown key 1. Known"),
        ("names: {PLS: mslp}", "'PLS' is no channel and no ingredient of one; did you mean 'PS"),
        ("names: {rian: tp}", "'rian' is no channel and no ingredient of one; did you mean 'rain'?"),
        ("names: {PSL: 3}", "PSL is 3; expected the variable's name in the files, or a list of names"),
        ("names: {PSL: [mslp, 3]}", "PSL is ['mslp', 3]; expected"),
        ("names: {PSL: mslp}\nrecognise: {source: {a: b}}", "recognise is {'a': 'b'}; expected"),
        ("names: {PSL: mslp}\nrecognise: NCEP", "recognise is 'NCEP'; expected"),
        ("names: {PSL: mslp}\nmisprints: Pa", "misprints is 'Pa'; expected"),
        ("names: {PSL: mslp}\nmisprints: {mslp: Pa}", "misprints of mslp is 'Pa'; expected"),
        ("names: {PSL: []}", "PSL is []; expected"),
    ],
)
def test_a_table_that_is_none_is_refused_with_the_reason(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "names.yaml"
    path.write_text(content)
    with pytest.raises(InputError) as error:
        read_table(path)
    assert str(error.value).startswith(f"{path}: ")
    assert said in str(error.value)


@pytest.mark.parametrize("content", [None, b"names: \xff"])
def test_a_table_that_is_absent_or_no_text_is_refused(tmp_path: Path, content: Any) -> None:
    path = tmp_path / "names.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=r"names\.yaml: the name table cannot be read"):
        read_table(path)
