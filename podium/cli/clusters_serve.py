"""`podium clusters serve`: watches many clusters, and answers over HTTP and gRPC which takes a whole workload."""

from __future__ import annotations

import signal
from pathlib import Path

import click

from podium.cli import event_loop, files
from podium.cli.grpc_extra import importing_grpc
from podium.cli.options.addresses import address, endpoint_options
from podium.cli.options.configuration import accurate_rules, plugin_option, readable_as_any, usable
from podium.cli.options.durations import duration
from podium.cli.options.logs import logging_options
from podium.cli.options.members import member_options
from podium.cli.options.paths import FILE
from podium.cli.options.releases import decide_as_option


@click.command()
@member_options
@click.option(
    "--http-bind-address",
    default="127.0.0.1:8090",
    show_default=True,
    callback=address,
    help="The address for JSON over HTTP.",
)
@click.option(
    "--grpc-bind-address",
    default="127.0.0.1:8091",
    show_default=True,
    callback=address,
    help='The address for gRPC; "" disables it.',
)
@click.option("--tls-cert-file", type=FILE, default="", help="The certificate. Without it, plain text.")
@click.option("--tls-private-key-file", type=FILE, default="", help="Its private key.")
@click.option("--grpc-client-ca-file", type=FILE, default="", help="The CA of the gRPC clients' certificates.")
@endpoint_options(":10351")
@click.option(
    "--stale-after",
    callback=duration,
    default="30s",
    show_default=True,
    help="How long a member may be unreachable before answers leave it out.",
)
@click.option("--use-stale", is_flag=True, help="Include stale members in answers, which then say how stale they are.")
@click.option("--prices", type=FILE, help="Hourly prices by instance type, or by CLUSTER/TYPE, for the cheapest.")
@click.option("--config", type=click.Path(path_type=Path), help="A KubeSchedulerConfiguration, YAML or JSON.")
@plugin_option
@decide_as_option("that of each member's API server")
@logging_options
def serve(
    kubeconfig: str | None,
    contexts: tuple[str, ...],
    kubeconfig_dir: str | None,
    http_bind_address: tuple[str, int] | None,
    grpc_bind_address: tuple[str, int] | None,
    tls_cert_file: str,
    tls_private_key_file: str,
    grpc_client_ca_file: str,
    health_address: tuple[str, int] | None,
    metrics_address: tuple[str, int] | None,
    stale_after: float,
    use_stale: bool,
    prices: str | None,
    config: Path | None,
    plugins: tuple[str, ...],
) -> None:
    """Serve until SIGTERM or SIGINT. Nothing is written to any cluster.

    \b
    podium clusters serve --kubeconfig ~/.kube/config
    curl --data-binary @job.yaml 'http://127.0.0.1:8090/fit?most=1'

    A member is a context of --kubeconfig, or a file in --kubeconfig-dir.
    """  # noqa: D301
    # The default action of the signal ends the process.
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    if http_bind_address is None:
        raise click.UsageError("--http-bind-address: expected an address")
    if bool(tls_cert_file) != bool(tls_private_key_file):
        raise click.UsageError("--tls-cert-file and --tls-private-key-file go together")
    if grpc_client_ca_file and not tls_cert_file:
        raise click.UsageError("--grpc-client-ca-file goes with --tls-cert-file")
    # The extra is optional, and the other commands of the group do without it.
    with importing_grpc(serves=True):
        from podium.fleets.server.app import FleetApp, FleetOptions
    from podium.cli.asking import errors_shown
    from podium.cli.fleet_source import prices_in
    from podium.cli.kubeconfig_contexts import contexts_of
    from podium.estimator.server.app import Source
    from podium.estimator.server.tls import TlsFiles
    from podium.fleets.server.fleet import Staleness

    if (kubeconfig is not None or bool(contexts)) == (kubeconfig_dir is not None):
        raise click.UsageError("give the members in one way: --kubeconfig with --context, or --kubeconfig-dir")
    names = list(dict.fromkeys(contexts)) or (contexts_of(kubeconfig) if kubeconfig is not None else [])
    if kubeconfig_dir is not None:
        with files.errors_reported(kubeconfig_dir):
            list(Path(kubeconfig_dir).iterdir())
    good = readable_as_any(lambda release: usable(config, plugins, to_run=False, release=release))
    with errors_shown():
        options = FleetOptions(
            http_bind_address,
            grpc_bind_address,
            health_address,
            metrics_address,
            TlsFiles(tls_cert_file, tls_private_key_file, grpc_client_ca_file) if tls_cert_file else None,
            accurate_rules(good),
            prices_in(prices),
            Staleness(stale_after, use_stale),
        )
    sources = [Source(name, kubeconfig, name) for name in names]
    folder = Path(kubeconfig_dir) if kubeconfig_dir is not None else None
    event_loop.run_process(FleetApp(options, sources, folder).run)
