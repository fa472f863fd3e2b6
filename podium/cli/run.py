"""`podium run`: run the scheduler."""

from __future__ import annotations

import re
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from podium.cli import event_loop
from podium.cli.fix_command import fix_command
from podium.cli.interrupts import exit_0_at_sigterm
from podium.cli.options.access import access_options, take_access_options
from podium.cli.options.addresses import ip_address
from podium.cli.options.configuration import (
    BadFlag,
    Usable,
    connection_options,
    feature_gates_option,
    plugin_option,
    readable_as_any,
    usable,
    versions_asked,
)
from podium.cli.options.durations import duration
from podium.cli.options.leader_election import leader_election_options
from podium.cli.options.logs import logging_options
from podium.cli.options.own_names import as_default_scheduler_option, named_for_running
from podium.cli.options.paths import FILE
from podium.cli.options.recordings import record_max_option
from podium.cli.options.releases import as_the_server, release_asked, release_to_run
from podium.cli.options.shards import as_shard, shard_options, take_shard_options
from podium.cli.options.tracing import take_tracing_options, tracing_options
from podium.config import Release
from podium.lib import garbage_collection
from podium.lib.log import get_logger
from podium.objects.quantity import QuantityError, parse

if TYPE_CHECKING:
    from podium.daemon.app import App
    from podium.daemon.options import Options, ReleaseOrigin
    from podium.recording.recorder import Recorder
    from podium.shards import ShardIdentity

log = get_logger("config")

_MEMORY_BYTES_MAX = 1 << 40


def _suites(_: click.Context, parameter: click.Parameter, text: str) -> tuple[str, ...]:
    if not text:
        return ()
    from podium.server.tls_limits import TlsLimits

    names = tuple(filter(None, text.split(",")))
    try:
        TlsLimits(cipher_suites=names)
    except ValueError as error:
        raise click.BadParameter(str(error), param=parameter) from error
    return names


def _memory(_: click.Context, parameter: click.Parameter, text: str) -> int:
    from podium.daemon.options import RECORDER_BYTES_MIN

    try:
        size = parse(text).value
    except QuantityError as error:
        raise click.BadParameter(str(error), param=parameter) from None
    if size and not RECORDER_BYTES_MIN <= size <= _MEMORY_BYTES_MAX:
        raise click.BadParameter(f"{text} is neither 0 nor from 1Mi to 1Ti", param=parameter)
    return size


def _plugin_files(references: tuple[str, ...]) -> list[Path]:
    """Return the files among the references of `--plugin`."""
    return [Path(file_name) for reference in references if (file_name := reference.rpartition(":")[0]).endswith(".py")]


def _flags(context: click.Context) -> dict[str, str]:
    """Return the value of each flag by its name, given or default, without the credentials that a URL may have."""
    values = {}
    release = release_asked()
    params = {**context.params, **versions_asked(context), "decide_as": release.minor if release else None}
    for parameter in context.command.params:
        value = params[parameter.name or ""]
        several = value if isinstance(value, tuple) else () if value is None else (value,)
        text = ",".join(str(item).lower() if isinstance(item, bool) else str(item) for item in several)
        # Proxies and collectors may be given with a password, and /flagz would show it to all its readers.
        values[max(parameter.opts, key=len).lstrip("-")] = re.sub("//[^/]*@", "//", text)
    return values


@click.command()
@click.option("--config", type=click.Path(path_type=Path), help="A KubeSchedulerConfiguration, YAML or JSON.")
@plugin_option
@feature_gates_option
@as_the_server
@as_default_scheduler_option
@connection_options
@click.option(
    "--bind-address",
    default="0.0.0.0",
    show_default=True,
    callback=ip_address,
    help="The IP address that the endpoints listen on.",
)
@click.option(
    "--secure-port",
    type=click.IntRange(0, 65535),
    default=10259,
    show_default=True,
    help="The HTTPS port of the endpoints; 0 disables them.",
)
@click.option("--tls-cert-file", type=FILE, default="", help="The serving certificate. Without it, podium creates one.")
@click.option("--tls-private-key-file", type=FILE, default="", help="The private key of that certificate.")
@click.option(
    "--tls-min-version",
    type=click.Choice(["VersionTLS12", "VersionTLS13"]),
    default="VersionTLS12",
    show_default=True,
    help="The minimum TLS version.",
)
@click.option(
    "--tls-cipher-suites",
    default="",
    callback=_suites,
    help="Cipher suites for TLS 1.2, by Go's names, comma-separated. By default all with forward secrecy.",
)
@click.option(
    "--pod-max-in-unschedulable-pods-duration",
    "unschedulable_s",
    default="5m",
    show_default=True,
    callback=duration,
    help="How long a pod stays unschedulable before it is retried without an event.",
)
@click.option(
    "--preempt-pods-of-other-schedulers",
    "preempts_pods_of_others",
    is_flag=True,
    help="Allow preempting lower-priority pods bound by other schedulers.",
)
@click.option(
    "--avoid-conflicts",
    "avoids_conflicts",
    is_flag=True,
    help="Avoid conflicts with other schedulers on the same nodes: choose randomly among nearly equal nodes, and check "
    "the node again before binding.",
)
@click.option(
    "--recorder-memory",
    "recorder_bytes",
    default="32Mi",
    show_default=True,
    callback=_memory,
    help="The memory for the last scheduling attempts, which podium why --url shows; 0 keeps none.",
)
@click.option(
    "--show-hidden-metrics-for-version",
    "hidden_metrics_version",
    metavar="VERSION",
    help="Show deprecated metrics, which are otherwise hidden. VERSION must be the minor before the one in force.",
)
@click.option(
    "--ui",
    "has_live_page",
    is_flag=True,
    help="Serve a page that shows the queue, the decisions and the nodes live, at /ui.",
)
@click.option(
    "--reload",
    "reloads",
    is_flag=True,
    help="Reload a changed configuration file, plugin file or kubeconfig while podium runs; immediately on SIGHUP.",
)
@click.option(
    "--record",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Record what podium sees, reads and decides into this new or empty directory, for `podium replay`.",
)
@record_max_option("With --record: end the recording at this size, such as 10Gi. By default it has no limit.")
@click.option(
    "--hash-names",
    "hashes_names",
    is_flag=True,
    help="With --record: make names, and the values of labels and annotations, unreadable in the recording.",
)
@shard_options
@tracing_options
@access_options
@leader_election_options
@logging_options
def command(
    config: Path | None,
    plugins: tuple[str, ...],
    feature_gates: tuple[str, ...],
    is_default_scheduler: bool,
    kubeconfig: str | None,
    context: str | None,
    master: str | None,
    bind_address: str,
    secure_port: int,
    tls_cert_file: str,
    tls_private_key_file: str,
    tls_min_version: str,
    tls_cipher_suites: tuple[str, ...],
    unschedulable_s: float,
    preempts_pods_of_others: bool,
    avoids_conflicts: bool,
    recorder_bytes: int,
    hidden_metrics_version: str | None,
    has_live_page: bool,
    reloads: bool,
    record: Path | None,
    record_bytes: int | None,
    hashes_names: bool,
    **options_by_name: Any,
) -> None:
    """Schedule pods until SIGTERM or SIGINT. SIGUSR2 writes the cache and the queue to the log.

    podium runs beside kube-scheduler. Without --config it schedules the pods with `schedulerName: podium`, and its
    replicas elect a leader on the Lease podium.
    """
    _demand_page_served(has_live_page=has_live_page, secure_port=secure_port)
    _demand_sound_recording(record, record_bytes, hashes_names=hashes_names, reloads=reloads)
    shards = take_shard_options(options_by_name, records=record is not None, reloads=reloads)
    # The default action of the signal ends the process. Ignore it until there is something to dump.
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    # Imports allocate hundreds of thousands of objects that live as long as the process.
    with garbage_collection.collection_disabled():
        from podium.cli.options.plugin_loading import limited_loading
        from podium.daemon.configuration_source import ConfigurationSource
        from podium.daemon.options import Options
        from podium.server.tls_limits import TlsLimits

        garbage_collection.exempt_present_objects()

    access, tracing = take_access_options(options_by_name), take_tracing_options(options_by_name)
    if reloads and config is None and kubeconfig is None and not _plugin_files(plugins):
        raise click.UsageError("--reload needs a file to follow: --config, --kubeconfig, or --plugin with a file")

    def read(release: Release) -> Usable:
        names = named_for_running(config, options_by_name, is_default_scheduler=is_default_scheduler)
        return usable(config, plugins, feature_gates, change=names, release=release)

    # Until the loop handles the signal itself: plugins are imported, and constructed, before that.
    click.get_current_context().with_resource(exit_0_at_sigterm())
    with limited_loading(_warn_of_slow_plugin):
        good = readable_as_any(read)
    good, origin = _as_to_run(good, (kubeconfig, context), master, hidden_metrics_version, shards)
    release = good.config.release
    options = Options(
        kubeconfig=kubeconfig,
        context=context,
        master=master,
        bind_address=bind_address,
        secure_port=secure_port,
        tls_cert_file=tls_cert_file,
        tls_private_key_file=tls_private_key_file,
        tls_limits=TlsLimits(tls_min_version, tls_cipher_suites),
        access=access,
        is_default_scheduler=is_default_scheduler,
        pod_max_in_unschedulable_s=unschedulable_s,
        preempts_pods_of_others=preempts_pods_of_others,
        avoids_conflicts=avoids_conflicts,
        plugins=good.plugins,
        pod_groups=good.pod_groups,
        recorder_bytes=recorder_bytes,
        flags=_flags(click.get_current_context()),
        has_live_page=has_live_page,
        fix_command=() if master or feature_gates else fix_command(kubeconfig, context, config, plugins, good.config),
        release_is=origin,
        source=ConfigurationSource(config, _plugin_files(plugins), lambda: read(release)) if reloads else None,
        tracing=tracing,
        shows_deprecated_metrics=bool(hidden_metrics_version),
        shards=shards,
    )
    recorder = _recorder(record, good, options, plugins, feature_gates, hashes_names, record_bytes)
    try:
        event_loop.run_process(_app(good, options, recorder).run)
    finally:
        if recorder is not None:
            recorder.close()


def _warn_of_slow_plugin(plugin: str, seconds: float) -> None:
    log.warning("Importing a plugin takes long", plugin=plugin, seconds=seconds)


def _as_to_run(
    good: Usable,
    live: tuple[str | None, str | None],
    master: str | None,
    hidden_metrics_version: str | None,
    shards: ShardIdentity | None,
) -> tuple[Usable, ReleaseOrigin]:
    """Return the configuration as the release to run has it, and where the release comes from; log its warnings.

    Raises:
        BadConfiguration: this release cannot read it.
        BadFlag: it has not hidden metrics of that version.
    """
    kubeconfig, context = live
    file = kubeconfig or good.config.client_connection.kubeconfig or None
    release, origin = release_to_run(file, master, context=context)
    if hidden_metrics_version and hidden_metrics_version != release.minor_before:
        rule = f"must be omitted or have the value {release.minor_before!r}; only the previous minor version is allowed"
        raise BadFlag([f"--show-hidden-metrics-for-version: Invalid value: {hidden_metrics_version!r}: {rule}"])
    good = good.as_of(release) if shards is None else as_shard(good.as_of(release), shards)
    for warning in good.warnings:
        log.warning("Configuration", warning=warning)
    return good, origin


def _demand_page_served(*, has_live_page: bool, secure_port: int) -> None:
    if has_live_page and not secure_port:
        raise click.UsageError("--ui needs the endpoints, which --secure-port=0 disables")


def _demand_sound_recording(
    record: Path | None, record_bytes: int | None, *, hashes_names: bool, reloads: bool
) -> None:
    if hashes_names and record is None:
        raise click.UsageError("--hash-names needs --record")
    if record_bytes is not None and record is None:
        raise click.UsageError("--record-max needs --record")
    # A replay builds one scheduler, from the configuration in the header of the recording.
    if record is not None and reloads:
        raise click.UsageError("--record and --reload exclude each other: a recording is of one configuration")


def _app(good: Usable, options: Options, recorder: Recorder | None) -> App:
    with garbage_collection.collection_disabled():
        from podium.daemon.app import App
        from podium.daemon.face import Face
        from podium.daemon.faces import FACES

    if recorder is None:
        return App(good.config, options, is_watched=True)
    # As the boundary, too: it must see what comes in before the scheduler does.
    faces = (*FACES, lambda _: Face(observers=(recorder,)))
    return App(good.config, options, is_watched=True, faces=faces, boundary=recorder)


def _recorder(
    directory: Path | None,
    good: Usable,
    options: Options,
    plugins: tuple[str, ...],
    feature_gates: tuple[str, ...],
    hashes_names: bool,
    record_bytes: int | None,
) -> Recorder | None:
    if directory is None:
        return None
    # Only now: what nobody records need not be imported.
    from podium.recording.hashed_names import NameHasher
    from podium.recording.recorder import Recorder
    from podium.recording.replay import describe_scheduler
    from podium.recording.segments import RecordingError

    try:
        description = describe_scheduler(good.config, options, references=plugins, feature_gates=feature_gates)
        hasher = NameHasher.with_new_key() if hashes_names else None
        return Recorder(directory, description, hasher, bytes_max=record_bytes)
    except RecordingError as error:
        raise click.ClickException(f"--record: {error}") from None
    except OSError as error:
        raise click.ClickException(f"--record: {directory}: {error.strerror}") from None
