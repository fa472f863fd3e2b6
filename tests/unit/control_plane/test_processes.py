import socket
from pathlib import Path

import pytest

from tests.control_plane.processes import ServerProcess, StartError, free_ports


def test_a_server_that_ends_before_it_is_ready_shows_the_end_of_its_log(tmp_path: Path) -> None:
    server = ServerProcess("web", ["sh", "-c", "echo the port is taken >&2; exit 3"], tmp_path / "log")
    with pytest.raises(StartError, match=r"(?s)^web ended with 3:.*the port is taken"):
        server.wait_ready(lambda: False)


def test_a_server_that_is_never_ready_is_given_up(tmp_path: Path) -> None:
    server = ServerProcess("web", ["sleep", "60"], tmp_path / "log")
    try:
        with pytest.raises(StartError, match="was not ready after 0 s"):
            server.wait_ready(lambda: False, timeout_s=0)
    finally:
        server.kill()


def test_stop_returns_when_the_process_is_gone_and_can_be_repeated(tmp_path: Path) -> None:
    server = ServerProcess("web", ["sleep", "60"], tmp_path / "log")
    server.wait_ready(lambda: True)
    assert server.is_running
    server.stop()
    server.stop()
    assert not server.is_running


def test_a_server_may_have_more_in_its_environment_than_the_tests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OURS", "1")
    server = ServerProcess("web", ["sh", "-c", "echo $OURS $ITS"], tmp_path / "log", {"ITS": "2"})
    with pytest.raises(StartError, match=r"(?s)^web ended with 0:\n1 2$"):
        server.wait_ready(lambda: False)


def test_cpu_time_is_read_whatever_the_command_is_called(tmp_path: Path) -> None:
    odd = tmp_path / "a name) with 9 9"
    odd.symlink_to("/bin/sleep")
    server = ServerProcess("web", [odd, "60"], tmp_path / "log")
    try:
        assert 0 <= server.cpu_s() < 1
    finally:
        server.kill()


def test_output_through_a_pipe_is_in_the_log_when_the_server_has_stopped(tmp_path: Path) -> None:
    command = ["sh", "-c", "test -p /dev/stderr && echo piped >&2; exec sleep 60"]
    server = ServerProcess("web", command, tmp_path / "log", is_piped=True)
    server.wait_ready(lambda: bool(server.log_tail()))
    server.stop()
    assert server.log_tail() == "piped"


def test_free_ports_are_distinct_and_can_be_listened_on() -> None:
    ports = free_ports(3)
    assert len(set(ports)) == 3
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", ports[0]))


def test_processes_of_one_test_run_get_different_free_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", "3")
    places = []
    for worker in ("gw0", "gw1", "gw2"):
        monkeypatch.setenv("PYTEST_XDIST_WORKER", worker)
        places.append({port % 3 for port in free_ports(5)})
    assert [len(port_place) for port_place in places] == [1, 1, 1]
    assert len(set.union(*places)) == 3
