"""From ``key=value`` words to a composed configuration, with every mistake answered by a sentence."""

import shlex
from pathlib import Path
from typing import Any, Final

import hydra
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import DictConfig, ListConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

import climseg
from climseg.errors import InputError, near_matches

# Several runs by one command, as Hydra spells it.
MULTIRUN: Final = ("-m", "--multirun")

# Keys that have a value by default and mean something without one.
_MAY_BE_NULL: Final = (
    "checkpoint_every.minutes",
    "labels.cyclones.candidates.max_height_m",
    "labels.cyclones.tracks.max_degrees",
    "labels.cyclones.tracks.max_km_per_day",
)

# Numbers in some choices that are "auto" in others.
_MAY_BE_AUTO: Final = ("trainer.devices", "trainer.num_nodes")

# Keys without a value by default, and an example of what they take: it says the type.
_EXAMPLES: Final = {
    "run_dir": "runs/first",
    "comm_hook": "fp16",
    "checkpoint_every.steps": 500,
    "bucket_megabytes": 50.0,
    "ema_decay": 0.999,
    "node": 0,
    "nodes": 2,
    "scheduler.warmup_steps": 400,
}


def conf_folder() -> Path:
    """The folder conf/: inside the installed package, or beside it in a checkout."""
    package = Path(climseg.__file__).parent
    installed = package / "conf"
    return installed if installed.is_dir() else package.parent / "conf"


def group_choices() -> dict[str, list[str]]:
    """The configuration groups (``labels``, ``labels/rivers``) and their choices: a folder each, a file a choice."""
    root = conf_folder()
    folders = sorted(path for path in root.rglob("*") if path.is_dir())
    return {f.relative_to(root).as_posix(): sorted(path.stem for path in f.glob("*.yaml")) for f in folders}


def groups_of(command: str) -> list[str]:
    """The groups that a command's configuration uses, without those within them."""
    return list(default_choices(f"{command}.yaml"))


def default_choices(file: str) -> dict[str, str | None]:
    """The groups in the defaults list of a file of conf/, in their order, and the choice that it makes of each."""
    content = OmegaConf.load(conf_folder() / file)
    assert isinstance(content, DictConfig)
    entries = [entry for entry in content.get("defaults", []) if isinstance(entry, DictConfig)]
    return {str(group): choice for entry in entries for group, choice in entry.items()}


def compose(command: str, words: list[str]) -> DictConfig:
    """Compose ``conf/COMMAND.yaml`` with a user's ``key=value`` words.

    Raises:
        InputError: A word is not key=value, a key or choice is unknown, a value has the wrong type, or a needed key is
            absent; the near match or the choices are named.
    """
    overrides = [parse_word(command, _as_value(word)) for word in words]
    # Those within them too, such as labels/rivers.
    groups = [g for own in groups_of(command) for g in group_choices() if g == own or g.startswith(f"{own}/")]
    chosen = [o for o in overrides if o.key_or_group in groups]
    for override in chosen:
        _check_choice(command, override)
    _check_inner_choices(command, chosen)
    GlobalHydra.instance().clear()
    with hydra.initialize_config_dir(str(conf_folder()), version_base="1.3"):
        base = _compose(command, chosen)
        overrides = [o for o in overrides if not _is_left_out_already(o, base)]
        for override in overrides:
            if override not in chosen and not override.is_add() and not override.is_force_add():
                _check_key(command, override, base, groups)
        configuration = _compose(command, overrides)
    missing = sorted(str(k) for k in OmegaConf.missing_keys(configuration))
    if missing:
        raise InputError(
            f"climseg {command} needs {' and '.join(f'{key}=...' for key in missing)}; see climseg {command} --help."
        )
    with open_dict(configuration):
        configuration.command_line = shlex.join(["climseg", command, *words])  # for histories; not a user's key
    return configuration


def _as_value(word: str) -> str:
    """``labels/cyclones=null`` as the value that it stands for, since Hydra knows no choice of nothing."""
    key, _, value = word.partition("=")
    return f"{key.replace('/', '.')}=null" if value == "null" and "/" in key and key in group_choices() else word


def _is_left_out_already(override: Override, base: DictConfig) -> bool:
    """Whether an override leaves out a part, such as ``labels.cyclones``, that the choice taken does without anyway."""
    key = override.key_or_group
    if override.value() is not None or "." not in key or key.replace(".", "/") not in group_choices():
        return False
    parent = key.rpartition(".")[0]
    return OmegaConf.select(base, parent) is not None and OmegaConf.select(base, key) is None


def parse_word(command: str, word: str, *, several: bool = False) -> Override:
    """One word as an override; values that Hydra's grammar does not take as they are (paths) are quoted for it.

    Args:
        command: Whose word it is, for the sentence of a mistake.
        word: ``key=value``.
        several: Whether a list of values with commas, or ``range(...)``, is taken as several values; else a comma is a
            letter of the value, as in a path.

    Raises:
        InputError: The word is not key=value, or is a setting of Hydra, which only ``-m`` knows.
    """
    if word in MULTIRUN:
        raise InputError(
            f"{word} (several runs by one command) is for climseg train; climseg {command} takes one value per key."
        )
    key, equals, value = word.partition("=")
    if not equals or not key:
        raise InputError(
            f"{word!r} is not key=value; for several files give a glob in quotes or a list [a.nc,b.nc]. "
            f"See climseg {command} --help."
        )
    if is_hydra_key(key):
        raise InputError(f"{word}: settings of Hydra are for several runs by one command, climseg train -m.")
    parser = OverridesParser.create()
    quoted = value.replace("\\", "\\\\").replace("'", "\\'")
    for attempt in (word, f"{key}='{quoted}'"):
        try:
            override = parser.parse_override(attempt)
        except HydraException:
            continue
        if several or not override.is_sweep_override():
            return override
    raise InputError(f"{word!r} cannot be read as key=value; see climseg {command} --help.")


def is_hydra_key(key: str) -> bool:
    """Whether a key is one of Hydra itself, such as ``hydra/launcher`` or ``hydra.launcher.partition``."""
    return key.lstrip("+~").startswith(("hydra.", "hydra/"))


def _one_value(command: str, override: Override) -> str:
    """What to do with several values where one is expected; nothing to say where there is no comma."""
    value = str(override.value())
    if "," not in value:
        return ""
    if command == "train":
        return f" Several runs by one command: climseg train -m {override.key_or_group}={value}."
    return f" climseg {command} takes one value."


def _compose(command: str, overrides: list[Override]) -> DictConfig:
    try:
        return hydra.compose(command, overrides=[str(o.input_line) for o in overrides])
    except (HydraException, OmegaConfBaseException) as error:
        raise InputError(f"climseg {command}: {str(error).splitlines()[0]}; see climseg {command} --help.") from error


def _check_choice(command: str, override: Override) -> None:
    choices = group_choices()[override.key_or_group]
    value = str(override.value())
    if value not in choices:
        raise InputError(
            f"{override.key_or_group}={value}: no such choice{near_matches(value, choices) or '.'} "
            f"Choices: {', '.join(choices)}.{_one_value(command, override)}"
        )


def _check_inner_choices(command: str, chosen: list[Override]) -> None:
    """Refuse a choice within another that has no such part, such as ``labels/rivers`` beside ``labels=from_file``."""
    taken = {**default_choices(f"{command}.yaml"), **{o.key_or_group: str(o.value()) for o in chosen}}
    for override in chosen:
        outer, _, inner = override.key_or_group.rpartition("/")
        if outer and inner not in default_choices(f"{outer}/{taken[outer]}.yaml"):
            having = [c for c in group_choices()[outer] if inner in default_choices(f"{outer}/{c}.yaml")]
            raise InputError(
                f"{override.key_or_group}={override.value()}: {outer}={taken[outer]} has no {inner}; those that have: "
                f"{', '.join(having)}."
            )


def _check_key(command: str, override: Override, base: DictConfig, groups: list[str]) -> None:
    """Refuse an unknown key and a value of another type than the default's."""
    key = override.key_or_group
    known = _leaf_keys(base)
    branches = {k.rsplit(".", n)[0] for k in known for n in range(1, k.count(".") + 1)}
    if key not in known and key not in branches:
        near = near_matches(key, [*known, *branches, *groups]) or "."
        raise InputError(f"climseg {command} has no key {key!r}{near} See climseg {command} --help.")
    default, value = known.get(key), override.value()
    kinds = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
    if key in branches and value is None and "." in key:
        return  # labels.cyclones=null leaves that part out
    group = key.replace(".", "/")
    if key in branches and group in groups and "/" in group and str(value) in group_choices()[group]:
        raise InputError(f"{key}={value}: {value} is a choice; write {group}={value}.")
    if key not in known and not isinstance(value, dict):
        raise InputError(
            f"{key}={value}: {key} is a group of keys, such as {next(k for k in known if k.startswith(key))}."
        )
    if value is None and key in _MAY_BE_NULL:
        return
    if default is None and value is not None:
        default = _EXAMPLES.get(key)
    if value == "" or (value is None and default is not None):
        raise InputError(
            f"{key}= is empty; expected {kinds.get(type(default), 'a value')}. See climseg {command} --help."
        )
    if isinstance(default, ListConfig) and not isinstance(value, list):
        example = str(list(default) or [value]).replace(" ", "").replace("'", "")
        raise InputError(f"{key}={value}: expected a list, such as {example}.{_one_value(command, override)}")
    if type(default) not in kinds or value is None or default == "???":
        return
    if not _fits(default, value) and not (value == "auto" and key in _MAY_BE_AUTO):
        example = "" if isinstance(default, bool) else f", such as {default}"
        raise InputError(f"{key}={value}: expected {kinds[type(default)]}{example}.{_one_value(command, override)}")


def _fits(default: object, value: object) -> bool:
    """Whether a value is of the kind of the default."""
    if isinstance(default, str):
        return isinstance(
            value, str | int | float
        )  # a file or a date may look like a number; "auto" may become a count
    if isinstance(default, bool) or isinstance(value, bool):
        return isinstance(default, bool) and isinstance(value, bool)
    if isinstance(default, int):
        return isinstance(value, int)
    return isinstance(value, int | float)


def _leaf_keys(node: DictConfig, prefix: str = "") -> dict[str, Any]:
    """All dotted keys of a configuration that hold a value, with that value."""
    found: dict[str, Any] = {}
    for key in map(str, node):
        child = node._get_node(key)
        name = f"{prefix}{key}"
        if isinstance(child, DictConfig) and not child._is_none() and not child._is_missing():
            found |= _leaf_keys(child, f"{name}.")
        elif not key.startswith("_"):
            found[name] = "???" if OmegaConf.is_missing(node, key) else node[key]
    return found
