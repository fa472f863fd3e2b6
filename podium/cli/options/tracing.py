"""The options of tracing, named after the fields of Kubernetes' TracingConfiguration."""

from __future__ import annotations

import urllib.parse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from podium.daemon.options import TracingOptions

_MILLION: Final = 1_000_000
_RATE: Final = 10_000
_PATH: Final = "/v1/traces"
_ENDPOINT_FLAG, _RATE_FLAG = "--tracing-endpoint", "--tracing-sampling-rate-per-million"


def _endpoint(_: click.Context, parameter: click.Parameter, text: str | None) -> str | None:
    if text is None:
        return None
    try:
        url = urllib.parse.urlsplit(text)
        if url.scheme not in ("http", "https") or not url.hostname or url.port == 0:
            raise ValueError
    except ValueError:
        raise click.BadParameter("it is not a URL such as http://collector:4318", param=parameter) from None
    return url._replace(path=url.path if url.path.strip("/") else _PATH).geturl()


def tracing_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of tracing to a command that schedules."""
    rate = click.option(
        _RATE_FLAG,
        "tracing_rate",
        type=click.IntRange(0, _MILLION),
        help=f"How many attempts per million are traced. [{_RATE}]",
    )
    endpoint = click.option(
        _ENDPOINT_FLAG,
        "tracing_endpoint",
        metavar="URL",
        callback=_endpoint,
        help="Send spans of scheduling attempts to this collector, by OTLP over HTTP. Needs podium[otel].",
    )
    return endpoint(rate(command))


def take_tracing_options(parameters: dict[str, Any]) -> TracingOptions | None:
    """Remove these options from the command's parameters and return them as a value; None without a collector.

    Raises:
        click.UsageError: a rate without a collector.
        click.ClickException: the extra is not installed.
    """
    endpoint, rate = parameters.pop("tracing_endpoint"), parameters.pop("tracing_rate")
    if endpoint is None:
        if rate is not None:
            raise click.UsageError(f"{_RATE_FLAG} needs {_ENDPOINT_FLAG}")
        return None
    from podium.daemon.options import TracingOptions

    try:
        import podium.telemetry.otlp  # noqa: F401 - only to say now what is missing
    except ImportError as error:
        raise click.ClickException(
            f"{_ENDPOINT_FLAG} needs podium[otel], in a clone pip install -r requirements/otel.lock: {error}"
        ) from error
    return TracingOptions(endpoint, _RATE if rate is None else rate)
