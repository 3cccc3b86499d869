"""Help texts, made from conf/ itself, so that they cannot differ from what the commands take."""

from collections.abc import Sequence

from climseg.cli.configuration import conf_folder, group_choices, groups_of


def general_help(commands: Sequence[str]) -> str:
    """What ``climseg --help`` prints."""
    lines = [
        "climseg finds tropical cyclones and atmospheric rivers in climate data, pixel by pixel.",
        "",
        "Usage: climseg COMMAND [key=value ...]",
        "       climseg COMMAND --help",
        "       climseg --version",
        "",
        "Commands:",
    ]
    lines += [f"  {c:<11} {_header(c)[0]}" for c in commands]
    lines += [
        "",
        "A first try, without any data:",
        "  climseg synthesize output=made steps=200 hours=24 per=month",
        "  climseg prepare input='made/*.nc' labels=from_file output=store",
        "  climseg train data.store=store run_dir=runs/first trainer.max_epochs=5",
        "  climseg predict checkpoint=runs/first/best.ckpt input='made/*.nc' output=masks.nc",
        "  climseg plot masks=masks.nc fields='made/*.nc' output=map.png",
        "",
        "Masks without a network: climseg label input='made/*.nc' labels=kurth2018_coarse output=masks.nc",
    ]
    return "\n".join(lines)


def command_help(command: str, words: Sequence[str] = ()) -> str:
    """What ``climseg COMMAND [group=choice ...] --help`` prints: purpose, example, keys with defaults, choices."""
    lines = [f"climseg {command} [key=value ...]", "", *_header(command), ""]
    groups = groups_of(command)
    choices = group_choices()
    if groups:
        lines.append("Choices (the first named is the default):")
        for group in groups:
            default = _default_choice(command, group)
            others = [c for c in choices[group] if c != default]
            lines.append(f"  {group} = {' | '.join([default, *others])}")
        lines += [f"Options of another choice: climseg {command} {groups[-1]}=CHOICE --help", ""]
    lines += ["Keys and their defaults (??? must be given):"]
    lines += [f"  {line}" for line in _body(f"{command}.yaml")]
    asked = dict(word.split("=", 1) for word in words if "=" in word)
    for group in groups:
        choice = asked.get(group, _default_choice(command, group))
        options = _body(f"{group}/{choice}.yaml") if choice in choices[group] else []
        if options:
            lines += ["", f"Options of {group}={choice}, as {group}.OPTION=...:", *(f"  {line}" for line in options)]
    return "\n".join(lines)


def _header(command: str) -> list[str]:
    """The comment lines at the top of a command's file."""
    lines = []
    for line in (conf_folder() / f"{command}.yaml").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.removeprefix("#").strip())
    return lines


def _body(file: str) -> list[str]:
    """The keys of a configuration file with their comments, without its header, defaults list and machinery."""
    text = (conf_folder() / file).read_text(encoding="utf-8")
    if text.startswith("# @package _global_"):  # sets keys of other groups, has no options of its own
        return []
    lines: list[str] = []
    in_defaults = in_header = False
    for line in text.splitlines():
        in_header = line.startswith("#") and not lines
        if line.startswith("defaults:"):
            in_defaults = True
        elif in_defaults and not line.startswith((" ", "-")):
            in_defaults = False
        if not (in_header or in_defaults or line.startswith(("_target_", "_partial_", "_convert_"))):
            lines.append(line)
    return lines


def _default_choice(command: str, group: str) -> str:
    for line in (conf_folder() / f"{command}.yaml").read_text(encoding="utf-8").splitlines():
        if line.strip().startswith(f"- {group}:"):
            return line.split(":", 1)[1].split("#")[0].strip()
    raise KeyError(group)
