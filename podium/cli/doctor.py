"""`podium doctor`: check whether podium can run with this configuration on this cluster, and advise if not."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from podium.cli import event_loop
from podium.cli.exit_codes import EXIT_NO
from podium.cli.options.configuration import (
    BadConfiguration,
    Usable,
    connection_options,
    construction_failures,
    feature_gates_option,
    plugin_option,
    readable_as_any,
    usable,
)
from podium.cli.options.leader_election import leader_election_options
from podium.cli.options.own_names import as_default_scheduler_option, named_for_running
from podium.cli.options.releases import as_the_server, release_asked
from podium.cli.options.shards import as_shard, shard_options, take_shard_options
from podium.cli.output import TEXT, output_option, print_value, say
from podium.cli.planning import PROVIDERS, RULES, demand_rules
from podium.config import (
    AS_DEFAULT_SCHEDULER,
    DEFAULT_SCHEDULER_NAME,
    KUBE_SCHEDULERS_LEASE,
    LEASE_NAME,
    KubeSchedulerConfiguration,
)

if TYPE_CHECKING:
    from podium.client.permissions import Needs
    from podium.client.session import ApiSession
    from podium.daemon.doctor import Report
    from podium.provisioner.controller.app import ProviderName
    from podium.shards import ShardIdentity

_MARKS = {"ok": ("ok     ", "green"), "warning": ("warning", "yellow"), "error": ("error  ", "red")}


@click.command()
@click.option("--config", type=click.Path(path_type=Path), help="A KubeSchedulerConfiguration, YAML or JSON.")
@plugin_option
@as_the_server
@feature_gates_option
@as_default_scheduler_option
@connection_options
@leader_election_options
@shard_options
@click.option(
    "--provisioner",
    type=PROVIDERS,
    help="Check what `podium provisioner run` needs with this provider, instead of the scheduler.",
)
@click.option(
    "--rules",
    type=RULES,
    default="karpenter",
    show_default=True,
    help="With --provisioner: who judges whether a pod fits.",
)
@click.option(
    "--namespace",
    default="kube-system",
    show_default=True,
    help="With --provisioner: where its Lease and its status ConfigMap are.",
)
@click.option(
    "--shadow",
    "is_shadow",
    is_flag=True,
    help="Check what `podium shadow` and `podium record` need, instead of the scheduler.",
)
@output_option()
def command(
    config: Path | None,
    plugins: tuple[str, ...],
    feature_gates: tuple[str, ...],
    is_default_scheduler: bool,
    kubeconfig: str | None,
    context: str | None,
    master: str | None,
    provisioner: ProviderName | None,
    rules: str,
    namespace: str,
    is_shadow: bool,
    output: str,
    **options_by_name: Any,
) -> None:
    """Check credentials, permissions, versions, configuration and clocks, and advise what to do.

    Exits with 0 if podium can run, even with warnings, and with 3 if it cannot. Changes nothing.
    """
    from podium.daemon.doctor import Report
    from podium.telemetry import configure_logging

    shards = take_shard_options(options_by_name, records=False, reloads=False)
    _demand_one_subject(provisioner, rules, is_shadow=is_shadow, is_shard=shards is not None)
    configure_logging(verbosity=0)
    report = Report()
    requirements = None
    if provisioner is not None:
        from podium.provisioner.controller.permissions import needs

        requirements = needs(
            provisioner,
            namespace=namespace,
            places_with_podium=demand_rules(rules, config, plugins),
            leader_elect=options_by_name["leader_elect"] is not False,
        )
    names = named_for_running(config, options_by_name, is_default_scheduler=is_default_scheduler)
    if is_shadow or provisioner is not None:
        # It only reads, or writes under a name of its own, so there is nothing to compete with.
        # Neither schedules: a profile may be named after the scheduler that does.
        names = named_for_running(config, options_by_name, is_default_scheduler=True)
    try:
        good = readable_as_any(lambda release: usable(config, plugins, feature_gates, change=names, release=release))
    except BadConfiguration as error:
        for line in error.lines:
            report.fail("configuration", line, "correct the field; `podium config check` lists these errors too")
        report.warn("cluster", "not examined: the checks need a valid configuration", "run doctor again after that")
    else:
        has_problems = _check_configuration(report, good, is_named=requirements is None or rules == "podium")
        if requirements is None and not is_shadow:
            _report_takeover(report, good.config)
        # Without its plugins the rights that they need are not known.
        if is_shadow and not has_problems:
            from podium.recording.shadow.permissions import needs as shadow_needs

            requirements = shadow_needs(good.config, good.plugins)
        event_loop.run(
            partial(
                _examine,
                report,
                good,
                requirements,
                (kubeconfig, context),
                master,
                shards,
                is_default_scheduler=is_default_scheduler,
            )
        )
    if output == TEXT:
        _print(report)
    else:
        print_value(report.to_json(), output)
    if not report.is_good:
        raise SystemExit(EXIT_NO)


def _demand_one_subject(provisioner: ProviderName | None, rules: str, *, is_shadow: bool, is_shard: bool) -> None:
    """Refuse options about different parts of podium. Raises: click.UsageError."""
    if is_shadow and provisioner is not None:
        raise click.UsageError(
            "--shadow and --provisioner are about different parts of podium: ask about one at a time"
        )
    if provisioner is None and rules != "karpenter":
        raise click.UsageError("--rules needs --provisioner")
    if is_shard and (is_shadow or provisioner is not None):
        raise click.UsageError("--shards cannot be combined with --shadow or --provisioner")


def _check_configuration(report: Report, good: Usable, *, is_named: bool) -> bool:
    """Report the warnings, and the plugins that cannot be constructed; return whether there are such plugins.

    Args: is_named: whether the report names the profiles if there is no problem.
    """
    for warning in good.warnings:
        report.warn("configuration", warning, "remove the field, or accept this behaviour")
    problems = construction_failures(good)
    for problem in problems:
        report.fail("plugins", problem, "correct the plugin or its args, or remove it from the configuration")
    if is_named and not problems:
        report.ok("configuration", ", ".join(profile.scheduler_name for profile in good.config.profiles))
    return bool(problems)


def _report_takeover(report: Report, config: KubeSchedulerConfiguration) -> None:
    """Report the consequences if the command line allows podium to take kube-scheduler's place."""
    if config.profile(DEFAULT_SCHEDULER_NAME) is None:
        return
    election = config.leader_election
    # A shared lease makes the two take turns, so that never both schedule.
    if election.leader_elect and election.resource_name == KUBE_SCHEDULERS_LEASE:
        message = "podium binds every pod that names no scheduler, as soon as kube-scheduler has given up the lease"
        report.ok("names", f"{message} they share")
    else:
        message = "podium would bind every pod that names no scheduler, and so does kube-scheduler where it runs"
        advice = (
            f"share kube-scheduler's lease ({LEASE_NAME}: {KUBE_SCHEDULERS_LEASE}), or leave {AS_DEFAULT_SCHEDULER} out"
        )
        report.warn("names", message, advice)


async def _examine(
    report: Report,
    good: Usable,
    requirements: Needs | None,
    live: tuple[str | None, str | None],
    master: str | None,
    shards: ShardIdentity | None,
    *,
    is_default_scheduler: bool,
) -> None:
    from podium.client.advice import advice_on_configuration
    from podium.client.credentials import ConnectionConfigError, load
    from podium.client.session import ApiSession
    from podium.daemon.doctor import examine, examine_needs
    from podium.lib.system_clock import SystemClock

    clock = SystemClock()
    try:
        file = live[0] or good.config.client_connection.kubeconfig or None
        credentials = await load(file, clock, context=live[1], master=master)
    except ConnectionConfigError as error:
        report.fail("credentials", str(error), advice_on_configuration(str(error)))
        return
    async with ApiSession(credentials) as session:
        # The rights of one part of podium; everything else concerns scheduling.
        if requirements is not None:
            await examine_needs(report, session, requirements, clock)
            return
        if release_asked() is None:
            good = await as_of_server(report, session, good)
        if shards is not None:
            try:
                good = as_shard(good, shards)
            except click.UsageError as error:
                report.fail("configuration", error.message, "correct it, or run podium without --shards")
        report.ok("rules", f"podium decides as kube-scheduler {good.config.release.minor}")
        await examine(
            report,
            session,
            good.config,
            good.plugins,
            clock,
            good.pod_groups,
            is_default_scheduler=is_default_scheduler,
            is_shard=shards is not None,
        )


async def as_of_server(report: Report, session: ApiSession, good: Usable) -> Usable:
    """Return the configuration by the rules of the API server's release, as `podium run` reads it."""
    from podium.client.server_version import release_of
    from podium.objects.api_errors import ApiError

    # A server that does not say its version is reported by the checks that follow.
    with suppress(ApiError):
        release, _ = await release_of(session)
        try:
            return good.as_of(release)
        except BadConfiguration as error:
            for line in error.lines:
                report.fail("configuration", line, f"the API server is of {release.minor}: correct the field for it")
    return good


def _print(report: Report) -> None:
    for finding in report.findings:
        mark, colour = _MARKS[finding.verdict.value]
        say(f"  {finding.check}: {finding.message}", head=click.style(mark, fg=colour))
        if finding.advice:
            say(f"         -> {finding.advice}")
