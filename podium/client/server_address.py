"""The address of an API server, and the proxy for it.

Owns the validation of URLs. Never makes a request.

Source: client-go v0.36 rest/url_utils.go; golang.org/x/net http/httpproxy.
"""

from __future__ import annotations

import base64
import urllib.parse
import urllib.request
from collections.abc import Mapping
from ipaddress import ip_address
from typing import NamedTuple

from podium.lib.error_text import UserFacingError


class AddressError(UserFacingError, ValueError):
    """A URL or a host name is invalid. The message says where it was given."""


class Address(NamedTuple):
    """A URL without user and password, so that it can be logged, and these two."""

    url: str
    user_info: tuple[str, str] | None = None

    @property
    def basic_authorization(self) -> str | None:
        """The value of the basic Authorization header for user and password."""
        if self.user_info is None:
            return None
        return f"Basic {base64.b64encode(':'.join(self.user_info).encode()).decode()}"


def base_url(text: str, called: str) -> Address:
    """Return the URL that the paths of requests are appended to.

    Raises: `AddressError`.
    """
    address = _address(_check(text, called)._replace(query="", fragment=""))
    return address._replace(url=address.url.rstrip("/"))


def proxy_url(text: str, called: str) -> Address:
    """Return the validated URL of a proxy.

    Raises: `AddressError`.
    """
    return _address(_check(text, called))


def host_name(text: str, called: str) -> str:
    """Return the validated name that the server's certificate must have.

    Raises: `AddressError`.
    """
    if not _is_host(text):
        raise AddressError(f"{called} is not the name of a host: {text!r}")
    return text


def proxy_from_environment(server: str, environ: Mapping[str, str]) -> Address | None:
    """Return the proxy that HTTPS_PROXY, HTTP_PROXY and NO_PROXY name, or None for a server on this machine.

    Raises: `AddressError`.
    """
    url = urllib.parse.urlsplit(server)
    host = url.hostname or ""
    variables = {name.lower(): value for name, value in environ.items() if name.lower().endswith("_proxy")}
    proxy = variables.get(f"{url.scheme}_proxy")
    if not proxy or _is_loopback(host):
        return None
    if urllib.request.proxy_bypass_environment(host, {"no": variables.get("no_proxy", "")}):  # type: ignore[attr-defined]
        return None
    return proxy_url(proxy if "://" in proxy else f"http://{proxy}", f"{url.scheme}_proxy in the environment")


def _check(text: str, called: str) -> urllib.parse.SplitResult:
    try:
        url = urllib.parse.urlsplit(text)
        # The parser silently removes line breaks.
        is_one_line = text.isprintable() and " " not in text
        if is_one_line and url.scheme in ("http", "https") and url.port != 0 and _is_host(url.hostname or ""):
            return url
    except ValueError:
        pass
    # The part before an @ may contain a password.
    raise AddressError(f"{called} is not an http or https URL: {text.rpartition('@')[2]!r}")


def _address(url: urllib.parse.SplitResult) -> Address:
    user_info, separator, place = url.netloc.rpartition("@")
    if not separator:
        return Address(url.geturl())
    user, _, password = user_info.partition(":")
    return Address(url._replace(netloc=place).geturl(), (urllib.parse.unquote(user), urllib.parse.unquote(password)))


def _is_host(text: str) -> bool:
    try:
        return bool(text.encode("idna"))
    except ValueError:
        return False


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
