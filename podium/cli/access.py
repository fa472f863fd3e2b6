"""The options of authentication, authorization and TLS, under kube-scheduler's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from podium.cli.durations import duration

if TYPE_CHECKING:
    from podium.service.serving import AccessOptions

_OPTIONS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    (
        "--authentication-kubeconfig",
        "authentication_kubeconfig",
        {"default": "", "help": "Credentials to review tokens with; by default podium's own."},
    ),
    (
        "--authentication-skip-lookup",
        "authentication_skip_lookup",
        {
            "type": click.BOOL,
            "is_flag": False,
            "flag_value": True,
            "default": False,
            "help": "Do not look up, in the API server, whose client certificates are believed.",
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
            "help": "Start though that lookup fails. [true]",
        },
    ),
    (
        "--authentication-token-webhook-cache-ttl",
        "authentication_token_cache_s",
        {"default": "10s", "callback": duration, "help": "How long a verdict about a token holds. [10s]"},
    ),
    (
        "--client-ca-file",
        "client_ca_file",
        {"default": "", "help": "Whose client certificates are believed, instead of that lookup."},
    ),
    (
        "--authorization-kubeconfig",
        "authorization_kubeconfig",
        {"default": "", "help": "Credentials to review access with; by default podium's own."},
    ),
    (
        "--authorization-always-allow-paths",
        "authorization_always_allow_paths",
        {
            "default": "/healthz,/readyz,/livez",
            "callback": lambda _, __, text: tuple(filter(None, text.split(","))),
            "help": "Paths for everybody, with commas. [/healthz,/readyz,/livez]",
        },
    ),
    (
        "--authorization-webhook-cache-authorized-ttl",
        "authorized_cache_s",
        {"default": "10s", "callback": duration, "help": "How long a permission holds. [10s]"},
    ),
    (
        "--authorization-webhook-cache-unauthorized-ttl",
        "unauthorized_cache_s",
        {"default": "10s", "callback": duration, "help": "How long a refusal holds. [10s]"},
    ),
)
_FIELDS = tuple(field for _, field, _ in _OPTIONS)


def door_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a command that serves endpoints."""
    for flag, field, settings in reversed(_OPTIONS):
        command = click.option(flag, field, **settings)(command)
    return command


def take_doors(given: dict[str, Any]) -> AccessOptions:
    """Take these options out of what was given."""
    from podium.service.serving import AccessOptions

    return AccessOptions(**{field: given.pop(field) for field in _FIELDS})
