"""`podium shadow`: compare every binding of another scheduler with what podium would have done."""

from __future__ import annotations

from pathlib import Path

import click

from podium.cli import event_loop
from podium.cli.interrupts import exit_0_at_sigterm
from podium.cli.options.addresses import address
from podium.cli.options.durations import duration
from podium.cli.options.html import html_option, write_page
from podium.cli.options.logs import logging_options
from podium.cli.options.other_scheduler import for_schedulers, other_scheduler_options, usable_beside
from podium.cli.output import TEXT, output_option, print_value


@click.command()
@other_scheduler_options
@click.option(
    "--settle",
    "settled_s",
    default="2s",
    show_default=True,
    callback=duration,
    help="How long to wait for bindings that arrive out of order before a disagreement is explained.",
)
@click.option(
    "--disagreements",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write disagreements to this file, as questions for `podium evaluate`.",
)
@click.option(
    "--disagreements-max",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    help="The most disagreements to write. Each contains all objects of the cluster.",
)
@click.option(
    "--health-probe-bind-address",
    "health_address",
    default="",
    callback=address,
    help="The address of /healthz, /livez and /readyz, such as :8081. By default they are not served.",
)
@click.option(
    "--metrics-bind-address",
    "metrics_address",
    default="",
    callback=address,
    help="The address of /metrics, such as :8080. By default it is not served.",
)
@html_option("agreement, disagreements with their scores, and nodes, waiting pods and zones over time")
@output_option()
@logging_options
def command(
    kubeconfig: str | None,
    context: str | None,
    schedulers: tuple[str, ...],
    config: Path | None,
    plugins: tuple[str, ...],
    for_s: float | None,
    settled_s: float,
    disagreements: Path | None,
    disagreements_max: int,
    health_address: tuple[str, int] | None,
    metrics_address: tuple[str, int] | None,
    html: Path | None,
    output: str,
) -> None:
    """Compare what another scheduler does with what podium would have done, until SIGTERM or SIGINT.

    For each pod that the other scheduler binds, podium evaluates all nodes as its watches showed them. It changes
    nothing, and prints a report when it ends.
    """
    from podium.cli.shadow_table import print_report
    from podium.lib.system_clock import SystemClock
    from podium.recording.shadow.app import Options, ShadowApp
    from podium.recording.timeline import UtilizationRecorder

    # Until the event loop handles the signal itself.
    with exit_0_at_sigterm():
        good = usable_beside(config, plugins, kubeconfig, context)
    shadow_config = for_schedulers(good.config, schedulers, is_default=config is None)
    names, clock = [profile.scheduler_name for profile in shadow_config.profiles], SystemClock()
    recorder, started_s = UtilizationRecorder(names, clock.monotonic), clock.now()
    options = Options(
        config=shadow_config,
        classes=good.plugins,
        kubeconfig=kubeconfig,
        context=context,
        for_s=for_s,
        settled_s=settled_s,
        scenarios=disagreements,
        scenarios_max=disagreements_max,
        health_address=health_address,
        metrics_address=metrics_address,
        # Only for the page, since it costs time at each watch event.
        change_listeners=() if html is None else (recorder,),
    )
    report = event_loop.run_process(ShadowApp(options).run)
    if html is not None:
        from podium.cli.pages.shadow import page_of

        write_page(html, page_of(f"Shadow of {', '.join(names)}", report, recorder.timeline(started_s)))
    if output == TEXT:
        print_report(report)
    else:
        print_value(report.to_json(), output)
