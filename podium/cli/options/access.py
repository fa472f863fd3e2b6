"""The options of authentication, authorization and TLS, under kube-scheduler's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from podium.cli.options.durations import duration
from podium.cli.options.paths import FILE

if TYPE_CHECKING:
    from podium.server.access_options import AccessOptions

_OPTIONS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    (
        "--authentication-kubeconfig",
        "authentication_kubeconfig",
        {"type": FILE, "default": "", "help": "The kubeconfig for TokenReviews. By default podium's own credentials."},
    ),
    (
        "--authentication-skip-lookup",
        "authentication_skip_lookup",
        {
            "type": click.BOOL,
            "is_flag": False,
            "flag_value": True,
            "default": False,
            "help": "Do not read the client certificate authorities from the API server.",
        },
    ),
    (
        "--authentication-tolerate-lookup-failure",
        "authentication_tolerate_lookup_failure",
        {
            "type": click.BOOL,
            "is_flag": False,
            "flag_value": True,
            "default": True,
            "help": "Do not fail if that lookup fails. [true]",
        },
    ),
    (
        "--authentication-token-webhook-cache-ttl",
        "authentication_token_cache_s",
        {"default": "10s", "callback": duration, "help": "How long the result of a TokenReview is cached. [10s]"},
    ),
    (
        "--client-ca-file",
        "client_ca_file",
        {"type": FILE, "default": "", "help": "The file of client certificate authorities, instead of that lookup."},
    ),
    (
        "--authorization-kubeconfig",
        "authorization_kubeconfig",
        {
            "type": FILE,
            "default": "",
            "help": "The kubeconfig for SubjectAccessReviews. By default podium's own credentials.",
        },
    ),
    (
        "--authorization-always-allow-paths",
        "authorization_always_allow_paths",
        {
            "default": "/healthz,/readyz,/livez",
            "callback": lambda _, __, text: tuple(filter(None, text.split(","))),
            "help": "Paths that need no authorization, comma-separated. [/healthz,/readyz,/livez]",
        },
    ),
    (
        "--authorization-webhook-cache-authorized-ttl",
        "authorized_cache_s",
        {"default": "10s", "callback": duration, "help": "How long an allowed request is cached. [10s]"},
    ),
    (
        "--authorization-webhook-cache-unauthorized-ttl",
        "unauthorized_cache_s",
        {"default": "10s", "callback": duration, "help": "How long a denied request is cached. [10s]"},
    ),
)
_FIELDS = tuple(field for _, field, _ in _OPTIONS)


def access_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of authentication and authorization to a command that serves endpoints."""
    for flag, field, settings in reversed(_OPTIONS):
        command = click.option(flag, field, **settings)(command)
    return command


def take_access_options(parameters: dict[str, Any]) -> AccessOptions:
    """Remove these options from the command's parameters and return them as a value."""
    from podium.server.access_options import AccessOptions

    return AccessOptions(**{field: parameters.pop(field) for field in _FIELDS})
