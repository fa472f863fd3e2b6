"""URLs.

Source: k8s.io/apiserver/pkg/cel v0.36.2 and Go 1.26's net/url.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, NamedTuple

from podium.cel.errors import EvaluationError
from podium.cel.functions import Overload, per_size
from podium.cel.libraries.addresses import parse_address
from podium.cel.types import URL as URL_TYPE
from podium.cel.types import Type
from podium.cel.values import Opaque

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.\-]*):")
_PORT = re.compile(r"(?::[0-9]*)?")
_USER_INFO = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*")
_HOST = re.compile(r"(?:[A-Za-z0-9\-_.~!$&'()*+,;=:\[\]<>\"]|[^\x00-\x7f]|%25|%[89a-fA-F][0-9a-fA-F])*")
_ESCAPE = re.compile(rb"%([0-9a-fA-F]{2})")
_BAD_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2})")
_PATH_KEPT = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~$&+,/:;=@")
_PATH_VALID = re.compile(r"[A-Za-z0-9\-_.~$&+,/:;=@!'()*\[\]%]*")
_QUERY_PARAMETERS_MAX = 10_000


class Parts(NamedTuple):
    """The parts of a URL. The host includes the port."""

    scheme: str
    opaque: str
    host: str
    path: str
    query: str


class Url(Opaque):
    """The CEL value of a URL."""

    __slots__ = ("parts", "text")
    TYPE: ClassVar[Type] = URL_TYPE

    def __init__(self, text: str, parts: Parts) -> None:
        self.text = text
        self.parts = parts

    def equals(self, value: Url) -> bool:
        """Tell whether both have the same text after parsing."""
        return self.parts == value.parts and self.text.partition("#")[2] == value.text.partition("#")[2]


def _fail(problem: str) -> EvaluationError:
    return EvaluationError(f"URL parse error during conversion from string: {problem}")


def _request_parts(text: str) -> Parts:
    """Split an absolute URL or an absolute path into its parts. A fragment is not separated.

    Raises: EvaluationError.
    """
    if not text or _CONTROL.search(text):
        raise _fail("invalid control character in URL" if text else "empty url")
    # Go accepts the asterisk of `OPTIONS *`.
    if text == "*":
        return Parts("", "", "", "*", "")
    match = _SCHEME.match(text)
    if match is None and text.startswith(":"):
        raise _fail("missing protocol scheme")
    scheme = match[1].lower() if match else ""
    remainder, _, query = text[match.end() if match else 0 :].partition("?")
    if not remainder.startswith("/"):
        if not scheme:
            raise _fail("invalid URI for request")
        return Parts(scheme, remainder, "", "", query)
    host = ""
    if scheme and remainder.startswith("//"):
        authority, slash, path = remainder[2:].partition("/")
        host, remainder = _host(scheme, authority), slash + path
    if _BAD_ESCAPE.search(remainder):
        raise _fail("invalid URL escape")
    return Parts(scheme, "", host, remainder, query)


def _host(scheme: str, authority: str) -> str:
    user, separator, host = authority.rpartition("@")
    if separator and (_USER_INFO.fullmatch(user) is None or _BAD_ESCAPE.search(user)):
        raise _fail("invalid userinfo")
    if "[" in host:
        return _literal_host(host)
    first = host.find(":")
    last = first if scheme in ("http", "https") else host.rfind(":")
    if first >= 0 and _PORT.fullmatch(host[last:]) is None:
        raise _fail(f"invalid port {host[last:]!r} after host")
    if _HOST.fullmatch(host) is None:
        raise _fail("invalid host")
    return _unescape(host)


def _literal_host(host: str) -> str:
    end = host.rfind("]")
    if not host.startswith("[") or end < 0 or _PORT.fullmatch(host[end + 1 :]) is None:
        raise _fail("invalid IP-literal")
    address, _, zone = host[1:end].partition("%25")
    if host.rfind("[") > 0 or _HOST.fullmatch(zone) is None or ":" not in address:
        raise _fail("invalid IP-literal")
    # Go accepts IPv4-mapped literals here, which `ip()` refuses.
    if not address.lower().startswith("::ffff:"):
        parse_address(address)
    return f"[{address}{'%' + _unescape(zone) if zone else ''}]{host[end + 1 :]}"


def _unescape(text: str) -> str:
    return _ESCAPE.sub(lambda match: bytes([int(match[1], 16)]), text.encode()).decode(errors="replace")


def parse(text: str) -> Url:
    """Parse a URL. Raises: EvaluationError."""
    # Upstream parses twice: as a request, where a fragment is part of the path, and then as a URL.
    _request_parts(text)
    return Url(text, _request_parts(text.partition("#")[0] or "/"))


def is_url(text: str) -> bool:
    """Tell whether a text is an absolute URL or an absolute path."""
    try:
        _request_parts(text)
    except EvaluationError:
        return False
    return True


def _split_host(host: str) -> tuple[str, str]:
    name, colon, port = host.rpartition(":")
    if not colon or (port and not port.isdigit()):
        name, port = host, ""
    return (name[1:-1] if name.startswith("[") and name.endswith("]") else name), port


def _escaped_path(url: Url) -> str:
    """Return the path as written, if that is a valid escaping of it. Otherwise the path with default escaping."""
    path = url.parts.path
    if path == "*" or _PATH_VALID.fullmatch(path):
        return path
    raw = _ESCAPE.sub(lambda match: bytes([int(match[1], 16)]), path.encode())
    return "".join(chr(byte) if byte in _PATH_KEPT else f"%{byte:02X}" for byte in raw)


def _query(url: Url) -> dict[Any, Any]:
    parameters: dict[Any, Any] = {}
    pairs = url.parts.query.split("&")
    if len(pairs) > _QUERY_PARAMETERS_MAX:
        return parameters
    for pair in pairs:
        key, _, value = pair.partition("=")
        if pair and ";" not in pair and not _BAD_ESCAPE.search(pair):
            parameters.setdefault(_unescape(key.replace("+", " ")), []).append(_unescape(value.replace("+", " ")))
    return parameters


_PARSING = per_size(0.1, 0)

OVERLOADS = (
    Overload("string_to_url", "url(string) -> URL", parse, _PARSING),
    Overload("is_url_string", "isURL(string) -> bool", is_url),
    Overload("url_get_scheme", "URL.getScheme() -> string", lambda url: url.parts.scheme),
    Overload("url_get_host", "URL.getHost() -> string", lambda url: url.parts.host),
    Overload("url_get_hostname", "URL.getHostname() -> string", lambda url: _split_host(url.parts.host)[0]),
    Overload("url_get_port", "URL.getPort() -> string", lambda url: _split_host(url.parts.host)[1]),
    Overload("url_get_escaped_path", "URL.getEscapedPath() -> string", _escaped_path),
    Overload("url_get_query", "URL.getQuery() -> map(string, list(string))", _query),
)
