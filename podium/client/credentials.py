"""The address of the API server, and the credentials for it.

Owns finding the connection's configuration (kubeconfig, in-cluster, a bare URL) and renewing what expires. The only
module that imports kubernetes-asyncio, and only if a plugin or provider makes the token, because the import costs 0.3 s
and 75 MB. Never makes a request.

Source: client-go v0.36 tools/clientcmd and rest/config.go.
Differs: with neither kubeconfig nor master, the kubeconfig in the user's home takes precedence over the in-cluster
configuration, as in kubectl; impersonation is refused.
"""

from __future__ import annotations

import base64
import os
import shutil
import ssl
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio

from podium.client import kubeconfig
from podium.client.client_tls import Pem, TlsContent, TlsSource
from podium.client.kubeconfig import KubeconfigError, Section, choose
from podium.client.server_address import Address, AddressError, base_url, host_name, proxy_from_environment, proxy_url
from podium.client.token_sources import FixedToken, LoadedToken, TokenFile, TokenSource
from podium.lib.clock import Clock
from podium.lib.error_text import UserFacingError, error_text
from podium.lib.log import get_logger
from podium.lib.private_file import SHARED_MEMORY

log = get_logger("client")

_RECHECK_S = 60.0
_RENEW_AGAIN_S = 10.0
_REFRESH_S_MAX = 30.0
_EXEC_S_MAX = 25.0
_LIMITED = """
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
_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class ConnectionConfigError(UserFacingError):
    """The connection cannot be configured. The message names the file and the field."""


@dataclass(frozen=True, slots=True)
class _Settings:
    """The settings that do not change during the life of the process."""

    base_url: str
    tls: TlsSource = field(default_factory=TlsSource)
    server_name: str | None = None
    proxy: Address | None = None


class Credentials:
    """Address, TLS set-up and current token of one API server.

    `generation` grows when `ssl` is replaced because authorities or the client certificate have changed, and with
    `take`: existing connections still use what was there before.
    """

    def __init__(self, settings: _Settings, token: TokenSource, clock: Clock) -> None:
        self.base_url = settings.base_url
        self.server_name = settings.server_name
        self.proxy = None if settings.proxy is None else settings.proxy.url
        self.proxy_authorization = None if settings.proxy is None else settings.proxy.basic_authorization
        self.generation = 0
        self._tls = settings.tls
        self._content: TlsContent | None = None
        self.ssl: ssl.SSLContext | None = None
        self._token = token
        if settings.base_url.startswith("https:"):
            self._content = self._source().read()
            self.ssl = self._tls.context(self._content)
        self._clock = clock
        self._recheck_at_s = clock.monotonic() + _RECHECK_S
        self._renewing = anyio.Lock()
        self._renewed_at_s = -_RENEW_AGAIN_S

    def take(self, other: Credentials) -> None:
        """Use the other's address, TLS set-up and token from now on."""
        self.base_url, self.server_name = other.base_url, other.server_name
        self.proxy, self.proxy_authorization = other.proxy, other.proxy_authorization
        self._tls, self._content, self.ssl = other._tls, other._content, other.ssl
        self._token, self._renewed_at_s = other._token, other._renewed_at_s
        self.generation += 1

    async def authorization(self) -> str | None:
        """The value of the Authorization header; None if podium uses a client certificate, or no credentials."""
        if self._clock.monotonic() >= self._recheck_at_s:
            self._recheck_at_s = self._clock.monotonic() + _RECHECK_S
            await self._refresh(force=False)
        return self._token.header

    async def renew(self, rejected: str | None) -> bool:
        """Renew the credentials after the server has rejected those with this header.

        Returns: whether there is now another token or certificate.
        """
        async with self._renewing:
            if self._token.header != rejected:
                return True
            if self._clock.monotonic() < self._renewed_at_s + _RENEW_AGAIN_S:
                # Thirty requests that are refused at once must not run an exec plugin thirty times.
                return False
            self._renewed_at_s = self._clock.monotonic()
            before = self.generation
            await self._refresh(force=True)
            return self._token.header != rejected or self.generation != before

    async def _refresh(self, *, force: bool) -> None:
        try:
            with anyio.fail_after(_REFRESH_S_MAX):
                await self._token.refresh(force=force)
            self._reload_tls()
        except _LOAD_ERRORS as error:
            # The current credentials may still be valid; if not, the server will reject them.
            log.warning("Cannot refresh credentials", error=error_text(error))

    def look_again(self) -> bool:
        """Reload authorities and client certificate after TLS has failed. Returns whether they have changed."""
        before = self.generation
        try:
            self._reload_tls()
        except _LOAD_ERRORS as error:
            log.warning("Cannot refresh credentials", error=error_text(error))
        return self.generation != before

    def unverified_tls(self) -> ssl.SSLContext:
        """TLS with the user's certificate towards a server that is known by the way to it, not by its certificate.

        Raises: OSError, ValueError: the files cannot be used.
        """
        source = replace(self._source(), authorities=None, verify=False)
        return source.context(source.read())

    def _reload_tls(self) -> None:
        if self._content is None:
            return
        source = self._source()
        content = source.read()
        if content != self._content:
            self.ssl = source.context(content)
            self._content = content
            self.generation += 1

    def _source(self) -> TlsSource:
        made = self._token.certificate
        return self._tls if made is None else replace(self._tls, certificate=Pem(made[0]), key=Pem(made[1]))


_DEFAULT_NAMESPACE = "default"
_MASTER = "--master"
_PROVIDERS = (None, "gcp", "oidc")
_LOAD_ERRORS = (OSError, ValueError, LookupError, TypeError, AssertionError, ConnectionConfigError)


async def load(
    kubeconfig: str | None,
    clock: Clock,
    *,
    context: str | None = None,
    master: str | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Credentials:
    """Find the API server and the credentials for it.

    In this order: `kubeconfig`; with only `master`, that URL without credentials; the files of $KUBECONFIG;
    ~/.kube/config if it exists; the service account of podium's pod. `master` overrides a kubeconfig's server.

    Raises: `ConnectionConfigError`.
    """
    if paths := kubeconfig_paths(kubeconfig, master=master, environ=environ):
        return await _from_kubeconfig(paths, context, master, clock, environ)
    if master:
        return _anonymous(master, clock, environ)
    if environ.get("KUBERNETES_SERVICE_HOST"):
        return in_cluster(clock, environ=environ)
    raise ConnectionConfigError(
        f"no API server to talk to: no kubeconfig was given, $KUBECONFIG is not set, {_home(environ)} does not exist, "
        "and this is not a pod (KUBERNETES_SERVICE_HOST is not set)"
    )


def kubeconfig_paths(
    kubeconfig: str | None, *, master: str | None = None, environ: Mapping[str, str] = os.environ
) -> str:
    """The kubeconfig that `load` reads, or several, separated as in $KUBECONFIG; empty if it reads none."""
    if kubeconfig or master:
        return kubeconfig or ""
    home = _home(environ)
    return environ.get("KUBECONFIG") or (str(home) if home.exists() else "")


def own_namespace(
    kubeconfig: str | None,
    context: str | None = None,
    *,
    environ: Mapping[str, str] = os.environ,
    directory: Path = _SERVICE_ACCOUNT,
) -> str:
    """The namespace that objects are in unless one is named, as for kubectl: the context's, that of podium's pod, or
    `default`. A kubeconfig that cannot be used is an error of `load`, not of this.
    """
    if paths := kubeconfig_paths(kubeconfig, environ=environ):
        with suppress(KubeconfigError):
            return choose(paths, context).namespace or _DEFAULT_NAMESPACE
    elif environ.get("KUBERNETES_SERVICE_HOST"):
        with suppress(OSError):
            return (directory / "namespace").read_text().strip() or _DEFAULT_NAMESPACE
    return _DEFAULT_NAMESPACE


def _home(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("HOME") or Path.home()) / ".kube" / "config"


def in_cluster(
    clock: Clock, *, environ: Mapping[str, str] = os.environ, directory: Path = _SERVICE_ACCOUNT
) -> Credentials:
    """The credentials of the pod's service account.

    Raises: `ConnectionConfigError`.
    """
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT")
    try:
        if not host or not port:
            raise ValueError("KUBERNETES_SERVICE_HOST or KUBERNETES_SERVICE_PORT is not set")
        token = TokenFile(directory / "token")
        address = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
        server = base_url(address, "what KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT make").url
        settings = _Settings(
            server, TlsSource(Pem(str(directory / "ca.crt"))), proxy=proxy_from_environment(server, environ)
        )
        return Credentials(settings, token, clock)
    except (OSError, ValueError) as error:
        raise ConnectionConfigError(f"in-cluster configuration in {directory}: {error}") from error


def for_endpoint(
    url: str,
    clock: Clock,
    *,
    token_file: str = "",
    authorities: str = "",
    verify: bool = True,
    may_send_unencrypted: bool = False,
    environ: Mapping[str, str] = os.environ,
) -> Credentials:
    """The credentials for a server that no kubeconfig describes, such as a running podium.

    Args:
        url: its address, which errors call `--url`.
        token_file: read once, so that it may be a pipe.
        authorities: the file of the authorities that its certificate may be from; by default the system's.
        may_send_unencrypted: whether the token, or the password in the address, may go over plain HTTP.

    Raises: `ConnectionConfigError`.
    """
    try:
        server = base_url(url, "--url")
        header = TokenFile(Path(token_file)).header if token_file else server.basic_authorization
        if header and server.url.startswith("http:") and not may_send_unencrypted:
            raise ConnectionConfigError(
                f"--url: {server.url} is not encrypted, so anybody on the way could read the token: use https://, or "
                "send it all the same with --send-token-unencrypted"
            )
        tls = TlsSource(Pem(authorities) if authorities else None, verify=verify)
        settings = _Settings(server.url, tls, proxy=proxy_from_environment(server.url, environ))
        return Credentials(settings, FixedToken(header), clock)
    except (OSError, ValueError) as error:
        raise ConnectionConfigError(str(error)) from error


def _anonymous(master: str, clock: Clock, environ: Mapping[str, str]) -> Credentials:
    try:
        server = base_url(master, _MASTER)
        settings = _Settings(server.url, proxy=proxy_from_environment(server.url, environ))
        return Credentials(settings, FixedToken(server.basic_authorization), clock)
    except AddressError as error:
        raise ConnectionConfigError(str(error)) from error


async def _from_kubeconfig(
    paths: str, context: str | None, master: str | None, clock: Clock, environ: Mapping[str, str]
) -> Credentials:
    """Read one kubeconfig, or several merged ones separated as in $KUBECONFIG."""
    try:
        chosen = kubeconfig.choose(paths, context)
        cluster, user = chosen.cluster, chosen.user
        _refuse_impersonation(user)
        server = base_url(master, _MASTER) if master else base_url(cluster.text("server"), f"{cluster.called}.server")
        token = await _token_source(paths, chosen, server.basic_authorization)
        tls = TlsSource(
            cluster.pem("certificate-authority"),
            user.pem("client-certificate"),
            user.pem("client-key"),
            not cluster.flag("insecure-skip-tls-verify"),
        )
        settings = _Settings(server.url, tls, _server_name(cluster), _proxy(cluster, server.url, environ))
        return Credentials(settings, token, clock)
    except _LOAD_ERRORS as error:
        raise ConnectionConfigError(f"kubeconfig {paths}: {str(error) or type(error).__name__}") from error


def _refuse_impersonation(user: Section) -> None:
    for name in ("as", "as-uid", "as-groups", "as-user-extra"):
        if user.fields.get(name):
            raise ConnectionConfigError(f"{user.called}.{name}: impersonation is not supported")


def _server_name(cluster: Section) -> str | None:
    named = cluster.text("tls-server-name")
    return host_name(named, f"{cluster.called}.tls-server-name") if named else None


def _proxy(cluster: Section, server: str, environ: Mapping[str, str]) -> Address | None:
    """The proxy from the kubeconfig or from the environment. Raises: `AddressError`."""
    if named := cluster.text("proxy-url"):
        return proxy_url(named, f"{cluster.called}.proxy-url")
    return proxy_from_environment(server, environ)


async def _token_source(paths: str, chosen: kubeconfig.Chosen, otherwise: str | None) -> TokenSource:
    """The source of the user's token; a fixed `otherwise` header if the user has none, as in Go."""
    user = chosen.user
    if (token_file := user.path("tokenFile")) is not None:
        return TokenFile(token_file)
    if user.mapping("exec") or user.mapping("auth-provider"):
        return await _loaded_token(paths, chosen.context, user.called)
    if token := user.text("token"):
        return FixedToken(f"Bearer {token}")
    pair = f"{user.text('username')}:{user.text('password')}"
    if pair != ":":
        return FixedToken(f"Basic {base64.b64encode(pair.encode()).decode()}")
    return FixedToken(otherwise)


async def _loaded_token(paths: str, context: str, called: str) -> LoadedToken:
    """Load a plugin's or provider's token or certificate by kubernetes-asyncio, which writes certificates to files."""
    _have_temporary_directory()
    from kubernetes_asyncio.config import ConfigException
    from kubernetes_asyncio.config.kube_config import KubeConfigLoader, KubeConfigMerger

    merger = KubeConfigMerger(paths)
    try:
        loader = KubeConfigLoader(
            config_dict=merger.config,
            config_base_path=None,
            active_context=context,
            config_persister=merger.save_changes,
        )
    except ConfigException as error:
        raise ConnectionConfigError(str(error)) from error
    assert loader._user is not None
    # Error messages contain this name, which otherwise holds the whole user section including secrets.
    loader._user.name = called
    if loader.provider not in _PROVIDERS:
        raise ConnectionConfigError(f"{called}.auth-provider.name: {loader.provider!r} is not supported")
    _limit_exec_plugin(loader._user)
    token = LoadedToken(loader, ConfigException)
    with anyio.fail_after(_REFRESH_S_MAX):
        await token.refresh(force=True)
    return token


def _have_temporary_directory() -> None:
    """Put temporary files into memory (/dev/shm) if every usual directory is read-only."""
    try:
        tempfile.gettempdir()
    except FileNotFoundError:
        if os.access(SHARED_MEMORY, os.W_OK):
            tempfile.tempdir = SHARED_MEMORY


def _limit_exec_plugin(user: Any) -> None:
    """Give the plugin a timeout of its own: the loader would leave a hanging plugin behind, with its pipes."""
    plugin = user.value.get("exec")
    arguments = (plugin.get("args") or []) if isinstance(plugin, dict) else None
    if not isinstance(arguments, list) or not plugin.get("command"):
        return  # the loader reports the error
    command = str(plugin["command"])
    variables = {each.get("name"): each.get("value") for each in plugin.get("env") or ()}
    if shutil.which(command, path=variables.get("PATH")) is None:
        raise ConnectionConfigError(f"users[].user.exec.command: {command!r} is not an executable file")
    plugin["args"] = ["-I", "-S", "-c", _LIMITED, str(_EXEC_S_MAX), command, *arguments]
    plugin["command"] = sys.executable
