"""The sources of bearer tokens, and how they are renewed.

Owns the kinds: fixed, in a file that the kubelet rewrites, and those that kubernetes-asyncio gets from an exec plugin
or a provider (OIDC, GCP). Never decides when to refresh: `client.credentials` does.

The only module that imports kubernetes-asyncio, and only if the library gets the token, because the import costs 0.3 s
and 75 MB. It calls the public methods of `KubeConfigLoader` and `KubeConfigMerger`. What the library cannot do:

- Keep secrets out of its error messages: they quote the sections around the one that they complain about. So a loader
  is handed a kubeconfig with one user in it.
- End a plugin that hangs: it waits without limit, and leaves the process behind when it is cancelled.
- Run a plugin again when the server has rejected its token: it does so after the expiry only. And it runs a plugin that
  states no expiry every time, where client-go keeps the token until the server rejects it.
- Write the tokens that a provider has refreshed to the kubeconfig, and keep secrets out of its messages, both at once:
  `load_kube_config` does the one, `load_kube_config_from_dict` the other.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from podium.client.kubeconfig import KubeconfigError, Section
from podium.lib.bounded_read import read_file
from podium.lib.private_file import SHARED_MEMORY

_BYTES_MAX: Final = 1024**2
"""Limit of a token file. A token has a few kilobytes, and what fits into no header is refused elsewhere."""

_EXEC_S_MAX: Final = 25.0
_LIMITED: Final = """
import os, subprocess, sys, time
ends_s, parent = time.monotonic() + float(sys.argv[1]), os.getppid()
with subprocess.Popen(sys.argv[2:]) as command:
    while True:
        try:
            sys.exit(command.wait(0.5))
        except subprocess.TimeoutExpired:
            if time.monotonic() >= ends_s or os.getppid() != parent:
                command.kill()
                raise
"""
"""Runs a command with a timeout in seconds, at most as long as the process that asks for it runs.

Standard input is the command's: that the parent has changed is the only sign of its end.
"""
_PROVIDERS: Final = ("gcp", "oidc")
_NAME: Final = "podium"
_USER_IN_ERRORS: Final = f"kube-config/users[name={_NAME}]/user"


class TokenSource(Protocol):
    """A token, or a client certificate instead of it, and a way to renew both."""

    @property
    def header(self) -> str | None:
        """The value of the Authorization header; None without a token."""
        ...

    @property
    def certificate(self) -> tuple[str, str] | None:
        """Files of a client certificate and its key, if the source makes one."""
        ...

    async def refresh(self, *, force: bool) -> None:
        """Renew what has expired or soon will; with `force`, everything."""
        ...


class FixedToken:
    """A token that never changes, or no token."""

    def __init__(self, header: str | None) -> None:
        self.header = _check_header(header) if header else None
        self.certificate: tuple[str, str] | None = None

    async def refresh(self, *, force: bool) -> None:
        """Do nothing: a fixed token cannot be renewed."""


class TokenFile:
    """A token in a file, as kubelet keeps one for each service account."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.header: str | None = _read(path)
        self.certificate: tuple[str, str] | None = None

    async def refresh(self, *, force: bool) -> None:  # noqa: ARG002
        """Read the file again: a local read of about a kilobyte."""
        self.header = _read(self._path)


@dataclass
class _LoadedSettings:
    """The settings that a loader makes.

    The library's own `Configuration` has more fields, and changes log levels when it is made.
    """

    api_key: dict[str, str] = field(default_factory=dict)
    cert_file: str | None = None
    key_file: str | None = None


class _LoadedToken:
    """A token, or client certificate, from kubernetes-asyncio's loader."""

    def __init__(self) -> None:
        self.header: str | None = None
        self.certificate: tuple[str, str] | None = None
        # The library makes temporary files for certificates. Where every usual directory is read-only, memory is left.
        try:
            tempfile.gettempdir()
        except FileNotFoundError:
            if os.access(SHARED_MEMORY, os.W_OK):
                tempfile.tempdir = SHARED_MEMORY

    async def _load(self, loader: Any, called: str) -> None:
        """Have the loader get a token, unless it has one that is still good; `called` is the user's name in errors."""
        from kubernetes_asyncio.config import ConfigException

        settings = _LoadedSettings()
        try:
            await loader.load_and_set(settings)
        except ConfigException as error:
            raise ValueError(str(error).replace(_USER_IN_ERRORS, called)) from error
        header = settings.api_key.get("BearerToken")
        self.header = _check_header(header) if header else None
        if settings.cert_file is not None and settings.key_file is not None:
            self.certificate = settings.cert_file, settings.key_file


class PluginToken(_LoadedToken):
    """A token or client certificate that an exec plugin prints.

    Args:
        plugin: the field `exec` of the user.
        called: the user's name in errors.

    Raises: KubeconfigError.
    """

    def __init__(self, plugin: Mapping[str, Any], called: str) -> None:
        super().__init__()
        self._plugin = _with_deadline(plugin, f"{called}.exec")
        self._called = called
        self._loader: Any = None

    async def refresh(self, *, force: bool) -> None:
        """Run the plugin if its token is known to expire soon, or if a new token is demanded."""
        from kubernetes_asyncio.config.kube_config import KubeConfigLoader

        if force:
            # A new loader does not know the expiry of the token that the server has rejected.
            self._loader = KubeConfigLoader(_kubeconfig_of({"exec": self._plugin}), config_base_path=None)
        elif not hasattr(self._loader, "exec_plugin_expiry"):
            return
        await self._load(self._loader, self._called)


class ProviderToken(_LoadedToken):
    """A token of an `auth-provider`. A refreshed one is written back to the kubeconfig, as the old one is void.

    Args:
        paths: the kubeconfig, or several, separated as in $KUBECONFIG.

    Raises: KubeconfigError.
    """

    def __init__(self, paths: str, context: str, user: Section) -> None:
        super().__init__()
        provider = user.mapping("auth-provider")["name"]
        if provider not in _PROVIDERS:
            raise KubeconfigError(f"{user.called}.auth-provider.name: {provider!r} is not supported")
        from kubernetes_asyncio.config.kube_config import KubeConfigLoader, KubeConfigMerger

        merger: Any = KubeConfigMerger(paths)
        # The merger writes the files whose content, as it has read it, is changed by the loader.
        name = merger.config["contexts"].get_with_name(context)["context"]["user"]
        fields = merger.config["users"].get_with_name(name).value["user"]
        self._called = user.called
        self._loader = KubeConfigLoader(
            _kubeconfig_of(fields), config_base_path=None, config_persister=lambda _: merger.save_changes()
        )

    async def refresh(self, *, force: bool) -> None:  # noqa: ARG002 - a provider renews no token before its expiry
        """Ask the provider for another token if the present one expires soon."""
        await self._load(self._loader, self._called)


def _kubeconfig_of(user: Mapping[str, Any]) -> dict[str, Any]:
    """Return a kubeconfig with this user, and with a cluster that the loader has nothing to read for."""
    return {
        "clusters": [{"name": _NAME, "cluster": {"server": ""}}],
        "users": [{"name": _NAME, "user": user}],
        "contexts": [{"name": _NAME, "context": {"cluster": _NAME, "user": _NAME}}],
        "current-context": _NAME,
    }


def _with_deadline(plugin: Mapping[str, Any], called: str) -> Mapping[str, Any]:
    """Return the plugin, run by a process that ends it after a while."""
    arguments, variables = plugin.get("args") or [], plugin.get("env") or []
    if not isinstance(arguments, list):
        raise KubeconfigError(f"{called}.args is not a list")
    if not isinstance(variables, list) or not all(isinstance(variable, dict) for variable in variables):
        raise KubeconfigError(f"{called}.env is not a list of mappings")
    if not plugin.get("command"):
        return plugin  # the loader reports the error
    command = str(plugin["command"])
    path = {variable.get("name"): variable.get("value") for variable in variables}.get("PATH")
    if shutil.which(command, path=path) is None:
        raise KubeconfigError(f"{called}.command: {command!r} is not an executable file")
    limited = ["-I", "-S", "-c", _LIMITED, str(_EXEC_S_MAX), command, *arguments]
    return {**plugin, "command": sys.executable, "args": limited}


def _read(path: Path) -> str:
    try:
        token = read_file(path, _BYTES_MAX).decode().strip()
    except OSError as error:
        raise OSError(f"token file {path}: {error.strerror}") from error
    except UnicodeDecodeError:
        raise ValueError(f"token file {path}: it is not text") from None
    if not token:
        raise ValueError(f"token file {path} is empty")
    try:
        return _check_header(f"Bearer {token}")
    except ValueError as error:
        raise ValueError(f"token file {path}: {error}") from error


def _check_header(header: str) -> str:
    """Return the header, if it can be sent. Raises: ValueError."""
    header = header.strip()
    if not header.isascii() or not header.isprintable():
        raise ValueError("the token holds what no header can hold")
    return header
