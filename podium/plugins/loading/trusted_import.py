"""Importing plugins, only from files that no untrusted user could have changed, and never from bytecode.

Owns the finder that checks every file of a plugin before it runs, including submodules and later imports. `file_trust`
decides whether a file is trusted.

Why no bytecode: Python runs a `__pycache__` instead of the source next to it, no matter which user wrote it.
"""

from __future__ import annotations

import importlib.util
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Final

from podium.lib.error_text import UserFacingError
from podium.plugins.loading.file_trust import distrust_reason

_OWN_PACKAGE: Final = __name__.partition(".")[0]


class UntrustedError(UserFacingError, ImportError):
    """An untrusted user could have changed a file of a plugin. The message names the file."""


class SourceLoader(SourceFileLoader):
    """Compiles the source on each import and ignores bytecode caches."""

    def get_code(self, fullname: str) -> CodeType:
        """Return the code compiled from the current source."""
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


class _Finder(MetaPathFinder):
    """The first finder: it asks all other finders and checks the file that they module_spec."""

    def __init__(self) -> None:
        self._packages: set[str] = set()
        self._loads = 0

    @contextmanager
    def loading(self, package: str = "") -> Iterator[None]:
        """Check imports within the block, except of installed modules; check that package's modules from then on."""
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)
        if package and package != _OWN_PACKAGE:
            self._packages.add(package)
        self._loads += 1
        try:
            yield
        finally:
            self._loads -= 1

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the other finders' result, if it may run. Raises: UntrustedError."""
        is_plugins = fullname.partition(".")[0] in self._packages
        if not is_plugins and not self._loads:
            return None
        other_finders = (finder for finder in sys.meta_path if finder is not self)
        specs = (finder.find_spec(fullname, path, target) for finder in other_finders)
        module_spec = next((spec for spec in specs if spec is not None), None)
        if module_spec is None or module_spec.origin is None or not module_spec.has_location:
            return module_spec
        if is_plugins or not _is_installed(fullname, Path(module_spec.origin)):
            if (reason := distrust_reason(Path(module_spec.origin))) is not None:
                raise UntrustedError(f"not loaded, others could have changed it: {reason}", name=fullname)
            if type(module_spec.loader) is SourceFileLoader:
                module_spec.loader = SourceLoader(fullname, module_spec.origin)
                module_spec.cached = None
        return module_spec


_finder = _Finder()
loading = _finder.loading


def module_of_file(name: str, path: Path) -> ModuleType:
    """Load the module in that file, which has been checked, and register it under that name in `sys.modules`.

    Raises: whatever its code raises.
    """
    spec = importlib.util.spec_from_file_location(name, path, loader=SourceLoader(name, str(path)))
    assert spec is not None, "a file with a loader has a spec"
    assert spec.loader is not None, "the loader was given"
    module = importlib.util.module_from_spec(spec)
    # Registered before it runs, because dataclasses and typing look their module up by name.
    sys.modules[name] = module
    try:
        with loading():
            spec.loader.exec_module(module)
    except BaseException:
        # A later import of the file may have ended before one that was given up.
        if sys.modules.get(name) is module:
            del sys.modules[name]
        raise
    return module


def _is_installed(name: str, path: Path) -> bool:
    """Return whether the module belongs to Python or podium or is installed beside them: the user trusts these."""
    if name.partition(".")[0] == _OWN_PACKAGE:
        return True
    prefixes = {sys.prefix, sys.base_prefix, *sysconfig.get_paths().values()}
    return any(path.is_relative_to(prefix) for prefix in prefixes)
