"""`podium evaluate`: where would a pod go, and why? Asked without a cluster."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import orjson

from podium.cli import files
from podium.cli.configuration import Usable, plugin_option, usable
from podium.cli.interrupts import ending_at_once


@click.command()
@click.argument("scenarios", nargs=-1, metavar="[SCENARIOS]...")
@click.option("-f", "--cluster", "clusters", multiple=True, metavar="FILE", help="Objects of a cluster. Repeatable.")
@click.option("--pod", "pod_file", metavar="FILE", help="The pod that asks where it would go.")
@click.option("--config", type=click.Path(path_type=Path), help="A KubeSchedulerConfiguration, YAML or JSON.")
@plugin_option
@click.option("--output", type=click.Choice(["table", "json"]), default="table", help="How to answer about a pod.")
def command(
    scenarios: tuple[str, ...],
    clusters: tuple[str, ...],
    pod_file: str | None,
    config: Path | None,
    plugins: tuple[str, ...],
    output: str,
) -> None:
    """Say where a pod would go, and why, without touching a cluster.

    \b
    podium evaluate -f cluster.yaml --pod pod.yaml
    kubectl get nodes,pods -A -o yaml | podium evaluate -f - --pod pod.yaml

    A file holds Kubernetes objects: YAML documents, JSON, or what `kubectl get -o yaml` prints; - is standard input.
    Every node is judged, and every one that fits is scored.

    \b
    podium evaluate scenarios.jsonl.gz

    answers recorded scenarios: one JSON object a line, with the objects, the configuration and the pod.
    """  # noqa: D301
    click.get_current_context().with_resource(ending_at_once())
    good = usable(config, plugins, to_run=False)
    if pod_file is not None and not scenarios:
        _answer_pod(clusters, pod_file, good, output, any_scheduler=config is None)
    elif scenarios and pod_file is None and not clusters:
        _answer_scenarios(scenarios, good)
    else:
        raise click.UsageError("give either files of scenarios, or a cluster with -f and a pod with --pod")


def _answer_scenarios(names: tuple[str, ...], good: Usable) -> None:
    from podium.whatif import Evaluator

    evaluator = Evaluator(good.plugins, good.config)
    out = sys.stdout.buffer
    for name in names:
        answered = 0
        for number, line in files.lines(name):
            answer = evaluator.answer_line(line, f"{name}:{number}")
            out.write(orjson.dumps(answer) + b"\n")
            answered += "error" not in answer
        if not answered:
            raise click.ClickException(f"{name}: no line of it is a scenario that can be answered")


def _answer_pod(clusters: tuple[str, ...], pod_file: str, good: Usable, output: str, *, any_scheduler: bool) -> None:
    from podium.cli.evaluate_table import print_table
    from podium.framework.status import PluginError, ScheduleError
    from podium.whatif import Question, WhatIfError

    try:
        question = Question.read(
            [(name, files.content(name)) for name in clusters], (pod_file, files.content(pod_file))
        )
        answer = question.ask(good.config, good.plugins, any_scheduler=any_scheduler)
    except (WhatIfError, ScheduleError, PluginError) as error:
        raise click.ClickException(str(error)) from error
    if output == "json":
        click.echo(orjson.dumps(answer.to_json()))
    else:
        print_table(answer)
