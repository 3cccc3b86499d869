"""From ``key=value`` words to a composed configuration, with every mistake answered by a sentence."""

import shlex
from pathlib import Path
from typing import Any

import hydra
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

import climseg
from climseg.errors import InputError, near_matches


def conf_folder() -> Path:
    """The folder conf/: inside the installed package, or beside it in a checkout."""
    package = Path(climseg.__file__).parent
    installed = package / "conf"
    return installed if installed.is_dir() else package.parent / "conf"


def group_choices() -> dict[str, list[str]]:
    """The configuration groups and their choices: one folder each, one file a choice."""
    return {
        folder.name: sorted(f.stem for f in folder.glob("*.yaml"))
        for folder in sorted(conf_folder().iterdir())
        if folder.is_dir()
    }


def groups_of(command: str) -> list[str]:
    """The groups that a command's configuration uses."""
    content = OmegaConf.load(conf_folder() / f"{command}.yaml")
    assert isinstance(content, DictConfig)
    return [str(group) for entry in content.get("defaults", []) if isinstance(entry, DictConfig) for group in entry]


def compose(command: str, words: list[str]) -> DictConfig:
    """Compose ``conf/COMMAND.yaml`` with a user's ``key=value`` words.

    Raises:
        InputError: A word is not key=value, a key or choice is unknown, a value has the wrong type, or a needed key is
            absent; the near match or the choices are named.
    """
    overrides = [_parse(command, word) for word in words]
    groups = groups_of(command)
    chosen = [o for o in overrides if o.key_or_group in groups]
    for override in chosen:
        _check_choice(override)
    GlobalHydra.instance().clear()
    with hydra.initialize_config_dir(str(conf_folder()), version_base="1.3"):
        base = _compose(command, chosen)
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


def _parse(command: str, word: str) -> Override:
    """One word as an override; values that Hydra's grammar does not take as they are (paths) are quoted for it."""
    if word in ("-m", "--multirun"):
        raise InputError("several runs by one command (-m) are not part of this version; give one value per key.")
    key, equals, value = word.partition("=")
    if not equals or not key:
        raise InputError(
            f"{word!r} is not key=value; for several files give a glob in quotes or a list [a.nc,b.nc]. "
            f"See climseg {command} --help."
        )
    parser = OverridesParser.create()
    quoted = value.replace("\\", "\\\\").replace("'", "\\'")
    for attempt in (word, f"{key}='{quoted}'"):
        try:
            override = parser.parse_override(attempt)
        except HydraException:
            continue
        if not override.is_sweep_override():
            return override
    raise InputError(f"{word!r} cannot be read as key=value; see climseg {command} --help.")


def _compose(command: str, overrides: list[Override]) -> DictConfig:
    try:
        return hydra.compose(command, overrides=[str(o.input_line) for o in overrides])
    except (HydraException, OmegaConfBaseException) as error:
        raise InputError(f"climseg {command}: {str(error).splitlines()[0]}; see climseg {command} --help.") from error


def _check_choice(override: Override) -> None:
    choices = group_choices()[override.key_or_group]
    value = str(override.value())
    if value not in choices:
        raise InputError(
            f"{override.key_or_group}={value}: no such choice{near_matches(value, choices) or '.'} "
            f"Choices: {', '.join(choices)}."
        )


def _check_key(command: str, override: Override, base: DictConfig, groups: list[str]) -> None:
    """Refuse an unknown key and a value of another type than the default's."""
    key = override.key_or_group
    known = _leaf_keys(base)
    branches = {k.rsplit(".", n)[0] for k in known for n in range(1, k.count(".") + 1)}
    if key not in known and key not in branches:
        near = near_matches(key, [*known, *groups]) or "."
        raise InputError(f"climseg {command} has no key {key!r}{near} See climseg {command} --help.")
    default, value = known.get(key), override.value()
    kinds = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
    if key not in known and not isinstance(value, dict):
        raise InputError(
            f"{key}={value}: {key} is a group of keys, such as {next(k for k in known if k.startswith(key))}."
        )
    if value == "" or (value is None and default is not None):
        raise InputError(
            f"{key}= is empty; expected {kinds.get(type(default), 'a value')}. See climseg {command} --help."
        )
    if type(default) not in kinds or value is None or default == "???":
        return
    if not _fits(default, value):
        raise InputError(f"{key}={value}: expected {kinds[type(default)]}, such as {default}.")


def _fits(default: object, value: object) -> bool:
    """Whether a value is of the kind of the default."""
    if isinstance(default, str):
        return isinstance(
            value, str | int | float
        )  # a file or a date may look like a number; "auto" may become a count
    if isinstance(default, bool) or isinstance(value, bool):
        return isinstance(default, bool) and isinstance(value, bool)
    if isinstance(default, int):
        return isinstance(value, int) or value == "auto"  # trainer.devices=auto
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
