"""The options that name estimator servers of members, with the names of Karmada's flags, and the question to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from podium.cli import event_loop, files
from podium.cli.grpc_extra import importing_grpc
from podium.cli.options.addresses import PORT_MAX
from podium.cli.options.durations import duration
from podium.cli.options.paths import FILE
from podium.cli.options.several import with_options
from podium.cli.output import say

if TYPE_CHECKING:
    from podium.engine.files import LocatedManifest
    from podium.estimator.client.karmada import KarmadaApi
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
        "--enable-scheduler-estimator",
        is_flag=True,
        help="Ask the estimator servers of the other clusters too, at the addresses of their Services.",
    ),
    click.option(
        "--scheduler-estimator-service-prefix",
        default="karmada-scheduler-estimator",
        show_default=True,
        help="A Service's name is this, a dash and the cluster's name.",
    ),
    click.option(
        "--scheduler-estimator-service-namespace",
        default="karmada-system",
        show_default=True,
        help="The namespace of the Services.",
    ),
    click.option(
        "--scheduler-estimator-port",
        type=click.IntRange(1, PORT_MAX),
        default=10352,
        show_default=True,
        help="The port of the Services.",
    ),
    click.option(
        "--scheduler-estimator-timeout",
        default="3s",
        show_default=True,
        callback=duration,
        help="The time limit for all servers together.",
    ),
    click.option(
        "--scheduler-estimator-ca-file",
        type=FILE,
        help="The CA of these servers' certificates. Without it, plain text.",
    ),
    click.option("--scheduler-estimator-cert-file", type=FILE, help="The client certificate for these servers."),
    click.option("--scheduler-estimator-key-file", type=FILE, help="The private key of that certificate."),
    click.option(
        "--insecure-skip-estimator-verify", is_flag=True, help="Accept any certificate of an estimator server."
    ),
    click.option(
        "--disable-scheduler-estimator-in-pull-mode", is_flag=True, help="Do not ask about clusters in pull mode."
    ),
)


@dataclass(frozen=True, slots=True)
class Servers:
    """The servers to ask, and how.

    Attributes:
        addresses: by cluster, in the order in which they are tried.
    """

    addresses: Mapping[str, Sequence[str]]
    timeout_s: float
    ca_file: str | None
    certificate_file: str | None
    key_file: str | None
    skip_verify: bool


def servers_of(addresses: Mapping[str, Sequence[str]], settings: Mapping[str, Any]) -> Servers:
    """Return the servers at these addresses, asked as the options' values say."""
    return Servers(
        addresses,
        settings["scheduler_estimator_timeout"],
        settings["scheduler_estimator_ca_file"],
        settings["scheduler_estimator_cert_file"],
        settings["scheduler_estimator_key_file"],
        settings["insecure_skip_estimator_verify"],
    )


def addresses_by_service(
    clusters: Iterable[str], objects: Sequence[LocatedManifest], settings: Mapping[str, Any]
) -> dict[str, Sequence[str]]:
    """Return the addresses of the clusters' servers by their Services, and name those without on standard error.

    Args:
        objects: those of Karmada's API server, Services among them.

    Raises:
        EstimateError: a Service cannot be read.
    """
    from podium.estimator.division.estimator_service import addresses_of, service_name
    from podium.estimator.errors import EstimateError
    from podium.estimator.manifests import estimator_services_in

    prefix, namespace = (settings[f"scheduler_estimator_service_{name}"] for name in ("prefix", "namespace"))
    services = estimator_services_in(objects)
    addresses: dict[str, Sequence[str]] = {}
    for cluster in clusters:
        service = services.get(f"{namespace}/{service_name(prefix, cluster)}")
        try:
            addresses[cluster] = addresses_of(service, prefix, cluster, namespace, settings["scheduler_estimator_port"])
        except EstimateError as error:
            _warn_of_missing_server(cluster, str(error))
    return addresses


def addresses_in_karmada(
    clusters: Iterable[str], karmada: KarmadaApi, settings: Mapping[str, Any]
) -> dict[str, Sequence[str]]:
    """Look up the clusters' servers in Karmada's API server, and name those without on standard error.

    Raises:
        ConnectionConfigError: the kubeconfig cannot be used.
    """
    from podium.estimator.client.karmada import ServiceNames, look_up_servers

    prefix, namespace = (settings[f"scheduler_estimator_service_{name}"] for name in ("prefix", "namespace"))
    names = ServiceNames(prefix, namespace, settings["scheduler_estimator_port"])
    servers = event_loop.run(lambda: look_up_servers(karmada, list(clusters), names))
    for cluster, error_text in sorted(servers.errors.items()):
        _warn_of_missing_server(cluster, error_text)
    return dict(servers.targets)


def estimator_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command."""
    return with_options(command, _OPTIONS)


def ask_servers(servers: Servers, spec: BindingSpec, *, in_sets: bool) -> Mapping[str, int]:
    """Ask the servers, and name those that fail on standard error. A cluster whose server fails has -1.

    Raises:
        click.ClickException: the extra is not installed, or a file cannot be read.
        click.UsageError: the certificate and its key are not given together, or without TLS.
    """
    has_tls = bool(servers.ca_file) or servers.skip_verify
    if bool(servers.certificate_file) != bool(servers.key_file) or (servers.key_file and not has_tls):
        raise click.UsageError(
            "a certificate needs its key, and both need --scheduler-estimator-ca-file or "
            "--insecure-skip-estimator-verify"
        )
    with importing_grpc(serves=False):
        from podium.estimator.client import asking, channels
    tls = None
    if has_tls:
        ca_file = None if servers.skip_verify else servers.ca_file
        ca, certificate, key = (
            files.content(name) if name else None for name in (ca_file, servers.certificate_file, servers.key_file)
        )
        tls = channels.ClientTls(ca, certificate, key)
    answers = event_loop.run(
        lambda: asking.ask_servers(servers.addresses, spec, tls, servers.timeout_s, in_sets=in_sets)
    )
    for name, error_text in sorted(answers.errors.items()):
        _warn_of_missing_server(name, error_text)
    return answers.replicas


def _warn_of_missing_server(cluster: str, error_text: str) -> None:
    say(f"warning: without the estimator server of {cluster}: {error_text}", err=True)
