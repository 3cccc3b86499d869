"""Help texts, made from conf/ itself, so that they cannot differ from what the commands take."""

from collections.abc import Mapping, Sequence

from climseg.cli.configuration import conf_folder, default_choices, group_choices


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
    chosen = {group: str(choice) for group, choice in default_choices(f"{command}.yaml").items()}
    asked = dict(word.split("=", 1) for word in words if "=" in word)
    # By group, of the choices taken and of those within them, such as labels/rivers: choice and keys.
    options: dict[str, tuple[str, list[str]]] = {}
    for group in chosen:
        options |= _options(group, asked.get(group, chosen[group]), asked)
    if chosen:
        lines.append("Choices (the first named is the one taken):")
        for group in [*chosen, *(g for g in options if g not in chosen)]:
            taken = options[group][0] if group in options else chosen[group]
            others = [c for c in group_choices()[group] if c != taken]
            lines.append(f"  {group} = {' | '.join([taken, *others])}")
        lines += [f"Options of another choice: climseg {command} GROUP=CHOICE --help", ""]
    lines += ["Keys and their defaults (??? must be given):"]
    lines += [f"  {line}" for line in _body(f"{command}.yaml")]
    for group, (choice, body) in options.items():
        if body:
            key = group.replace("/", ".")
            lines += ["", f"Options of {group}={choice}, as {key}.OPTION=...:", *(f"  {line}" for line in body)]
    return "\n".join(lines)


def _options(group: str, choice: str, asked: Mapping[str, str]) -> dict[str, tuple[str, list[str]]]:
    """By group, the choice and its keys: of this one and of those within it."""
    if choice not in group_choices()[group]:
        return {}
    file = f"{group}/{choice}.yaml"
    found = {group: (choice, _body(file))}
    for inner, own in default_choices(file).items():
        name = f"{group}/{inner}"
        taken = asked.get(name, str(own) if own is not None else "null")
        found |= _options(name, taken, asked) or {name: (taken, [])}
    return found


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
        if not (in_header or in_defaults or line.lstrip().startswith(("_target_", "_partial_", "_convert_"))):
            lines.append(line)
    return lines
