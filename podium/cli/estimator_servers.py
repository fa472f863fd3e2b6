"""The options that name estimator servers of members, with the names of Karmada's flags, and the question to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from podium.cli import event_loop, files
from podium.cli.options.durations import duration
from podium.cli.options.paths import FILE
from podium.cli.output import say

if TYPE_CHECKING:
    from podium.estimator.division.bindings import BindingSpec

_OPTIONS = (
    click.option(
        "--estimator",
        "estimators",
        multiple=True,
        metavar="NAME=HOST:PORT",
        help="Ask the estimator server of a member, Karmada's or podium's. Repeatable.",
    ),
    click.option(
        "--scheduler-estimator-timeout",
        default="3s",
        show_default=True,
        callback=duration,
        help="For all servers together.",
    ),
    click.option(
        "--scheduler-estimator-ca-file", type=FILE, help="The CA of their certificates. Without it, plain text."
    ),
    click.option("--scheduler-estimator-cert-file", type=FILE, help="The certificate that is presented to them."),
    click.option("--scheduler-estimator-key-file", type=FILE, help="The private key of that certificate."),
    click.option(
        "--disable-scheduler-estimator-in-pull-mode", is_flag=True, help="Do not ask about clusters that pull."
    ),
)


@dataclass(frozen=True, slots=True)
class Servers:
    """The servers to ask, and how."""

    addresses: Mapping[str, Sequence[str]]
    timeout_s: float
    ca_file: str | None
    certificate_file: str | None
    key_file: str | None


def estimator_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def ask_servers(servers: Servers, spec: BindingSpec, *, in_sets: bool) -> Mapping[str, int]:
    """Ask the servers, and name those that fail on standard error. A cluster whose server fails has -1.

    Raises:
        click.ClickException: the extra is not installed, or a file cannot be read.
        click.UsageError: the certificate and its key are not given together, or without a CA.
    """
    if bool(servers.certificate_file) != bool(servers.key_file) or (servers.key_file and not servers.ca_file):
        raise click.UsageError("a certificate needs its key, and both need --scheduler-estimator-ca-file")
    from podium.estimator.server.tls13 import keep_quiet

    # gRPC's C core reads its settings from the environment when it is imported.
    keep_quiet()
    try:
        from podium.estimator.client import asking, channels
    except ImportError as error:
        raise click.ClickException(
            f"this needs podium[estimator], in a clone pip install -r requirements/estimator.lock: {error}"
        ) from error
    tls = None
    if servers.ca_file is not None:
        pair = [files.content(name) if name else None for name in (servers.certificate_file, servers.key_file)]
        tls = channels.ClientTls(files.content(servers.ca_file), *pair)
    answers = event_loop.run(
        lambda: asking.ask_servers(servers.addresses, spec, tls, servers.timeout_s, in_sets=in_sets)
    )
    for name, error_text in sorted(answers.errors.items()):
        say(f"warning: without the estimator server of {name}: {error_text}", err=True)
    return answers.replicas
