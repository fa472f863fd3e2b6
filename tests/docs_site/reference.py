"""Pages of reference made from the code: commands, fields and errors of the configuration, alerts, endpoints, API.

They are made with the site and not kept in the repository, so they cannot say something else than the code.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, Final

import click
import yaml

import podium.framework
import podium.testing
from podium.cli.main import SECTIONS, main
from podium.config.args import ARGS_BY_PLUGIN
from podium.config.scalars import Scalar
from podium.config.schema import ARGS_RECORDS, CONFIGURATION
from podium.config.shapes import Key, ListOf, MapOf, Plain, Record, Shape
from tests.docs_site.configuration_errors import errors
from tests.docs_site.endpoints import endpoints
from tests.docs_site.tables import table
from tests.library_page import signature, text

RULES: Final = Path(__file__).parents[2] / "deploy" / "helm" / "podium" / "files" / "rules.yaml"


_COMMANDS: Final = """\
# Commands

Also as `kubectl podium …`. Every command has `--help`. They are grouped by what they are for: [run](#run) podium beside
a cluster, [ask](#ask) questions about one, [study](#study) what was decided, [check](#check) that podium can run,
[try](#try) it out. What their exit codes mean is in [one table](../exit-codes.md).
"""
_CONFIGURATION: Final = """\
# Fields of the configuration

kube-scheduler's `kubescheduler.config.k8s.io/v1`, with its defaults. `podium config check` names every field that is
wrong, and `podium config effective` prints what is in effect.

## KubeSchedulerConfiguration
"""


# ---------------------------------------------------------------- commands


def commands() -> str:
    """Every command with its arguments and options."""
    parts = [_COMMANDS]
    commands_in_order = list(_all_commands(main, click.Context(main, info_name="podium")))
    section_of = {name: title for title, names in SECTIONS.items() for name in names}
    title = ""
    for command, context in commands_in_order:
        first_name = context.command_path.split()[1]
        if section_of[first_name] != title:
            title = section_of[first_name]
            parts.append(f"\n## {title}\n")
        parts.append(f"\n### {context.command_path}\n\n{_paragraphs(command.help or '')}\n")
        if not isinstance(command, click.Group):
            usage = " ".join(command.collect_usage_pieces(context))
            parts.append(f"\n```text\n{context.command_path} {usage}\n```\n")
        rows = [_option_row(parameter, context) for parameter in command.params if isinstance(parameter, click.Option)]
        parts += table(("option", "meaning", "default"), [row for row in rows if row is not None])
    return "".join(parts)


def _all_commands(group: click.Group, context: click.Context) -> Iterator[tuple[click.Command, click.Context]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None, name
        below = click.Context(command, info_name=name, parent=context)
        yield command, below
        if isinstance(command, click.Group):
            yield from _all_commands(command, below)


def _option_row(option: click.Option, context: click.Context) -> tuple[str, str, str] | None:
    record = option.get_help_record(context)
    if record is None:
        return None  # hidden
    default = option.default
    is_shown = (
        default not in (None, False, "", ()) and not callable(default) and "Sentinel" not in type(default).__name__
    )
    return f"`{record[0]}`", option.help or "", f"`{default}`" if is_shown else ""


def _paragraphs(help_text: str) -> str:
    """A help text; the paragraphs that click does not wrap become blocks."""
    parts = inspect.cleandoc(help_text).split("\n\n")
    return "\n\n".join(
        f"```text\n{paragraph[2:]}\n```" if paragraph.startswith("\b\n") else paragraph for paragraph in parts
    )


# ---------------------------------------------------------------- the configuration


def configuration() -> str:
    """Every field of a KubeSchedulerConfiguration, and of the args of each plugin."""
    parts = [_CONFIGURATION, *table(("field", "type", "default"), _field_rows(CONFIGURATION, ""))]
    for plugin, kind in sorted(ARGS_BY_PLUGIN.items()):
        parts.append(f"\n## Args of {plugin}\n\nUnder `profiles[].pluginConfig[]`, `name: {plugin}`.\n")
        parts += table(("field", "type", "default"), _field_rows(ARGS_RECORDS[kind], "args."))
    return "".join(parts)


def _field_rows(record: Record | Plain, prefix: str) -> Iterator[tuple[str, str, str]]:
    defaults = _defaults(record.cls) if isinstance(record, Record) else {}
    for key in record.keys.values():
        shape, name = key.shape, f"{prefix}{key.name}"
        while isinstance(shape, ListOf):
            shape, name = shape.item, f"{name}[]"
        if isinstance(shape, (Record, Plain)):
            yield from _field_rows(shape, f"{name}.")
        else:
            yield f"`{name}`", _type(shape), _default(key, defaults.get(key.attribute))


def _defaults(kind: type) -> Mapping[str, Any]:
    return {field_.name: field_.default for field_ in fields(kind) if field_.default is not MISSING}


def _type(shape: Shape) -> str:
    if isinstance(shape, MapOf):
        return f"map to {_type(shape.item)}"
    return shape.description if isinstance(shape, Scalar) else "object"


def _default(key: Key, value: Any) -> str:
    if value is None or value == () or value == "":
        return ""
    return f"`{key.shape.write(value)}`".replace("True", "true").replace("False", "false")


# ---------------------------------------------------------------- alerts


def alerts() -> str:
    """Every alert of the rules that are shipped."""
    parts = ["# Alerts\n\nOf the rules in the chart, which work for podium and for kube-scheduler 1.36.\n"]
    for group in yaml.safe_load(RULES.read_text())["groups"]:
        for rule in group["rules"]:
            if "alert" in rule:
                annotations = rule["annotations"]
                parts.append(
                    f"\n## {rule['alert']} ({rule['labels']['severity']})\n\n"
                    f"{annotations['summary']}: {annotations['description']}\n"
                    f"\n```text\n{rule['expr'].strip()}\n```\n\nFor {rule.get('for', '0s')} before it fires.\n"
                )
    return "".join(parts)


# ---------------------------------------------------------------- what plugins import


def api(module: types.ModuleType) -> str:
    """Every public name of a module, from the docstrings."""
    sections = "".join(_section(name, getattr(module, name)) for name in module.__all__)
    return f"# {module.__name__}\n\n{text(inspect.getdoc(module) or '')}\n{sections}"


def _section(name: str, member: Any) -> str:
    if inspect.isclass(member):
        return f"\n## {name}\n\n{text(inspect.getdoc(member) or '')}\n" + "".join(_members(member))
    if inspect.isfunction(member):
        return f"\n## {name}\n\n`{name}{signature(member)}`\n\n{text(inspect.getdoc(member) or '')}\n"
    if inspect.ismodule(member):
        return f"\n## {name}\n\n{text(inspect.getdoc(member) or '')}\n"
    value_text = repr(member) if isinstance(member, (int, str)) else f"a {type(member).__name__}"
    return f"\n## {name}\n\n`{value_text}`\n"


def _members(kind: type) -> Iterator[str]:
    for name, member in vars(kind).items():
        if name.startswith("_") or not inspect.getdoc(member):
            continue
        if isinstance(member, property):
            yield f"\n### `{name}`\n\n{text(inspect.getdoc(member) or '')}\n"
        elif inspect.isfunction(member):
            yield f"\n### `{name}{signature(member)}`\n\n{text(inspect.getdoc(member) or '')}\n"


PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "commands.md": commands,
    "configuration.md": configuration,
    "configuration-errors.md": errors,
    "alerts.md": alerts,
    "endpoints.md": endpoints,
    "framework.md": lambda: api(podium.framework),
    "testing.md": lambda: api(podium.testing),
}
"""What makes each page, by its name in docs/reference."""
