"""`podium why --url`: a podium that runs is asked over HTTPS, with its own access control."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest
from aiohttp import web
from anyio.from_thread import start_blocking_portal
from click.testing import Result
from structlog.testing import capture_logs

from podium.cli import running_podium
from podium.daemon.recorder_pages import RecorderPages
from podium.server.serving.server import Pages
from tests.builders import pod
from tests.integration.cli.served import PAIR, TOKEN, podium_with
from tests.patience import PATIENCE_S
from tests.unit.cli.commands import run
from tests.unit.daemon.recorded_attempts import flight_recorder, recorder_pages
from tests.unit.queues.builders import QueueBench, Rejecter


@dataclass
class Asking:
    """Asks a podium that serves these pages, as a user with rights who trusts its certificate."""

    directory: Path
    serve: Callable[[Pages], int]
    port: int = 0
    token: Path = field(init=False)
    authority: Path = field(init=False)

    def __post_init__(self) -> None:
        self.token, self.authority = self.directory / "token", self.directory / "ca.crt"
        self.token.write_text(TOKEN)
        self.authority.write_bytes(PAIR.certificate)

    def __call__(self, *arguments: str, pages: RecorderPages | Pages | None = None) -> Result:
        if pages is not None or not self.port:
            pages = pages or recorder_pages(flight_recorder(), QueueBench())
            self.port = self.serve(pages.pages if isinstance(pages, RecorderPages) else pages)
        trusted = ["--token-file", self.token, "--certificate-authority", self.authority]
        return run("why", *arguments, "--url", f"https://127.0.0.1:{self.port}", *trusted)

    def with_(self, *access: Any) -> Result:
        """The answer for a user with other ways of access."""
        return run("why", "web", "--url", f"https://127.0.0.1:{self.port}", *access)


@pytest.fixture
def ask(tmp_path: Path) -> Iterator[Asking]:
    with capture_logs(), start_blocking_portal() as portal, contextlib.ExitStack() as stack:

        def start(pages: Pages) -> int:
            return stack.enter_context(portal.wrap_async_context_manager(podium_with(pages, tmp_path)))

        yield Asking(tmp_path, start)


def lines(result: Result) -> list[str]:
    assert (result.exit_code, result.stderr) == (0, "")
    return [" ".join(line.split()) for line in result.stdout.splitlines()]


def test_a_bound_pods_node_is_explained_against_the_others(ask: Asking) -> None:
    output_lines = lines(ask("web", "--node", "n0"))
    assert output_lines[:3] == [
        "default/web is on n1",
        "Attempt 1, at 1970-01-01T00:00:01.000000Z, took 1.00 ms: 1 of the 3 nodes examined fit (3 in the cluster)",
        "It was bound to n1",
    ]
    assert "n1 170 70 100" in output_lines
    assert "n1 beats n2 by 30: Fit +20, Spread +10" in output_lines
    assert "1 TaintToleration had taints n0" in output_lines
    assert output_lines[-2:] == ["It does not fit on n0:", "TaintToleration: had taints"]
    assert lines(ask("web", "--node", "n2"))[-1] == "It fits on n2, with a score of 140"


def test_a_pending_pods_rejections_and_next_try_are_shown(ask: Asking) -> None:
    bench = QueueBench(Rejecter("NodeResourcesFit"))
    bench.add_rejected(pod("big", namespace="shop"), "NodeResourcesFit")
    output_lines = lines(ask("big", "-n", "shop", pages=recorder_pages(flight_recorder(), bench)))
    assert output_lines[0] == "shop/big is pending"
    assert output_lines[1].startswith(
        "It waits in the queue: unschedulable; next try: when an event of NodeResourcesFit"
    )
    assert output_lines[3].startswith("It was not scheduled: 0/3 nodes are available: ")
    assert "2 NodeResourcesFit Insufficient cpu n0, n2" in output_lines
    assert ask("shop/big", "--exit-code").exit_code == 3
    assert ask("web", "--exit-code").exit_code == 0


def test_why_names_amounts_and_plugins_that_reject_a_pending_pod(ask: Asking) -> None:
    bench = QueueBench(Rejecter("NodeResourcesFit"))
    details = {"NodeResourcesFit": "requests 64, at most 2.5 free (n0)"}
    pages = recorder_pages(flight_recorder(), bench, detail_of=lambda _, group: details.get(group.plugin, ""))
    output_lines = lines(ask("shop/big", "--node", "n0", pages=pages))
    assert "2 NodeResourcesFit Insufficient cpu: requests 64, at most 2.5 free (n0) n0, n2" in output_lines
    assert output_lines[-1] == "NodeResourcesFit: Insufficient cpu; requests 64, at most 2.5 free (n0)"
    answer = json.loads(ask("shop/big", "-o", "json", pages=pages).stdout)
    assert answer["why"]["groups"][0]["detail"] == "requests 64, at most 2.5 free (n0)"
    assert "2.5 free" not in ask("web", "--node", "n0", pages=pages).stdout


def test_a_pod_without_attempts_and_one_on_a_standby_are_reported(ask: Asking) -> None:
    assert lines(ask("new")) == [
        "default/new is pending",
        "It is not in podium's queue: another scheduler may be meant to place it",
        "No attempt to schedule it is on record",
    ]
    pages = recorder_pages(flight_recorder(), QueueBench(), leader="podium-1")
    assert lines(ask("new", pages=pages))[1] == "This replica stands by; podium-1 leads: ask it"


def test_the_command_of_the_page_about_questions_is_answered(ask: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[3] / "docs" / "questions.md").read_text()
    (command,) = re.findall(r"^\$ podium (why .*--url.*)$", page, re.MULTILINE)
    ask("web")
    monkeypatch.chdir(ask.directory)
    replacements = {"web-7d4": "big", "https://localhost:10259": f"https://127.0.0.1:{ask.port}"}
    arguments = [replacements.get(argument, argument) for argument in shlex.split(command)]
    assert lines(run(*arguments, "--certificate-authority", ask.authority))[0] == "shop/big is pending"


def test_json_has_the_whole_story(ask: Asking) -> None:
    answer = json.loads(ask("web", "-o", "json").stdout)
    assert (answer["pod"], answer["bound_to"], answer["attempts"][0]["seconds"]) == ("default/web", "n1", 0.25)
    assert answer["why"]["verdict"] == "n1 beats n2 by 30: Fit +20, Spread +10"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["wep"], "there is no pod default/wep; did you mean default/web?"),
        (["default/big"], "there is no pod default/big; did you mean shop/big?"),
        (["web", "--node", "n11"], "there is no node n11; did you mean n1?"),
    ],
)
def test_unknown_pods_and_nodes_are_reported_with_the_nearest_names(
    ask: Asking, arguments: list[str], message: str
) -> None:
    result = ask(*arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    assert message in result.stderr


def test_a_recorder_that_is_off_says_how_to_turn_it_on(ask: Asking) -> None:
    result = ask("web", pages=recorder_pages(None, QueueBench()))
    assert (result.exit_code, "--recorder-memory=32Mi" in result.stderr) == (1, True)


def test_refusals_say_what_to_do(ask: Asking) -> None:
    assert ask("web").exit_code == 0
    wrong = ask.directory / "wrong"
    wrong.write_text("wrong")
    trusted = "--certificate-authority", ask.authority
    for access, message in (
        ((*trusted, "--token-file", wrong), "podium does not accept the token: "),
        (trusted, 'add the rule {nonResourceURLs: ["/debug/pods/*"], verbs: [get]} to a ClusterRole'),
        (
            ("--token-file", ask.token),
            "accept any certificate, such as a self-made one, with --insecure",
        ),
        ((*trusted, "--token-file", ask.directory / "none"), "none"),
        (("--certificate-authority", ask.token), "certificate authority"),
    ):
        result = ask.with_(*access)
        assert (result.exit_code, result.stdout) == (1, "")
        assert message in result.stderr
        assert len(result.stderr.splitlines()) == 1
    assert ask.with_("--insecure-skip-tls-verify", "--token-file", ask.token).exit_code == 0


def test_an_address_where_no_podium_answers_is_reported(ask: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    async def silent(_: web.Request) -> web.Response:
        await anyio.sleep_forever()
        raise AssertionError

    async def strange(_: web.Request) -> web.Response:
        return web.Response(text="welcome")

    page = "/debug/pods/{namespace}/{name}"
    monkeypatch.setattr(running_podium, "_DEADLINE_S", PATIENCE_S)
    for pages, message in (
        ({"/other": strange}, "there is no page /debug/pods/default/web"),
        ({page: strange}, "the answer is not that of this version of podium"),
    ):
        result = ask("web", pages=pages)
        assert (result.exit_code, message in result.stderr) == (1, True), result.stderr
    for deadline_s in (0.25, 1.0, 4.0, 16.0):
        monkeypatch.setattr(running_podium, "_DEADLINE_S", deadline_s)
        result = ask("web", pages={page: silent})
        if "no connection in time" not in result.stderr:  # as a busy machine needs longer to make one
            break
    message = f"podium did not answer within {deadline_s:g} s"
    assert (result.exit_code, message in result.stderr) == (1, True), result.stderr
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    result = run("why", "web", "--url", f"https://127.0.0.1:{port}")
    assert (result.exit_code, "nothing listens at its address" in result.stderr) == (1, True)
    assert "--kubeconfig" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["web", "--url", "https://x", "-f", "y"], "--url asks a running podium"),
        (["web", "--url", "https://x", "--fix"], "--url asks a running podium"),
        (["web", "--token-file", "x"], "go with --url"),
    ],
)
def test_bad_command_lines_are_refused(arguments: list[str], message: str) -> None:
    result = run("why", *arguments)
    assert (result.exit_code, message in result.stderr) == (2, True)


def test_an_address_that_is_none_is_refused() -> None:
    result = run("why", "web", "--url", "localhost:10259")
    assert (result.exit_code, "--url is not an http or https URL" in result.stderr) == (2, True)


@pytest.mark.parametrize("url", ["http://127.0.0.1:{}", "HTTP://127.0.0.1:{}", "http://me:secret@127.0.0.1:{}"])
def test_a_token_is_not_sent_over_plain_http_unless_that_is_asked_for(url: str, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(TOKEN)
    access = [] if "@" in url else ["--token-file", str(tmp_path / "token")]
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        command_line = ["why", "web", "--url", url.format(server.getsockname()[1]), *access]
        result = run(*command_line)
        assert (result.exit_code, result.stdout) == (1, "")
        assert "is not encrypted" in result.stderr
        assert "--send-token-unencrypted" in result.stderr
        assert "secret" not in result.stderr
        with pytest.raises(BlockingIOError):
            server.accept()
    # Nobody listens any more, but it is tried.
    assert "nothing listens at its address" in run(*command_line, "--send-token-unencrypted").stderr


def test_asking_a_running_podium_loads_no_scheduler(ask: Asking) -> None:
    """It takes most of the time of a short command."""
    ask("web")
    arguments = ["why", "web", "--url", f"https://127.0.0.1:{ask.port}", "--insecure-skip-tls-verify"]
    arguments += ["--token-file", str(ask.token)]
    code = (
        "import sys; from podium.cli.main import main\n"
        f"main({arguments!r}, standalone_mode=False)\n"
        "print(sorted(sys.modules.keys() & {'numpy', 'podium.engine', 'podium.framework', 'podium.plugins'}))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE_S, check=True
    )
    assert result.stdout.splitlines()[0] == "default/web is on n1"
    assert result.stdout.splitlines()[-1] == "[]"
