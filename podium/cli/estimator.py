"""`podium estimator`: `serve`, the replica estimator that Karmada's scheduler calls, and `summary`."""

from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from podium.cli import event_loop, files
from podium.cli.estimate import STATUS_GATES, gates_of
from podium.cli.estimator_summary import summary
from podium.cli.groups import CommandGroup
from podium.cli.grpc_extra import importing_grpc
from podium.cli.kubeconfig_contexts import contexts_of
from podium.cli.options.addresses import PORT_MAX, endpoint_options, ip_address
from podium.cli.options.configuration import estimator_rules, plugin_option
from podium.cli.options.durations import duration
from podium.cli.options.logs import logging_options
from podium.cli.options.members import member_options
from podium.cli.options.paths import FILE
from podium.cli.options.releases import decide_as_option
from podium.lib.log import get_logger

if TYPE_CHECKING:
    from podium.estimator.accurate import Rules
    from podium.estimator.member import Gates, MemberCluster
    from podium.estimator.server.app import Source
    from podium.estimator.server.tls import TlsFiles


_FEW_REQUESTS = "a member gets only one list and one watch request for each kind"
_WITHOUT_EFFECT = {
    "kube_api_qps": _FEW_REQUESTS,
    "kube_api_burst": _FEW_REQUESTS,
    "parallelism": "an estimate is one pass over arrays, and requests are answered one after the other",
}


def _without_effect(name: str) -> str:
    return f"Accepted, without effect: {_WITHOUT_EFFECT[name]}."


@click.group(cls=CommandGroup)
def command() -> None:
    """Serve replica estimates of many member clusters to Karmada, and show what Karmada collects from one."""


@command.command()
@member_options
@click.option("--cluster-name", help="The name of the only member; overrides its context's name.")
@click.option("--master", help="The address of the API server; overrides the kubeconfig.")
@click.option("--cases", type=FILE, help="Serve recorded cases as members, for trials.")
@click.option(
    "--bind-address", default="0.0.0.0", show_default=True, callback=ip_address, help="The IP address for gRPC."
)
@click.option(
    "--server-port", type=click.IntRange(0, PORT_MAX), default=10352, show_default=True, help="The port for gRPC."
)
@click.option("--grpc-auth-cert-file", type=FILE, default="", help="The gRPC certificate. Without it, plain text.")
@click.option("--grpc-auth-key-file", type=FILE, default="", help="The private key of that certificate.")
@click.option("--grpc-client-ca-file", type=FILE, default="", help="The CA of the client certificates.")
@click.option("--insecure-skip-grpc-client-verify", is_flag=True, help="Do not require client certificates.")
@endpoint_options(":10351")
@click.option("--feature-gates", default="", metavar="NAME=BOOL,...", help="Feature gates of Karmada's estimator.")
@click.option("--kube-api-qps", type=float, help=_without_effect("kube_api_qps"))
@click.option("--kube-api-burst", type=int, help=_without_effect("kube_api_burst"))
@click.option("--parallelism", type=int, help=_without_effect("parallelism"))
@click.option(
    "--on-unsynced",
    type=click.Choice(["last-known", "error", "max"]),
    default="last-known",
    show_default=True,
    help="The answer for a member that is not synced or cannot be reached.",
)
@click.option(
    "--mode",
    type=click.Choice(["parity", "accurate"]),
    default="parity",
    show_default=True,
    help="Karmada's own number, or the number that podium would bind in the member.",
)
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    help="A KubeSchedulerConfiguration, whose first profile decides in accurate mode.",
)
@plugin_option
@decide_as_option("that of each member's API server, in accurate mode")
@click.option("--report-status", is_flag=True, help="Write the members' summaries into Karmada's Cluster objects.")
@click.option("--karmada-kubeconfig", type=FILE, help="The kubeconfig of Karmada's API server, for --report-status.")
@click.option("--karmada-context", help="The context of that kubeconfig.")
@click.option(
    "--cluster-status-update-frequency",
    callback=duration,
    default="10s",
    show_default=True,
    help="The interval of --report-status.",
)
@click.option(
    "--enable-cluster-resource-modeling",
    type=bool,
    default=True,
    show_default=True,
    metavar="BOOL",
    help="If false, --report-status writes nothing, as in Karmada's controller.",
)
@logging_options
def serve(
    kubeconfig: str | None,
    contexts: tuple[str, ...],
    kubeconfig_dir: str | None,
    cluster_name: str | None,
    master: str | None,
    cases: str | None,
    bind_address: str,
    server_port: int,
    grpc_auth_cert_file: str,
    grpc_auth_key_file: str,
    grpc_client_ca_file: str,
    insecure_skip_grpc_client_verify: bool,
    health_address: tuple[str, int] | None,
    metrics_address: tuple[str, int] | None,
    feature_gates: str,
    kube_api_qps: float | None,
    kube_api_burst: int | None,
    parallelism: int | None,
    on_unsynced: str,
    mode: str,
    config: Path | None,
    plugins: tuple[str, ...],
    report_status: bool,
    karmada_kubeconfig: str | None,
    karmada_context: str | None,
    cluster_status_update_frequency: float,
    enable_cluster_resource_modeling: bool,
) -> None:
    """Serve estimates until SIGTERM or SIGINT.

    A member is a context of --kubeconfig or a file in --kubeconfig-dir. With --cluster-name it is the one cluster of
    the usual kubeconfig or of the pod's service account.

    In accurate mode the server finds the number of replicas in a dry run with the scheduler's filters, after it has
    placed the member's pending pods. The first profile of --config decides. The server looks up the workload that
    Karmada names to get its pod template. Component sets and unschedulable replicas are answered as in parity mode.

    With --report-status the server also writes the members' resource summaries and models into Karmada's Cluster
    objects. Run Karmada's controllers with --enable-cluster-resource-modeling=false then.
    """
    # The default action of the signal ends the process; for `podium run` it asks for a dump, and here for nothing.
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    with importing_grpc(serves=True):
        from podium.estimator.server.app import EstimatorApp, Options, Report, Source
    from podium.estimator.server.members import OnUnsynced

    _warn_of_flags(kube_api_qps=kube_api_qps, kube_api_burst=kube_api_burst, parallelism=parallelism)
    gates = gates_of(feature_gates, STATUS_GATES)
    rules = estimator_rules(config, plugins, mode)
    tls = _tls(grpc_auth_cert_file, grpc_auth_key_file, grpc_client_ca_file, skip=insecure_skip_grpc_client_verify)
    offline_clusters = _still(cases, gates, rules) if cases is not None else {}
    sources = _sources(kubeconfig, contexts, cluster_name, master)
    if kubeconfig_dir is not None and (sources or master):
        raise click.UsageError(
            "--kubeconfig-dir cannot be combined with --kubeconfig, --context, --cluster-name or --master"
        )
    folder = _folder(kubeconfig_dir)
    # An empty directory is a way, too: members may come later.
    if [bool(offline_clusters), bool(sources), folder is not None].count(True) != 1:
        raise click.UsageError(
            "give member clusters in one way: --kubeconfig and --cluster-name, --kubeconfig-dir, or --cases"
        )
    options = Options(
        (bind_address, server_port),
        health_address,
        metrics_address,
        tls,
        gates,
        OnUnsynced(on_unsynced),
        rules,
    )
    if (karmada_kubeconfig or karmada_context) and not report_status:
        raise click.UsageError("--karmada-kubeconfig and --karmada-context go with --report-status")
    if report_status and enable_cluster_resource_modeling:
        karmada = Source("karmada", karmada_kubeconfig, karmada_context)
        with_models = gates.customized_cluster_resource_modeling
        report = Report(karmada, cluster_status_update_frequency, with_models)
        options = replace(options, report=report)
    event_loop.run_process(EstimatorApp(options, sources, offline_clusters, folder).run)


command.add_command(summary)


def _warn_of_flags(**values: float | None) -> None:
    """Log each given flag that has no effect."""
    for name, value in values.items():
        if value is not None:
            flag = f"--{name.replace('_', '-')}"
            get_logger("estimator").warning("Flag has no effect", flag=flag, reason=_WITHOUT_EFFECT[name])


def _tls(certificate: str, key: str, client_ca: str, *, skip: bool) -> TlsFiles | None:
    """Return the TLS files; None, as upstream does, if the certificate or the key is missing."""
    if not certificate or not key:
        return None
    from podium.estimator.server.tls import TlsFiles

    return TlsFiles(certificate, key, client_ca, skip)


def _still(cases: str, gates: Gates, rules: Rules | None) -> dict[str, MemberCluster]:
    from podium.engine.errors import ManifestError
    from podium.estimator.cases import read_case
    from podium.estimator.errors import EstimateError
    from podium.estimator.manifests import member_of

    members = {}
    for number, line in files.lines(cases):
        try:
            case = read_case(line)
            members[case.id] = member_of(case.objects, gates, case.id, rules)
        except (EstimateError, ManifestError) as error:
            raise click.ClickException(f"{cases}:{number}: {error}") from error
    return members


def _sources(
    kubeconfig: str | None,
    contexts: tuple[str, ...],
    cluster_name: str | None,
    master: str | None,
) -> list[Source]:
    from podium.estimator.server.app import Source

    # As upstream's flags: one process for one member, named on the command line.
    if cluster_name is not None:
        if len(contexts) > 1:
            raise click.UsageError("--cluster-name needs a single --context")
        return [Source(cluster_name, kubeconfig, contexts[0] if contexts else None, master)]
    if kubeconfig is None and not contexts:
        return []
    return [Source(name, kubeconfig, name, master) for name in contexts or contexts_of(str(kubeconfig))]


def _folder(directory: str | None) -> Path | None:
    """Return the directory of kubeconfigs. It must exist at the start, but its files may come and go."""
    if directory is None:
        return None
    with files.errors_reported(directory):
        if not any(Path(directory).iterdir()):
            get_logger("estimator").warning("The directory has no kubeconfigs yet", folder=directory)
    return Path(directory)
