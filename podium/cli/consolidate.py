"""`podium consolidate`: which nodes could go, and what would take their place?"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from podium.cli.asking import errors_shown
from podium.cli.interrupts import exit_130_at_sigint
from podium.cli.options.numbers import FiniteRange
from podium.cli.options.time_limit import start_time_limit, warn_of_time_limit
from podium.cli.output import TEXT, output_option, print_value
from podium.cli.planning import (
    Question,
    demand_rules,
    planning_options,
    rules_options,
    scheduled_cluster,
    warn_of_not_counted,
)
from podium.objects.errors import FieldError

if TYPE_CHECKING:
    from podium.engine.cluster import Cluster
    from podium.engine.files import LocatedManifest
    from podium.provisioner.disruption.searches import Search
    from podium.provisioner.reports.consolidation_plan import ConsolidationOptions, ConsolidationPlan


@click.command()
@planning_options
@rules_options
@click.option(
    "--search",
    type=click.Choice(["prefix", "greedy", "exhaustive"]),
    default="prefix",
    show_default=True,
    help="How to search for nodes to remove together: as Karpenter does, or better and slower.",
)
@click.option("--allow-m-to-n", is_flag=True, help="Allow several nodes to replace those that are removed.")
@click.option(
    "--min-savings",
    type=FiniteRange(min=0),
    default=0.0,
    show_default=True,
    help="The least that a command must save per hour.",
)
@click.option("--ignore-budgets", is_flag=True, help="Allow any number of nodes to be removed at once.")
@click.option("--why", metavar="NODE", help="Explain what happens to one node.")
@output_option()
def command(
    rules: str,
    config: Path | None,
    plugins: tuple[str, ...],
    search: Search,
    allow_m_to_n: bool,
    min_savings: float,
    ignore_budgets: bool,
    why: str | None,
    output: str,
    **options: Any,
) -> None:
    """Plan which nodes to remove, one command after the other, as Karpenter would. Changes nothing in any cluster.

    \b
    podium consolidate --kubeconfig FILE --catalogue instance-types.json
    podium consolidate -f cluster.yaml --search greedy
    podium consolidate -f cluster.yaml --adopt-nodes --why node-7
    podium consolidate -f cluster.yaml --rules podium

    The answer lists everything that keeps each remaining node. Use --adopt-nodes in clusters without Karpenter.
    """  # noqa: D301
    click.get_current_context().with_resource(exit_130_at_sigint())
    question = Question(**options)
    question.check(config)
    is_podium = demand_rules(rules, config, plugins)
    from podium.provisioner.reports.consolidation_plan import ConsolidationOptions

    consolidation_options = ConsolidationOptions(
        search=search,
        allow_m_to_n=allow_m_to_n,
        min_savings=min_savings,
        ignore_budgets=ignore_budgets,
        in_own_words=is_podium,
    )
    with errors_shown():
        try:
            objects = question.objects()
            cluster = scheduled_cluster(question, objects, config, plugins) if is_podium else None
            plan = _plan(question, objects, consolidation_options, cluster)
            answer = plan.as_dict() if why is None else plan.why(why)
        except FieldError as error:
            raise click.ClickException(str(error)) from error
    warn_of_not_counted(plan.warnings)
    warn_of_time_limit(output)
    if output != TEXT:
        print_value(answer, output)
        return
    from podium.cli.consolidate_table import print_consolidation, print_node

    if why is None:
        print_consolidation(answer)
    else:
        print_node(answer)


def _plan(
    question: Question, objects_found: list[LocatedManifest], options: ConsolidationOptions, cluster: Cluster | None
) -> ConsolidationPlan:
    from podium.lib.system_clock import SystemClock
    from podium.provisioner.disruption.disruption_state import DisruptionState
    from podium.provisioner.disruption.simulation import Simulator
    from podium.provisioner.planners.placed_plans import settled_objects
    from podium.provisioner.planners.placing_simulator import PlacingSimulator
    from podium.provisioner.reports.consolidation_plan import plan_consolidation

    objects, catalogue = question.cluster(objects_found)
    limit = start_time_limit()
    # Pods that wait are placed first; otherwise their room would count as free.
    if cluster is not None:
        objects = settled_objects(objects, cluster)
    make_simulator = Simulator if cluster is None else partial(PlacingSimulator, cluster)
    state = DisruptionState.of(objects, catalogue, question.settings(), SystemClock().now(), make_simulator)
    return plan_consolidation(state, options, limit)
