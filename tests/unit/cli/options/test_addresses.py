from __future__ import annotations

import socket
from pathlib import Path

import pytest

from podium.cli.exit_codes import EXIT_FAILED, EXIT_USAGE
from tests.unit.cli.commands import run

LISTENERS: list[tuple[tuple[str, ...], str]] = [
    (("run",), "--bind-address"),
    (("estimator", "serve"), "--bind-address"),
    *(
        (command, option)
        for command in (("estimator", "serve"), ("clusters", "serve"), ("provisioner", "run"), ("shadow",))
        for option in ("--health-probe-bind-address", "--metrics-bind-address")
    ),
    (("clusters", "serve"), "--http-bind-address"),
    (("clusters", "serve"), "--grpc-bind-address"),
]
"""Each option that is an address to listen on, with its command."""


@pytest.mark.parametrize(("command", "option"), LISTENERS)
@pytest.mark.parametrize("host", ["no such name", "300.1.1.1", "a.invalid"])
def test_host_that_can_never_be_listened_on_is_a_usage_error(command: tuple[str, ...], option: str, host: str) -> None:
    text = host if option == "--bind-address" else f"{host}:0"
    result = run(*command, option, text)
    assert result.exit_code == EXIT_USAGE, result.output
    assert f"Invalid value for '{option}'" in result.output
    assert repr(host) in result.output


@pytest.mark.parametrize("text", ["8080", "localhost", "localhost:", ":65536", ":-1", "localhost:http"])
def test_address_without_a_port_is_a_usage_error(text: str) -> None:
    result = run("clusters", "serve", "--http-bind-address", text)
    assert result.exit_code == EXIT_USAGE
    assert "does not end in a colon and a port from 0 to 65535" in result.output


def test_port_of_the_sandbox_that_is_taken_is_named_with_its_option(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        result = run("sandbox", "--port", port, "--write-kubeconfig", tmp_path / "kubeconfig.yaml")
    assert result.exit_code == EXIT_FAILED
    message = f"Error: cannot serve on port {port}: Address already in use; change --port (0 takes a free one)"
    assert result.output.splitlines() == [message]
