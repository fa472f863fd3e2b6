"""Where the API server is, and who we are to it.

Owns finding the connection's configuration (kubeconfig, in-cluster, a bare URL) and keeping what expires fresh.
The only module that imports kubernetes-asyncio, and only where a plugin or provider makes the token: it costs 0.3 s and
75 MB. Never makes a request.

Source: client-go v0.36 tools/clientcmd and rest/config.go.
Differs: with neither kubeconfig nor master, the kubeconfig of the user's home is looked at before the in-cluster
configuration, as kubectl does; impersonation is refused.
"""

from __future__ import annotations

import base64
import os
import shutil
import ssl
import sys
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import anyio
import structlog
import yaml

from podium.kube import kubeconfig
from podium.kube.kubeconfig import Section
from podium.kube.token_sources import FixedToken, LoadedToken, TokenFile, TokenSource
from podium.lib.clock import Clock

log = structlog.get_logger(__name__)

_RECHECK_S = 60.0
_RENEW_AGAIN_S = 10.0
_REFRESH_S_MAX = 30.0
_EXEC_S_MAX = 25.0
_LIMITED = "import subprocess, sys; sys.exit(subprocess.run(sys.argv[2:], timeout=float(sys.argv[1])).returncode)"
"""Runs a command, and ends it after so many seconds."""
_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class ConnectionConfigError(Exception):
    """The connection cannot be configured; the text names the file and the field."""


@dataclass(frozen=True, slots=True)
class _Settings:
    """What is fixed for the life of the process."""

    base_url: str
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    verify: bool = True
    server_name: str | None = None
    proxy: str | None = None


class Credentials:
    """Address, TLS set-up and current token of one API server.

    `generation` grows when the client certificate has changed: connections made before still show the old one.
    """

    def __init__(self, settings: _Settings, token: TokenSource, clock: Clock) -> None:
        self.base_url = settings.base_url
        self.server_name = settings.server_name
        self.proxy = settings.proxy
        self.ssl = _ssl_context(settings) if settings.base_url.startswith("https:") else None
        self.generation = 0
        self._cert_file = settings.cert_file
        self._key_file = settings.key_file
        self._cert_stamp = self._stamp()
        self._token = token
        self._clock = clock
        self._recheck_at_s = clock.monotonic() + _RECHECK_S
        self._renewing = anyio.Lock()
        self._renewed_at_s = -_RENEW_AGAIN_S

    async def authorization(self) -> str | None:
        """The value of the Authorization header; none where a certificate, or nothing, identifies us."""
        if self._clock.monotonic() >= self._recheck_at_s:
            self._recheck_at_s = self._clock.monotonic() + _RECHECK_S
            await self._refresh(force=False)
        return self._token.header

    async def renew(self, rejected: str | None) -> bool:
        """Get new credentials after the server has rejected those with this header.

        Returns: whether there is now another token or certificate.
        """
        async with self._renewing:
            if self._token.header != rejected:
                return True
            if self._clock.monotonic() < self._renewed_at_s + _RENEW_AGAIN_S:
                # Thirty requests refused at once must not run a plugin thirty times.
                return False
            self._renewed_at_s = self._clock.monotonic()
            before = self.generation
            await self._refresh(force=True)
            return self._token.header != rejected or self.generation != before

    async def _refresh(self, *, force: bool) -> None:
        try:
            with anyio.fail_after(_REFRESH_S_MAX):
                await self._token.refresh(force=force)
            self._reload_certificate()
        except _LOAD_ERRORS as error:
            # What we have may well go on working; if not, the server will say so.
            log.warning("credentials not refreshed", error=str(error) or type(error).__name__)

    def _reload_certificate(self) -> None:
        self._cert_file, self._key_file = self._token.certificate or (self._cert_file, self._key_file)
        stamp = self._stamp()
        if stamp == self._cert_stamp or self.ssl is None or self._cert_file is None:
            return
        self.ssl.load_cert_chain(self._cert_file, self._key_file)
        self._cert_stamp = stamp
        self.generation += 1

    def _stamp(self) -> tuple[str, int] | None:
        return None if self._cert_file is None else (self._cert_file, Path(self._cert_file).stat().st_mtime_ns)


_MASTER = "--master"
_LOAD_ERRORS = (OSError, ValueError, LookupError, TypeError, AssertionError, yaml.YAMLError, ConnectionConfigError)


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
    ~/.kube/config if it is there; the service account of the pod we run in. `master` wins over a kubeconfig's server.

    Raises: `ConnectionConfigError`.
    """
    if kubeconfig:
        return await _from_kubeconfig(kubeconfig, context, master, clock, environ)
    if master:
        return Credentials(_Settings(_base_url(master, _MASTER)), FixedToken(None), clock)
    if environ.get("KUBECONFIG"):
        return await _from_kubeconfig(environ["KUBECONFIG"], context, master, clock, environ)
    home = Path(environ.get("HOME") or Path.home()) / ".kube" / "config"
    if home.exists():
        return await _from_kubeconfig(str(home), context, master, clock, environ)
    if environ.get("KUBERNETES_SERVICE_HOST"):
        return in_cluster(clock, environ=environ)
    raise ConnectionConfigError(
        f"no API server to talk to: no kubeconfig was given, $KUBECONFIG is not set, {home} does not exist, "
        "and this is not a pod (KUBERNETES_SERVICE_HOST is not set)"
    )


def in_cluster(
    clock: Clock, *, environ: Mapping[str, str] = os.environ, directory: Path = _SERVICE_ACCOUNT
) -> Credentials:
    """The credentials of the pod's service account.

    Raises: `ConnectionConfigError`.
    """
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT")
    ca_file = directory / "ca.crt"
    try:
        if not host or not port:
            raise ValueError("KUBERNETES_SERVICE_HOST or KUBERNETES_SERVICE_PORT is not set")
        token = TokenFile(directory / "token")
        if not ca_file.read_bytes():
            raise ValueError(f"{ca_file} is empty")
    except (OSError, ValueError) as error:
        raise ConnectionConfigError(f"in-cluster configuration in {directory}: {error}") from error
    address = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    base_url = _base_url(address, "what KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT make")
    settings = _Settings(base_url, ca_file=str(ca_file), proxy=_proxy_from_environment(base_url, environ))
    return Credentials(settings, token, clock)


async def _from_kubeconfig(
    paths: str, context: str | None, master: str | None, clock: Clock, environ: Mapping[str, str]
) -> Credentials:
    """Read one kubeconfig, or several merged ones separated as in $KUBECONFIG."""
    try:
        chosen = kubeconfig.choose(paths, context)
        cluster, user = chosen.cluster, chosen.user
        _refuse_impersonation(user)
        if master:
            base_url = _base_url(master, _MASTER)
        else:
            base_url = _base_url(cluster.text("server"), "clusters[].cluster.server")
        token = await _token_source(paths, chosen)
        if not (token.header or "").isprintable():
            raise ConnectionConfigError("the token holds a control character")
        cert_file, key_file = token.certificate or (user.file("client-certificate"), user.file("client-key"))
        settings = _Settings(
            base_url,
            ca_file=cluster.file("certificate-authority"),
            cert_file=cert_file,
            key_file=key_file,
            verify=not cluster.fields.get("insecure-skip-tls-verify"),
            server_name=cluster.text("tls-server-name") or None,
            proxy=_proxy(cluster, base_url, environ),
        )
        return Credentials(settings, token, clock)
    except _LOAD_ERRORS as error:
        raise ConnectionConfigError(f"kubeconfig {paths}: {str(error) or type(error).__name__}") from error


def _refuse_impersonation(user: Section) -> None:
    for field in ("as", "as-uid", "as-groups", "as-user-extra"):
        if user.fields.get(field):
            raise ConnectionConfigError(f"users[].user.{field}: impersonation is not supported")


async def _token_source(paths: str, chosen: kubeconfig.Chosen) -> TokenSource:
    """The way the user's token is got, and kept fresh."""
    user = chosen.user
    if (token_file := user.path("tokenFile")) is not None:
        return TokenFile(token_file)
    if "exec" in user.fields or "auth-provider" in user.fields:
        return await _loaded_token(paths, chosen.context)
    if token := user.text("token"):
        return FixedToken(f"Bearer {token}")
    if "username" in user.fields and "password" in user.fields:
        pair = f"{user.text('username')}:{user.text('password')}"
        return FixedToken(f"Basic {base64.b64encode(pair.encode()).decode()}")
    return FixedToken(None)


async def _loaded_token(paths: str, context: str) -> LoadedToken:
    """What a plugin or a provider gives, by kubernetes-asyncio's loader."""
    from kubernetes_asyncio.config import ConfigException
    from kubernetes_asyncio.config.kube_config import KubeConfigLoader, KubeConfigMerger

    merger = KubeConfigMerger(paths)
    loader = KubeConfigLoader(
        config_dict=merger.config,
        config_base_path=None,
        active_context=context,
        config_persister=merger.save_changes,
    )
    _limit_exec_plugin(loader._user)
    try:
        with anyio.fail_after(_REFRESH_S_MAX):
            await loader._load_authentication()
    except ConfigException as error:
        raise ConnectionConfigError(str(error)) from error
    return LoadedToken(loader, ConfigException)


def _limit_exec_plugin(user: Any) -> None:
    """Have the plugin end by itself where it hangs: who runs it would leave it behind, with its pipes."""
    plugin = user.value.get("exec")
    arguments = (plugin.get("args") or []) if isinstance(plugin, dict) else None
    if not isinstance(arguments, list) or not plugin.get("command"):
        return  # the loader says what is wrong
    command = str(plugin["command"])
    variables = {each.get("name"): each.get("value") for each in plugin.get("env") or ()}
    if shutil.which(command, path=variables.get("PATH")) is None:
        raise ConnectionConfigError(f"users[].user.exec.command: {command!r} is not an executable file")
    plugin["args"] = ["-I", "-S", "-c", _LIMITED, str(_EXEC_S_MAX), command, *arguments]
    plugin["command"] = sys.executable


def _ssl_context(settings: _Settings) -> ssl.SSLContext:
    try:
        made = ssl.create_default_context(cafile=settings.ca_file)
    except (OSError, ssl.SSLError) as error:
        raise ConnectionConfigError(f"certificate authority {settings.ca_file}: {error}") from error
    # Python 3.13 became stricter about certificates than Go is; clusters' own authorities often fail its checks.
    made.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not settings.verify:
        made.check_hostname = False
        made.verify_mode = ssl.CERT_NONE
    if settings.cert_file is not None:
        try:
            made.load_cert_chain(settings.cert_file, settings.key_file)
        except (OSError, ssl.SSLError) as error:
            raise ConnectionConfigError(f"client certificate {settings.cert_file}: {error}") from error
    return made


def _base_url(text: str, called: str) -> str:
    """The URL of an API server. Raises: `ConnectionConfigError`."""
    return _checked_url(text, called).rstrip("/")


def _checked_url(text: str, called: str) -> str:
    try:
        url = urllib.parse.urlsplit(text)
        is_good = url.scheme in ("http", "https") and bool((url.hostname or "").encode("idna")) and url.port != 0
    except ValueError:
        is_good = False
    if not is_good:
        # Before an @ may stand a password.
        raise ConnectionConfigError(f"{called} is not an http or https URL: {text.rpartition('@')[2]!r}")
    return text


def _proxy(cluster: Section, base_url: str, environ: Mapping[str, str]) -> str | None:
    """The proxy that the kubeconfig names, or the environment. Raises: `ConnectionConfigError`."""
    if named := cluster.text("proxy-url"):
        return _checked_url(named, "clusters[].cluster.proxy-url")
    return _proxy_from_environment(base_url, environ)


def _proxy_from_environment(base_url: str, environ: Mapping[str, str]) -> str | None:
    """The proxy that HTTPS_PROXY, HTTP_PROXY and NO_PROXY name for the server; never one for this machine.

    Raises: `ConnectionConfigError`.
    """
    url = urllib.parse.urlsplit(base_url)
    host = url.hostname or ""
    variables = {name.lower(): value for name, value in environ.items() if name.lower().endswith("_proxy")}
    proxy = variables.get(f"{url.scheme}_proxy")
    if not proxy or _is_loopback(host):
        return None
    if urllib.request.proxy_bypass_environment(host, {"no": variables.get("no_proxy", "")}):  # type: ignore[attr-defined]
        return None
    return _checked_url(proxy if "://" in proxy else f"http://{proxy}", f"{url.scheme}_proxy in the environment")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
