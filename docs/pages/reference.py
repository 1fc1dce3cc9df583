"""The pages of docs that follow from the commands and from the public Python names."""

from __future__ import annotations

import enum
import importlib
import inspect
from collections.abc import Iterator
from typing import Any

import attrs
import click

from dryfit.target import STABLE_NAMES

_COMMANDS_HEAD = """# Command line

Written by `make docs` from the commands themselves.

Exit codes: 0, an answer was given; 1, something that `--fail-on` names was found; 2, an option or a file is wrong; 3, a
fault in dryfit.
Answers go to stdout, messages and progress to stderr. On a terminal tables have colours; elsewhere they are plain
lines. Control characters and other invisible characters in names of a model are printed as escapes, such as `\\x1b`;
JSON keeps the names as they are.

A file that a command writes appears whole or not at all: on failure the old file stays. A symbolic link is followed,
and the file it names is replaced. Devices and named pipes are never replaced, but written into: `-o /dev/stdout` works.

Packages may add commands, and [a few environment variables](hooks.md#switching-plugins-off) switch their plugins off;
`DRYFIT_CACHE_DIR` says where compiled kernels are kept, and `DRYFIT_CACHE_KEY` names the file with the secret
that signs them.
"""

_PYTHON_HEAD = """# Python names

Written by `make docs` from the docstrings. Everything here is imported from `dryfit`: `from dryfit import Builder`.
Names are TensorRT's where it has one; [a table](device-type-api.md) has the C++ names. The names by which a target is
declared, [at the end](#names-of-targets), are imported from their modules. What is not listed here may change.
"""

_TARGET_HEAD = """
## Names of targets

What a package that brings a device imports; [Everything a target may declare](../how-to/declare-a-target.md) has an
example of each.
"""


def command_line_page() -> str:
    """The page of all commands and options, in Markdown."""
    from dryfit.cli.main import dryfit

    context = click.Context(dryfit, info_name="dryfit")
    return _COMMANDS_HEAD + "".join(_command_sections(dryfit, context))


def _command_sections(command: click.Command, context: click.Context) -> Iterator[str]:
    pieces = [piece for parameter in command.params for piece in _usage_pieces(parameter)]
    yield f"\n## {context.command_path}\n\n{inspect.cleandoc(command.help or '')}\n\n"
    if isinstance(command, click.Group):
        yield f"`{context.command_path} COMMAND`\n"
    else:
        yield f"`{' '.join([context.command_path, *pieces, '[OPTIONS]'])}`\n"
    rows = [option_row(option) for option in command.params if isinstance(option, click.Option)]
    if rows:
        yield "\n| option | meaning |\n|---|---|\n" + "".join(rows)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None:
                yield from _command_sections(inner, click.Context(inner, info_name=name, parent=context))


def _usage_pieces(parameter: click.Parameter) -> list[str]:
    return [parameter.make_metavar(click.Context(click.Command("")))] if isinstance(parameter, click.Argument) else []


def option_row(option: click.Option) -> str:
    """An option's names, what it means, and its default where its help shows one."""
    names = ", ".join([*option.opts, *option.secondary_opts])
    if not option.is_flag:
        choices = "\\|".join(option.type.choices) if isinstance(option.type, click.Choice) else None
        names += f" {option.metavar or choices or option.type.name.upper()}"
    facts = [option.help or "", *(["May be given several times."] if option.multiple else [])]
    default = option.get_help_extra(click.Context(click.Command(""))).get("default")
    if default is not None:
        # click puts a text that stands for the default in brackets.
        facts.append(f"Default: {default.removeprefix('(').removesuffix(')')}.")
    return f"| `{names}` | {' '.join(facts)} |\n"


def python_page() -> str:
    """The page of all public names with the first lines of their docstrings, in Markdown."""
    import dryfit

    sections = [_name_section(name, getattr(dryfit, name)) for name in dir(dryfit)]
    return _PYTHON_HEAD + "".join(sections) + _TARGET_HEAD + "".join(_target_sections())


def _target_sections() -> Iterator[str]:
    """The names of each module that a target is declared with."""
    for place, names in STABLE_NAMES.items():
        module = importlib.import_module(place)
        rows = [
            f"| `{name}{_call(getattr(module, name))}` | {_first_line(getattr(module, name))} |\n" for name in names
        ]
        yield f"\n## {place}\n\n| name | |\n|---|---|\n" + "".join(rows)


def _call(value: Any) -> str:
    """The parameters of a function or record; "" for an object that is not called."""
    is_record = inspect.isclass(value) and attrs.has(value)
    if not (is_record or inspect.isfunction(value)):
        return ""
    return f"({', '.join(_parameters(value))})"


def _name_section(name: str, value: Any) -> str:
    if not inspect.isclass(value):
        return f"\n## {name}({', '.join(_parameters(value))})\n\n{_first_line(value)}\n"
    if issubclass(value, enum.Enum):
        return f"\n## {name}\n\n{_first_line(value)}\n\n{', '.join(f'`{member}`' for member in value.__members__)}\n"
    rows = [f"| `{member}` | {text} |\n" for member, text in _members(value)]
    table = "\n| member | |\n|---|---|\n" + "".join(rows) if rows else ""
    return f"\n## {name}\n\n{_first_line(value)}\n{table}"


def _members(value: type) -> Iterator[tuple[str, str]]:
    """Public methods and properties that dryfit defines, in the order of their names."""
    for name in sorted(dir(value)):
        member = inspect.getattr_static(value, name)
        ours = any(name in vars(cls) for cls in value.__mro__ if cls.__module__.startswith("dryfit"))
        if name.startswith("_") or not ours:
            continue
        if isinstance(member, property):
            yield name, _first_line(member)
        elif isinstance(member, (classmethod, staticmethod)) or inspect.isfunction(member):
            function = getattr(value, name)
            yield f"{name}({', '.join(_parameters(function))})", _first_line(function)


def _parameters(function: Any) -> list[str]:
    """Names of the parameters; those that may be left out with `=`."""
    parameters = inspect.signature(function).parameters.values()
    prefixes: dict[object, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return [
        f"{prefixes.get(one.kind, '')}{one.name}{'' if one.default is inspect.Parameter.empty else '='}"
        for one in parameters
        if one.name != "self"
    ]


def _first_line(value: Any) -> str:
    lines = (inspect.getdoc(value) or "").splitlines()
    return lines[0].replace("|", "\\|") if lines else ""
