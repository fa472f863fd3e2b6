"""`podium plan`: which nodes would Karpenter buy for the pods that wait?"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import orjson

from podium.cli import files
from podium.cli.asking import errors_shown
from podium.cli.exit_codes import EXIT_FAILED, EXIT_NO
from podium.cli.interrupts import exit_130_at_sigint
from podium.cli.options.paths import FILE
from podium.cli.options.time_limit import start_time_limit, warn_of_time_limit
from podium.cli.output import TEXT, as_json, output_option, print_value, say
from podium.cli.planning import (
    Question,
    demand_rules,
    planning_options,
    rules_options,
    scheduled_cluster,
    warn_of_not_counted,
)
from podium.cli.progress import counting
from podium.objects.errors import FieldError

if TYPE_CHECKING:
    from podium.engine.files import LocatedManifest
    from podium.provisioner.planners.placed_plans import PurchaseSearch
    from podium.provisioner.provisioning.plan_basis import PlanBasis
    from podium.provisioner.reports.plan import PlanReport


@click.command()
@planning_options
@rules_options
@click.option("--why", metavar="POD", help="Explain what happens to one pod.")
@click.option("--cases", type=FILE, help="Answer recorded cases, one JSON object per line.")
@click.option(
    "--one-pass",
    is_flag=True,
    help="Stop after the first pass of Karpenter's loop, even if another would place more pods.",
)
@click.option(
    "--search",
    type=click.Choice(["greedy", "exhaustive"]),
    default="greedy",
    show_default=True,
    help="With --rules podium: how to look for nodes; exhaustive proves that no other purchase is cheaper.",
)
@click.option("--exit-code", "tells_by_status", is_flag=True, help=f"Exit with {EXIT_NO} if a pod cannot be placed.")
@output_option()
def command(
    rules: str,
    config: Path | None,
    plugins: tuple[str, ...],
    why: str | None,
    cases: str | None,
    one_pass: bool,
    search: PurchaseSearch,
    tells_by_status: bool,
    output: str,
    **options: Any,
) -> None:
    """Plan which nodes to buy for the pods that wait, as Karpenter does. Changes nothing in any cluster.

    \b
    podium plan --kubeconfig FILE --catalogue instance-types.json
    podium plan -f cluster.yaml --add deployment.yaml
    podium plan -f cluster.yaml --why default/web-1

    These read a running cluster, or one from files and directories: YAML documents, JSON, or what `kubectl get -o yaml`
    prints; - is standard input. Without --catalogue there are generic instance types without prices.

    \b
    podium plan --cases FILE

    This answers recorded cases, always in JSON: one JSON object per line, with the objects of a cluster, the time and
    the settings. A line without an id defines a catalogue of instance types for the lines after it.
    """  # noqa: D301
    click.get_current_context().with_resource(exit_130_at_sigint())
    question = Question(**options)
    if cases is not None and (question.is_asked or why):
        raise click.UsageError("--cases brings its own clusters and catalogues")
    question.check(config)
    is_podium = demand_rules(rules, config, plugins)
    if is_podium and cases is not None:
        raise click.UsageError("--cases are answered by Karpenter's rules")
    if is_podium and one_pass:
        raise click.UsageError("--one-pass is for Karpenter's rules")
    # Karpenter's packing is the plan by its rules; a cheaper one would not be what it buys.
    if not is_podium and search != "greedy":
        raise click.UsageError("--search exhaustive is for --rules podium")
    if cases is not None:
        if not _answer_cases(cases):
            raise SystemExit(EXIT_FAILED)
        return
    with errors_shown():
        try:
            objects = question.objects()
            basis = _basis(question, objects)
            plan = (
                _plan_by_podium(basis, question, objects, config, plugins, search)
                if is_podium
                else _plan_by_karpenter(basis, objects, one_pass=one_pass)
            )
            answer = plan.as_dict() if why is None else plan.why(why)
        except FieldError as error:
            # Of a field in a NodePool or a catalogue, which the text names.
            raise click.ClickException(str(error)) from error
    warn_of_not_counted(plan.warnings)
    warn_of_time_limit(output)
    if output != TEXT:
        print_value(answer, output)
    elif why is None:
        from podium.cli.plan_table import print_plan

        print_plan(answer)
    else:
        from podium.cli.plan_table import print_reasons

        print_reasons(answer)
    if tells_by_status and answer.get("unschedulable"):
        raise SystemExit(EXIT_NO)


def _basis(question: Question, objects: list[LocatedManifest]) -> PlanBasis:
    from podium.provisioner.provisioning.plan_basis import PlanBasis

    return PlanBasis(*question.cluster(objects), question.settings())


def _plan_by_karpenter(basis: PlanBasis, objects: list[LocatedManifest], *, one_pass: bool) -> PlanReport:
    from podium.lib.system_clock import SystemClock
    from podium.provisioner.reports.plan import PlanReport
    from podium.provisioner.scheduling.device_use import DeviceUse

    devices = DeviceUse.of_manifests(item.manifest for item in objects)
    now_s, limit = SystemClock().now(), start_time_limit()
    return PlanReport.by_karpenter(basis, now_s, devices, limit, one_pass=one_pass)


def _plan_by_podium(
    basis: PlanBasis,
    question: Question,
    objects: list[LocatedManifest],
    config: Path | None,
    plugins: tuple[str, ...],
    search: PurchaseSearch,
) -> PlanReport:
    from podium.lib.system_clock import SystemClock
    from podium.provisioner.planners.placed_plans import plan_with_podium
    from podium.provisioner.reports.plan import PlanReport

    cluster = scheduled_cluster(question, objects, config, plugins)
    limit = start_time_limit()
    plan = plan_with_podium(basis, cluster, SystemClock().now(), limit, search)
    return PlanReport(basis, plan, limit.is_noticed)


def _answer_cases(name: str) -> bool:
    """Print the answers in the order of the file, and return whether every line could be read.

    Raises: click.ClickException: the first line cannot be read, so that this is another file.
    """
    from podium.provisioner.reports.cases import Cases

    cases, out, read, answer_count, is_whole = Cases(), sys.stdout.buffer, 0, 0, True
    with counting("answered") as advance:
        for number, line in files.lines(name):
            try:
                answer = cases.answer(_row(line))
            except FieldError as error:
                message = f"{name}:{number}: {error}"
                # A first line that cannot be read means that the file is no file of cases.
                if not read:
                    raise click.ClickException(message) from None
                is_whole = False
                say(f"Error: {message}", err=True)
                continue
            read += 1
            if answer is not None:
                out.write(as_json(answer) + b"\n")
                # A program that waits for the answer must not wait for the buffer to fill.
                out.flush()
                answer_count += 1
                advance()
    if not answer_count and is_whole:
        raise click.ClickException(f"{name}: none of its lines is a case that can be answered")
    return is_whole


def _row(line: bytes) -> Mapping[str, Any]:
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise FieldError("not a case", str(error)) from error
    if not isinstance(row, dict):
        raise FieldError("not a case", "expected an object with named fields")
    return row
