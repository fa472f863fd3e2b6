"""The args of a user's plugin: the configuration's value, validated against the type that the plugin declares."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec
import msgspec.inspect

from podium.config import Profile, RawArgs
from podium.framework.contract.plugin import Plugin
from podium.framework.contract.status import PluginError

_WITH_FIELDS: Final = (msgspec.inspect.StructType, msgspec.inspect.DataclassType, msgspec.inspect.TypedDictType)


def args_of(plugin: type[Plugin], profile: Profile) -> Any:
    """Return the args of the plugin: a typed value for in-tree plugins and those that declare `Args`.

    Raises:
        PluginError: the args do not fit the declared type. The message names the field.
    """
    args = profile.args_of(plugin.name)
    if plugin.Args is None:
        return args.value if isinstance(args, RawArgs) else args
    return typed_args(plugin, args.value if isinstance(args, RawArgs) else None)


def typed_args(plugin: type[Plugin], value: Any) -> Any:
    """Return the configuration's value as the type that the plugin declares; unchanged if it declares none.

    Fields may be given in camel case, as in the rest of the configuration: `poolSize` for `pool_size`.

    Raises:
        PluginError: the value does not fit. The message names the field.
    """
    if plugin.Args is None:
        return value
    spelt = _spelt({} if value is None else value, msgspec.inspect.type_info(plugin.Args), "args")
    try:
        return msgspec.convert(spelt, plugin.Args, strict=True)
    except msgspec.ValidationError as error:
        text, _, path = str(error).partition(" - at `$")
        field = path.rstrip("`")
        raise PluginError(f"args{field}: {text[:1].lower()}{text[1:]}") from error


def _spelt(value: Any, kind: msgspec.inspect.Type, field_path: str) -> Any:
    """Return the value with its field names spelt as in the type.

    Raises:
        PluginError: the type has no such field, or a field is given in both spellings.
    """
    if isinstance(kind, msgspec.inspect.UnionType):
        fields = [field_type for field_type in kind.types if isinstance(field_type, _WITH_FIELDS)]
        return _spelt(value, fields[0], field_path) if len(fields) == 1 else value
    if isinstance(kind, msgspec.inspect.CollectionType) and isinstance(value, list):
        return [_spelt(item, kind.item_type, f"{field_path}[{index}]") for index, item in enumerate(value)]
    if isinstance(kind, msgspec.inspect.DictType) and isinstance(value, Mapping):
        return {key: _spelt(item, kind.value_type, f"{field_path}.{key}") for key, item in value.items()}
    if not isinstance(kind, _WITH_FIELDS) or not isinstance(value, Mapping):
        return value
    types = {field.encode_name: field.type for field in kind.fields}
    spelt: dict[str, Any] = {}
    for spelling, item in value.items():
        name = spelling if spelling in types else _snake_case(str(spelling))
        if name not in types:
            raise PluginError(f"{field_path}.{spelling}: unknown field; known: {', '.join(types) or 'none'}")
        if name in spelt:
            raise PluginError(f"{field_path}.{spelling}: given twice, in both spellings")
        spelt[name] = _spelt(item, types[name], f"{field_path}.{spelling}")
    return spelt


def _snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
