"""Tells requests of a web site in the user's browser from those of the user, for servers on a loopback address.

A browser lets any page send requests to 127.0.0.1, and a name that its owner points there (DNS rebinding) makes the
answers readable too. Only two headers tell such a request from one of kubectl: `Host` carries the site's name then, and
`Origin` the site that a script or a form belongs to.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit


def site_refusal(headers: Mapping[str, str]) -> str | None:
    """Return the reason why a request of a web site is refused, or None if a program or the own page sent it.

    Args:
        headers: of the request; names are looked up as `Host` and `Origin`.
    """
    host, origin = headers.get("Host", ""), headers.get("Origin")
    if not _is_this_machine(host):
        return f"Host: {host!r} is neither an IP address nor localhost"
    # A page of this server is the one site that may ask: its origin is the address that it was fetched from.
    if origin is not None and origin != f"http://{host}":
        return f"Origin: {origin!r} is another site"
    return None


def _is_this_machine(host: str) -> bool:
    try:
        name = urlsplit(f"//{host}").hostname or ""
        if name == "localhost" or name.endswith(".localhost"):
            return True
        ip_address(name)
    except ValueError:
        return False
    # An address cannot be pointed elsewhere, so whoever uses one has typed it or read it in a kubeconfig.
    return True
