"""`podium demo`: run the scheduler against an embedded API server and show the result."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, BinaryIO, cast

import click
from click.core import ParameterSource
from rich.text import Text

from podium.cli import event_loop
from podium.cli.exit_codes import EXIT_INTERRUPTED
from podium.cli.fix_command import fix_command
from podium.cli.options.configuration import Usable, discover_plugins, gates_of, plugin_option, usable
from podium.cli.options.devices import devices_option
from podium.cli.options.numbers import FiniteRange
from podium.cli.options.releases import as_the_newest
from podium.cli.output import TEXT, LinesException, output_option, print_value, say
from podium.cli.plain_text import PlainConsole
from podium.config import ConfigError, KubeSchedulerConfiguration, default_configuration

if TYPE_CHECKING:
    from podium.cli.demo.outcome import Outcome
    from podium.cli.demo.run import Plan
    from podium.sandbox.device_drivers import DeviceKind

_SCHEDULER_NAME = "podium"
_OPTION_OF = {"plugins": "plugin", "timeout_s": "timeout"}
_NODES_MIN = 5
_NODES_MAX = 100_000
_PODS_PER_NODE_MAX = 10


@click.command()
@click.option("--nodes", default=50, show_default=True, help="The number of nodes, at least 5.")
@click.option("--pods", default=500, show_default=True, help="The number of pods that fit, at most 10 per node.")
@output_option()
@click.option("--seed", default=0, show_default=True, help="The same seed gives the same nodes and pods.")
@click.option(
    "--timeout",
    "timeout_s",
    type=FiniteRange(min=0, min_open=True),
    default=120.0,
    show_default=True,
    help="The seconds after which the demo gives up.",
)
@click.option("--config", type=click.Path(path_type=Path), help="Schedule with this configuration's first profile.")
@plugin_option
@as_the_newest
@click.option(
    "--autoscale", is_flag=True, help="Show how nodes are bought when pods arrive and removed when pods end, instead."
)
@click.option(
    "--ui",
    "is_live",
    is_flag=True,
    help="Let pods come and go until Ctrl-C, and show the queue, the decisions and the nodes on a page in the browser.",
)
@click.option("--no-browser", is_flag=True, help="With --ui: print the address of the page, and do not open it.")
@click.option(
    "--gangs",
    type=click.IntRange(min=0),
    default=0,
    help="Also create this number of pod groups of three pods, which start together or not at all, and one that fits "
    "nowhere.",
)
@devices_option("Devices of every node, such as gpu=8, and additional pods with claims for them. Repeatable.")
def command(
    nodes: int,
    pods: int,
    output: str,
    seed: int,
    timeout_s: float,
    config: Path | None,
    plugins: tuple[str, ...],
    autoscale: bool,
    is_live: bool,
    no_browser: bool,
    gangs: int,
    devices: tuple[DeviceKind, ...],
) -> None:
    """Schedule pods on the nodes of an embedded API server, and show the result.

    The API server runs in a separate process. The pods, and three more that fit on no node, are created before the
    scheduler starts. The measured time begins when the scheduler has seen all pods and ends when the API server
    reports the last binding. Request rate limits in the configuration are ignored. With --devices, pods that claim
    half of the devices are created too, and a fourth one that fits nowhere. With --gangs, the feature gate
    GenericWorkload is on.

    Exits with 0 if every pod that can fit is bound and the three others are reported unschedulable. With --output json
    or yaml, standard output contains only that document.

    With --autoscale the cluster begins without nodes: `podium provisioner run` buys them for the pods of three
    Deployments, and removes those that are not needed once the Deployments are scaled down.

    With --ui it goes on until Ctrl-C, and serves the live page of `podium run --ui` on 127.0.0.1, without a login. It
    opens a browser if there is a screen.
    """
    good = _configuration(config, plugins, ("GenericWorkload=true",) if gangs or is_live else ())
    if is_live:
        _refuse(
            "--ui shows pods that come and go, without an end, with claims and gangs of its own",
            "autoscale",
            "devices",
            "gangs",
            "output",
            "timeout_s",
        )
        _check_sizes(nodes, pods)
        asked_with = partial(fix_command, context=None, file=config, plugins=plugins, config=good.config)
        _show_live(nodes, pods, seed, good, asked_with, opens_browser=not no_browser)
        return
    if autoscale:
        _refuse("--autoscale brings its own nodes and pods", "nodes", "pods", "devices", "gangs", "plugins")
        _autoscale(good.config, seed, timeout_s, output)
        return
    _check_sizes(nodes, pods + 3 * gangs)
    from podium.cli.demo.run import Plan

    plan = Plan(nodes, pods, seed, timeout_s, good.config, good.plugins, devices, gangs, good.pod_groups)
    console = PlainConsole(stderr=output != TEXT)
    if output == TEXT:
        console.print(Text.assemble(("podium demo", "bold"), f": {nodes} nodes, {pods} pods, seed {seed}\n"))
    outcome = _run(plan, console)
    if output == TEXT:
        _show(outcome, console)
    else:
        print_value(outcome.summary(), output)
    if not outcome.is_success:
        from podium.cli.demo.summary import failure

        raise click.ClickException(failure(outcome, timeout_s))


def _refuse(reason: str, *names: str) -> None:
    """Refuse options that this demo does not use."""
    parameter_source = click.get_current_context().get_parameter_source
    for name in names:
        # Only what the user gave: the defaults of other demos are no mistake.
        if parameter_source(name) is not ParameterSource.DEFAULT:
            raise click.UsageError(f"--{_OPTION_OF.get(name, name)}: {reason}")


def _show_live(
    nodes: int, pods: int, seed: int, good: Usable, asked_with: Callable[[str], tuple[str, ...]], *, opens_browser: bool
) -> None:
    from podium.cli.demo.live import run_live
    from podium.cli.demo.progress import LiveProgress, PlainProgress
    from podium.cli.demo.run import Plan

    plan = Plan(nodes, pods, seed, 0.0, good.config, good.plugins, pod_groups=good.pod_groups)
    console = PlainConsole()

    def tell(url: str, kubeconfig: Path) -> None:
        question = f"podium why no-such-node --kubeconfig {kubeconfig} --fix"
        text = f"\nThe live page: {url}\nA pod waits; what would make it fit: {question}\nCtrl-C ends the demo."
        console.print(Text(text), soft_wrap=True)

    _log_only(logging.WARNING, console)
    with _errors_shown(), LiveProgress(console) if console.is_terminal else PlainProgress(console) as progress:
        event_loop.run(lambda: run_live(plan, progress, tell, asked_with, opens_browser=opens_browser))


def _autoscale(config: KubeSchedulerConfiguration, seed: int, timeout_s: float, output: str) -> None:
    from podium.cli.demo.autoscale import run_autoscale
    from podium.cli.demo.autoscale_screen import LiveScreen, PlainScreen

    console = PlainConsole(stderr=output != TEXT)
    # Warnings would only say that this API server knows no NodePools.
    _log_only(logging.ERROR, console)
    with _errors_shown(), LiveScreen(console) if console.is_terminal else PlainScreen(console) as screen:
        story = event_loop.run(lambda: run_autoscale(config, seed, timeout_s, screen))
    if output == TEXT:
        console.print(Text(f"\n{story.text}"))
    else:
        print_value(story.summary(), output)


def _check_sizes(nodes: int, pods: int) -> None:
    if nodes < _NODES_MIN:
        raise click.UsageError(
            f"--nodes must be at least {_NODES_MIN}: the demo needs one node of each of its {_NODES_MIN} kinds"
        )
    if nodes > _NODES_MAX:
        raise click.UsageError(f"--nodes must be at most {_NODES_MAX:,}")
    if pods < 1:
        raise click.UsageError("--pods must be at least 1")
    if pods > _PODS_PER_NODE_MAX * nodes:
        raise click.UsageError(
            f"--pods must be at most {_PODS_PER_NODE_MAX * nodes} for {nodes} nodes, which always have room for "
            f"{_PODS_PER_NODE_MAX} each"
        )


def _configuration(path: Path | None, plugins: Sequence[str], feature_gates: Sequence[str]) -> Usable:
    if path is not None:
        good = usable(path, plugins, feature_gates)
        for warning in good.warnings:
            say(f"{path}: warning: {warning}", err=True)
        return good
    plugin_classes = discover_plugins(plugins)
    gates = gates_of(feature_gates)
    config = default_configuration(gates)
    profile = replace(config.profiles[0], scheduler_name=_SCHEDULER_NAME)
    return Usable(replace(config, profiles=(profile,)), plugin_classes, (), gates.pod_groups)


def _run(plan: Plan, console: PlainConsole) -> Outcome:
    from podium.cli.demo.progress import LiveProgress, PlainProgress
    from podium.cli.demo.run import run

    _log_only(logging.WARNING, console)
    with _errors_shown(), LiveProgress(console) if console.is_terminal else PlainProgress(console) as progress:
        return event_loop.run(lambda: run(plan, progress))


@contextmanager
def _errors_shown() -> Iterator[None]:
    """End the command in one line if a demo cannot go on."""
    from podium.cli.demo.run import StoppedEarlyError, TooSlowError
    from podium.cli.demo.server import ServerError
    from podium.framework.contract.status import PluginError
    from podium.objects.api_errors import ApiError

    try:
        yield
    except* (StoppedEarlyError, KeyboardInterrupt):
        # except*, since tasks run in groups, and several may have failed.
        say("Interrupted.", err=True)
        raise SystemExit(EXIT_INTERRUPTED) from None
    except* (ServerError, ApiError, PluginError, ConfigError, TooSlowError, OSError) as group:
        raise LinesException(event_loop.messages(group)) from None


def _show(outcome: Outcome, console: PlainConsole) -> None:
    from podium.cli.demo.summary import lines

    console.print()
    # The width of standard output: the console would use any terminal it finds, such as that of standard input.
    width = get_terminal_size().columns
    for line in lines(outcome, width, ascii_only=console.options.ascii_only):
        console.print(line, soft_wrap=True)


def _log_only(level: int, console: PlainConsole) -> None:
    """Hide the daemon's lines below this level, and print the others above the progress display.

    If standard output is a file, they go to standard error instead.
    """
    import structlog

    from podium.telemetry import configure_logging

    # A live display redraws its lines, and a log line in between would tear it.
    log_console = console if console.is_terminal else PlainConsole(stderr=True)
    configure_logging(form="console", stream=cast(BinaryIO, _Lines(log_console)))
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(level))


class _Lines:
    """A byte stream that writes to a console."""

    def __init__(self, console: PlainConsole) -> None:
        self._console = console

    def write(self, line: bytes) -> int:
        """Print whole lines."""
        self._console.print(Text(line.decode().rstrip("\n")), soft_wrap=True)
        return len(line)

    def flush(self) -> None:
        """Do nothing: `write` does not buffer."""

    def isatty(self) -> bool:
        """Return False, so that the log adds no colours."""
        return False
