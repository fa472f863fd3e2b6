"""`podium provisioner run`: buy nodes for pods that fit nowhere, and remove nodes that are not needed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from podium.cli import event_loop, files
from podium.cli.groups import CommandGroup
from podium.cli.interrupts import exit_0_at_sigterm
from podium.cli.options.addresses import endpoint_options
from podium.cli.options.configuration import readable_as_any, usable
from podium.cli.options.durations import duration
from podium.cli.options.logs import logging_options
from podium.cli.options.paths import FILE
from podium.cli.options.releases import release_to_run
from podium.cli.planning import PROVIDERS, Question, demand_rules, purchase_options, rules_options
from podium.objects.errors import FieldError

if TYPE_CHECKING:
    from podium.provisioner.controller.app import ProviderName


@click.group(cls=CommandGroup)
def command() -> None:
    """Buy nodes for pods that fit nowhere, and remove nodes that are not needed."""


@command.command()
@click.option(
    "--kubeconfig", type=FILE, help="The kubeconfig of the cluster. By default the pod's own credentials, or kubectl's."
)
@click.option("--context", help="The context of the kubeconfig.")
@click.option(
    "--provider",
    type=PROVIDERS,
    default="plan-only",
    show_default=True,
    help="What creates nodes: nothing, podium (as objects without machines), or a Karpenter that reads NodeClaims.",
)
@purchase_options
@rules_options
@click.option(
    "--batch-idle",
    "--batch-idle-duration",
    "batch_idle_s",
    default="1s",
    show_default=True,
    envvar="BATCH_IDLE_DURATION",
    show_envvar=True,
    callback=duration,
    help="Plan once no new pod has appeared for this long.",
)
@click.option(
    "--batch-max",
    "--batch-max-duration",
    "batch_max_s",
    default="10s",
    show_default=True,
    envvar="BATCH_MAX_DURATION",
    show_envvar=True,
    callback=duration,
    help="Plan at the latest this long after the first pod.",
)
@click.option(
    "--period",
    "period_s",
    default="10s",
    show_default=True,
    callback=duration,
    help="How often to look for nodes to remove.",
)
@click.option(
    "--validate-after",
    "validated_after_s",
    default="15s",
    show_default=True,
    callback=duration,
    help="How long to wait before a removal is checked again and carried out.",
)
@click.option(
    "--leader-elect",
    type=click.BOOL,
    is_flag=False,
    flag_value=True,
    default=True,
    show_default=True,
    help="Elect a leader among the replicas; the others stand by.",
)
@click.option(
    "--namespace", default="kube-system", show_default=True, help="Where the Lease and the status ConfigMap are."
)
@endpoint_options(":8081")
@logging_options
def run(
    kubeconfig: str | None,
    context: str | None,
    provider: ProviderName,
    rules: str,
    config: Path | None,
    plugins: tuple[str, ...],
    batch_idle_s: float,
    batch_max_s: float,
    period_s: float,
    validated_after_s: float,
    leader_elect: bool,
    namespace: str,
    health_address: tuple[str, int] | None,
    metrics_address: tuple[str, int] | None,
    **purchase: Any,
) -> None:
    """Buy nodes for pods that fit nowhere, and remove nodes that are not needed, until SIGTERM or SIGINT.

    By default it buys and removes nothing: Events of pods and nodes, and the ConfigMap podium-provisioner, show what it
    would do.
    """
    from podium.cli.asking import errors_shown
    from podium.provisioner.controller.app import Options, Placing, ProvisionerApp
    from podium.server.election import Timings

    question = Question(**purchase)
    files.demand_one_stdin((question.node_pools, *question.catalogues))
    try:
        with errors_shown():
            node_pools = question.pools()
    except FieldError as error:
        raise click.ClickException(str(error)) from error
    placing = None
    if demand_rules(rules, config, plugins):
        # Importing plugins may take long, and SIGTERM must end the process meanwhile.
        with exit_0_at_sigterm():
            good = readable_as_any(lambda release: usable(config, plugins, to_run=False, release=release))
        good = good.as_of(release_to_run(kubeconfig, None, context=context)[0])
        placing = Placing(good.config, good.plugins, any_scheduler=config is None)
    options = Options(
        kubeconfig=kubeconfig,
        context=context,
        provider=provider,
        catalogue=question.instance_types(),
        node_pools=node_pools,
        settings=question.settings(),
        placing=placing,
        batch_idle_s=batch_idle_s,
        batch_max_s=batch_max_s,
        period_s=period_s,
        validated_after_s=validated_after_s,
        namespace=namespace,
        # Without a lease two provisioners would buy nodes for the same pods.
        timings=Timings() if leader_elect else None,
        health_address=health_address,
        metrics_address=metrics_address,
    )
    event_loop.run_process(ProvisionerApp(options).run)
