"""The args of a user's plugin: the configuration's value, held against the type that the plugin declares."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import msgspec

from podium.config import Profile, RawArgs
from podium.framework.interface import Plugin
from podium.framework.status import PluginError


def args_of(plugin: type[Plugin], profile: Profile) -> Any:
    """What the plugin is constructed with: a typed value for in-tree plugins and for those that declare `Args`.

    Raises:
        PluginError: the args do not fit the declared type; names the field.
    """
    given = profile.args_of(plugin.name)
    if plugin.Args is None:
        return given.value if isinstance(given, RawArgs) else given
    return typed_args(plugin, given.value if isinstance(given, RawArgs) else None)


def typed_args(plugin: type[Plugin], value: Any) -> Any:
    """What the configuration says, as the type that the plugin declares; as it is, if it declares none.

    Raises:
        PluginError: it does not fit; names the field.
    """
    if plugin.Args is None:
        return value
    _refuse_unknown(plugin, value)
    try:
        return msgspec.convert({} if value is None else value, plugin.Args, strict=True)
    except msgspec.ValidationError as error:
        text, _, path = str(error).partition(" - at `$")
        field = path.rstrip("`")
        raise PluginError(f"args{field}: {text[:1].lower()}{text[1:]}") from error


def _refuse_unknown(plugin: type[Plugin], value: Any) -> None:
    if not isinstance(value, Mapping) or plugin.Args is None:
        return
    known = _fields(plugin.Args)
    unknown = [name for name in value if known and name not in known]
    if unknown:
        raise PluginError(f"args.{unknown[0]}: unknown field; known: {', '.join(known)}")


def _fields(kind: type) -> tuple[str, ...]:
    if dataclasses.is_dataclass(kind):
        return tuple(each.name for each in dataclasses.fields(kind))
    return tuple(getattr(kind, "__struct_encode_fields__", ()))
