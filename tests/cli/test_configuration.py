import re
from typing import Any

import pytest

from climseg.cli.configuration import compose, conf_folder, group_choices, groups_of
from climseg.cli.help import command_help, general_help
from climseg.cli.main import COMMANDS, run

NEEDED = {
    "synthesize": ["output=x"],
    "inspect": ["input=x"],
    "label": ["input=x", "output=y"],
    "prepare": ["input=x", "output=y"],
    "stage": ["data.store=x", "target=y"],
    "train": ["data.store=x"],
    "evaluate": ["checkpoint=x", "data.store=y"],
    "predict": ["checkpoint=x", "input=y", "output=z"],
    "plot": ["masks=x", "output=y"],
    "benchmark": [],
}
# What some choices need besides.
NEEDED_BY_CHOICE = {("model", "smp"): ["model.arch=Unet"], ("cluster", "address"): ["cluster.address=tcp://a:8786"]}


def test_every_command_has_its_file_and_every_file_its_command() -> None:
    assert {f.stem for f in conf_folder().glob("*.yaml")} == set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_choice_of_every_group_composes(command: str) -> None:
    choices = group_choices()
    for group in groups_of(command):
        for choice in choices[group]:
            needed = [*NEEDED[command], *NEEDED_BY_CHOICE.get((group, choice), [])]
            assert compose(command, [*needed, f"{group}={choice}"])[group] is not None


@pytest.mark.parametrize("command", COMMANDS)
def test_help_names_every_key_with_its_default_and_an_example(command: str) -> None:
    text = command_help(command)
    assert f"Example: climseg {command} " in text
    for key in set(compose(command, NEEDED[command])) - {"command_line"}:
        assert str(key) in text
    assert "_target_" not in text


def test_help_shows_the_options_of_the_choice_that_was_named() -> None:
    assert "atrous_rates" in command_help("train", ["model=deeplabv3plus", "--help"])
    assert "atrous_rates" not in command_help("train")


def test_help_shows_the_options_of_a_choice_within_a_choice() -> None:
    text = command_help("label", ["labels/rivers=bard", "--help"])
    assert "labels/rivers = bard | " in text
    assert "Options of labels/rivers=bard, as labels.rivers.OPTION=...:" in text
    assert "min_probability: " in text
    assert "max_gap_hours: " in text  # of labels/cyclones=teca, which labels=kurth2018 takes
    without = command_help("label", ["labels=bard", "--help"])
    assert "labels = bard | " in without
    assert "labels/cyclones = null | teca | " in without
    assert "max_gap_hours" not in without


def test_parts_of_a_heuristic_compose() -> None:
    def labels(*words: str) -> Any:
        return compose("label", ["input=x", "output=y", *words]).labels

    made = labels("labels=bard", "labels/cyclones=tempestextremes", "labels.cyclones.tracks.lasting.wind.hours=24")
    assert made.rivers["_target_"].startswith("climseg.labels.rivers_bard")
    assert made.cyclones.tracks.lasting.wind.hours == 24
    assert labels("labels/rivers=null").rivers is None
    assert labels("labels.rivers=null").rivers is None
    assert labels("labels.cyclones.tracks=null").cyclones.tracks is None
    # Without effect where the choice has no such part anyway.
    for word in ("labels/cyclones=null", "labels.cyclones=null"):
        assert labels("labels=bard", word).get("cyclones") is None


def test_general_help_names_every_command() -> None:
    text = general_help(COMMANDS)
    assert all(f"  {c} " in text for c in COMMANDS)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["trian"], "did you mean 'train'"),
        (["train", "data.stroe=x"], "did you mean 'data.store'"),
        (["train", "data.store=x", "modle=tiramisu"], "did you mean 'model'"),
        (["train", "data.store=x", "model=tiramisu_smal"], "did you mean 'tiramisu_small'"),
        (["train"], r"needs data\.store="),
        (["predict", "input=x"], r"needs checkpoint=\.\.\. and output="),
        (["predict", "a.nc"], "'a.nc' is not key=value"),
        (["train", "data.store=x", "data.batch_size=four"], "data.batch_size=four: expected a whole number"),
        (["train", "data.store=x", "checkpoint_every.steps=1.5"], "steps=1.5: expected a whole number, such as 500"),
        (["train", "data.store=x", "ema_decay=often"], "ema_decay=often: expected a number, such as 0.999"),
        (["train", "data.store=x", "run_dir=[a]"], "expected text, such as runs/first"),
        (["train", "data.store=x", "model.down_layers=5"], r"=5: expected a list, such as \[2,2,2,3\]"),
        (["train", "data.store=x", "resume=3"], "resume=3: expected true or false"),
        (["predict", "checkpoint=x", "input=y", "output=z", "regrid=maybe"], "expected true or false"),
        (["prepare", "input=x", "output=y", "workers=4"], r"did you mean 'cluster\.workers'"),
        (["prepare", "input=x", "output=y", "cluster=address"], r"needs cluster\.address="),
        (["prepare", "input=x", "output=y", "--dry"], "'--dry' is not key=value"),
        (["train", "data.store=x", "--dry-run"], "has no key 'dry_run'"),
        (["benchmark", "what=prepar"], "did you mean 'prepare'"),
        (["benchmark", "grid=5"], r"such as \[192,288\]"),
        (["label", *NEEDED["label"], "-m"], "-m .several runs by one command. is for climseg train"),
        (["train", "data.store=x", "model=tiramisu,tiramisu_small"], "climseg train -m model=tiramisu,tiramisu_small"),
        (["train", "data.store=x", "optimizer.lr=0.1,0.2"], r"climseg train -m optimizer\.lr=0\.1,0\.2"),
        (["label", *NEEDED["label"], "labels=bard,kurth2018"], "climseg label takes one value"),
        (["train", "data.store=x", "hydra/launcher=submitit_slurm"], "settings of Hydra .* climseg train -m"),
        (["label", *NEEDED["label"], "labels/cyclones=tempestextrem"], "did you mean 'tempestextremes'"),
        (["label", *NEEDED["label"], "labels/river=bard"], "did you mean 'labels/rivers'"),
        (["label", *NEEDED["label"], "labels.rivers=bard"], "bard is a choice; write labels/rivers=bard"),
        (["label", *NEEDED["label"], "labels=bard", "labels.cyclones.tracks=null"], "has no key 'labels.cyclones.tr"),
        (
            ["label", *NEEDED["label"], "labels=from_file", "labels/rivers=bard"],
            "labels=from_file has no rivers",
        ),
        (["label", *NEEDED["label"], "labels.rivers.treshold=21"], "did you mean 'labels.rivers.threshold'"),
        (["label", *NEEDED["label"], "labels.cyclones.candidates.min_wind=fast"], "expected a number, such as 17"),
        (["train", "data.store=absent"], "not a complete climseg store"),
    ],
)
def test_a_mistake_ends_with_a_sentence_and_exit_code_2(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) == 2
    error = capsys.readouterr().err
    assert "Traceback" not in error
    assert re.search(sentence, error), error


@pytest.mark.parametrize(
    "value", ["data/*.nc", "/a b/c.nc", "year=2020/x.nc", "x(1).nc", "it's.nc", "a{1,2}.nc", "~/x.nc", "ä.nc", "a,b.nc"]
)
def test_paths_with_unusual_letters_arrive_as_they_are(value: str) -> None:
    assert compose("label", [f"input={value}", "output=y"]).input == value


def test_a_list_of_files_stays_a_list() -> None:
    assert list(compose("label", ["input=[a.nc,b.nc]", "output=y"]).input) == ["a.nc", "b.nc"]


def test_help_and_version_succeed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == run(["predict", "--help"]) == run(["--version"]) == run([]) == 0
    assert "climseg predict" in capsys.readouterr().out


def test_a_rank_that_is_no_number_is_refused_by_its_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RANK", "first")
    assert run(["train", "data.store=x"]) == 2
    assert "RANK='first' in the environment: expected the whole number of this process" in capsys.readouterr().err
