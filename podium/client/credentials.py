"""The address of the API server, and the credentials for it.

Owns finding the connection's configuration (kubeconfig, in-cluster, a bare URL) and renewing what expires. Never makes
a request.

Source: client-go v0.36 tools/clientcmd and rest/config.go.
Differs: with neither kubeconfig nor master, the kubeconfig in the user's home takes precedence over the in-cluster
configuration, as in kubectl; impersonation is refused.
"""

from __future__ import annotations

import base64
import os
import ssl
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio

from podium.client import kubeconfig
from podium.client.client_tls import Pem, TlsContent, TlsSource
from podium.client.kubeconfig import KubeconfigError, Section, choose
from podium.client.server_address import Address, AddressError, base_url, host_name, proxy_from_environment, proxy_url
from podium.client.token_sources import FixedToken, PluginToken, ProviderToken, TokenFile, TokenSource
from podium.lib.clock import Clock
from podium.lib.error_text import UserFacingError, error_text
from podium.lib.log import get_logger

log = get_logger("client")

_RECHECK_S = 60.0
_RENEW_AGAIN_S = 10.0
_REFRESH_S_MAX = 30.0
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

    def take(self, source: Credentials) -> None:
        """Use the other's address, TLS set-up and token from now on."""
        self.base_url, self.server_name = source.base_url, source.server_name
        self.proxy, self.proxy_authorization = source.proxy, source.proxy_authorization
        self._tls, self._content, self.ssl = source._tls, source._content, source.ssl
        self._token, self._renewed_at_s = source._token, source._renewed_at_s
        self.generation += 1

    @property
    def header(self) -> str | None:
        """The value of the Authorization header as it was last read, or None as `authorization`."""
        return self._token.header

    def is_recheck_due(self) -> bool:
        """Return whether `authorization` reads the files again, or renews a token that expires."""
        return self._clock.monotonic() >= self._recheck_at_s

    async def authorization(self) -> str | None:
        """Return the value of the Authorization header, or None with a client certificate or no credentials."""
        if self.is_recheck_due():
            self._recheck_at_s = self._clock.monotonic() + _RECHECK_S
            await self._refresh(force=False)
        return self.header

    async def renew(self, header: str | None) -> bool:
        """Renew the credentials after the server has rejected those with this header.

        Returns: whether there is now another token or certificate.
        """
        async with self._renewing:
            if self._token.header != header:
                return True
            if self._clock.monotonic() < self._renewed_at_s + _RENEW_AGAIN_S:
                # Thirty requests that are refused at once must not run an exec plugin thirty times.
                return False
            self._renewed_at_s = self._clock.monotonic()
            generation = self.generation
            await self._refresh(force=True)
            return self._token.header != header or self.generation != generation

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
        generation = self.generation
        try:
            self._reload_tls()
        except _LOAD_ERRORS as error:
            log.warning("Cannot refresh credentials", error=error_text(error))
        return self.generation != generation

    def unverified_tls(self) -> ssl.SSLContext:
        """Return TLS settings with the user's certificate, for a server known by the way to it, not by its own.

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
        pair = self._token.certificate
        return self._tls if pair is None else replace(self._tls, certificate=Pem(pair[0]), key=Pem(pair[1]))


_DEFAULT_NAMESPACE = "default"
_MASTER = "--master"
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
    if context:
        raise ConnectionConfigError(
            f"context {context!r}: there is no kubeconfig to take it from: give --kubeconfig FILE"
        )
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
    """Return the kubeconfig that `load` reads, or several, separated as in $KUBECONFIG; empty if it reads none."""
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
    """Return the namespace that objects are in unless one is named, as for kubectl: the context's, that of podium's
    pod, or `default`. A kubeconfig that cannot be used is an error of `load`, not of this.
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
    """Return the credentials of the pod's service account.

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
    """Return the credentials for a server that no kubeconfig describes, such as a running podium.

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
        selection = kubeconfig.choose(paths, context)
        cluster, user = selection.cluster, selection.user
        _refuse_impersonation(user)
        server = base_url(master, _MASTER) if master else base_url(cluster.text("server"), f"{cluster.called}.server")
        token = await _token_source(paths, selection, server.basic_authorization)
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
    name = cluster.text("tls-server-name")
    return host_name(name, f"{cluster.called}.tls-server-name") if name else None


def _proxy(cluster: Section, server: str, environ: Mapping[str, str]) -> Address | None:
    """Return the proxy from the kubeconfig or from the environment. Raises: `AddressError`."""
    if url := cluster.text("proxy-url"):
        return proxy_url(url, f"{cluster.called}.proxy-url")
    return proxy_from_environment(server, environ)


async def _token_source(paths: str, selection: kubeconfig.Chosen, default_header: str | None) -> TokenSource:
    """Return the source of the user's token; `default_header` if the user has none, as in Go."""
    user = selection.user
    if (token_file := user.path("tokenFile")) is not None:
        return TokenFile(token_file)
    plugin, provider = user.mapping("exec"), user.mapping("auth-provider")
    if plugin or provider:
        is_provider = bool(provider.get("name"))
        source = ProviderToken(paths, selection.context, user) if is_provider else PluginToken(plugin, user.called)
        with anyio.fail_after(_REFRESH_S_MAX):
            await source.refresh(force=True)
        return source
    if token := user.text("token"):
        return FixedToken(f"Bearer {token}")
    pair = f"{user.text('username')}:{user.text('password')}"
    if pair != ":":
        return FixedToken(f"Basic {base64.b64encode(pair.encode()).decode()}")
    return FixedToken(default_header)
