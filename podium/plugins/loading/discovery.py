"""Finding users' own plugins: in a file, in an importable module, or among installed packages.

Owns how a plugin is named on the command line, and the errors for names that cannot be resolved. Never decides whether
a plugin runs: the configuration enables plugins by name.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from collections.abc import Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import FrameType, ModuleType
from typing import Final

from podium.framework import contract as fwk
from podium.lib.error_text import UserFacingError, error_text
from podium.plugins import IN_TREE
from podium.plugins.contrib import CONTRIB
from podium.plugins.loading import trusted_import
from podium.plugins.loading.file_trust import distrust_reason

ENTRY_POINT_GROUP = "podium.plugins"
SAY_AFTER_S: Final = 2.0
LOAD_S_MAX: Final = 20.0
"""The time limit for imports of plugins, and the interval of warnings that they take long."""


class DiscoveryError(UserFacingError):
    """A requested plugin cannot be loaded. The message names it and says why."""


def discover(
    references: Iterable[str], installed: Iterable[EntryPoint] | None = None
) -> Mapping[str, type[fwk.Plugin]]:
    """Return all available plugins by name: in-tree, contributed, installed, and those of the references.

    Args:
        references: `package.module:Class` or `path/file.py:Class`, as given to `--plugin`.
        installed: entry points of the group `podium.plugins`; by default those of the environment.

    Raises:
        DiscoveryError: a reference or entry point cannot be resolved to a plugin, or two plugins have the same name.
    """
    plugins: dict[str, type[fwk.Plugin]] = {**IN_TREE, **CONTRIB}
    for entry_point in entry_points(group=ENTRY_POINT_GROUP) if installed is None else installed:
        _add(
            plugins,
            _require_plugin(_load_entry_point(entry_point), f"installed plugin {entry_point.value}"),
            entry_point.value,
        )
    for reference in references:
        _add(plugins, load(reference), reference)
    return plugins


def load(reference: str) -> type[fwk.Plugin]:
    """Return the plugin class that a reference names.

    Raises:
        DiscoveryError: the file, module or class does not exist, fails to import, or is not a plugin.
    """
    location, colon, name = reference.rpartition(":")
    if not colon or not location or not name:
        raise DiscoveryError(f"--plugin {reference}: expected module:Class or path/file.py:Class")
    module = _from_file(Path(location), reference) if location.endswith(".py") else _from_module(location, reference)
    try:
        plugin = getattr(module, name)
    except AttributeError:
        names = ", ".join(sorted(_plugin_names(module))) or "none"
        raise DiscoveryError(f"--plugin {reference}: no class {name} in {location}; plugins there: {names}") from None
    return _require_plugin(plugin, f"--plugin {reference}")


def reference_being_loaded(frame: FrameType) -> str:
    """Return the plugin that is loaded in that frame or in a caller of it; "" if no plugin is being loaded."""
    outer: FrameType | None = frame
    while outer is not None:
        if outer.f_code is load.__code__:
            return str(outer.f_locals["reference"])
        if outer.f_code is _load_entry_point.__code__:
            return str(outer.f_locals["entry_point"].value)
        outer = outer.f_back
    return ""


def _from_file(path: Path, reference: str) -> ModuleType:
    if not path.is_file():
        raise DiscoveryError(f"--plugin {reference}: there is no file {path}")
    if (reason := distrust_reason(path)) is not None:
        raise DiscoveryError(f"--plugin {reference}: not loaded, others could have changed it: {reason}")
    name = f"podium_plugin_{path.stem}_{abs(hash(path.resolve())):x}"
    try:
        return trusted_import.module_of_file(name, path)
    except BaseException as error:
        raise DiscoveryError(f"--plugin {reference}: {path} fails to load: {error_text(error)}") from error


def _from_module(name: str, reference: str) -> ModuleType:
    try:
        with trusted_import.loading(name.partition(".")[0]):
            return importlib.import_module(name)
    except trusted_import.UntrustedError as error:
        raise DiscoveryError(f"--plugin {reference}: {error}") from error
    except BaseException as error:
        raise DiscoveryError(f"--plugin {reference}: module {name} fails to load: {error_text(error)}") from error


def _load_entry_point(entry_point: EntryPoint) -> object:
    try:
        with trusted_import.loading():
            return entry_point.load()
    except BaseException as error:
        raise DiscoveryError(f"installed plugin {entry_point.value} fails to load: {error_text(error)}") from error


def _require_plugin(candidate: object, label: str) -> type[fwk.Plugin]:
    if not isinstance(candidate, type) or not issubclass(candidate, fwk.Plugin):
        raise DiscoveryError(f"{label} is not a plugin: it does not derive from a plugin class of podium.framework")
    if inspect.isabstract(candidate):
        missing_methods = ", ".join(sorted(candidate.__abstractmethods__))
        raise DiscoveryError(f"{label} is not complete: it does not define {missing_methods}")
    return candidate


def _add(plugins: dict[str, type[fwk.Plugin]], plugin: type[fwk.Plugin], reference: str) -> None:
    same_named = plugins.get(plugin.name)
    if same_named is not None and same_named is not plugin:
        raise DiscoveryError(f"{reference}: there is another plugin named {plugin.name}, {same_named.__module__}")
    plugins[plugin.name] = plugin


def _plugin_names(module: ModuleType) -> Iterable[str]:
    for name, value in vars(module).items():
        if isinstance(value, type) and issubclass(value, fwk.Plugin) and value.__module__ == module.__name__:
            yield name
