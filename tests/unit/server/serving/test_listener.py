from __future__ import annotations

import socket

import pytest

from podium.server.serving import ServingError, listen


@pytest.mark.parametrize(("host", "may_be_name"), [("127.0.0.1", False), ("localhost", True), ("", False)])
def test_a_free_port_is_listened_on(host: str, may_be_name: bool) -> None:
    with listen(host, 0, may_be_name=may_be_name) as listener:
        port = listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            pass


def test_a_port_in_use_is_named_with_the_reason() -> None:
    with listen("127.0.0.1", 0) as open_listener:
        port = open_listener.getsockname()[1]
        with pytest.raises(ServingError, match=f"cannot listen on 127.0.0.1 port {port}: Address already in use"):
            listen("127.0.0.1", port)


def test_error_names_the_options_that_choose_the_port() -> None:
    with listen("127.0.0.1", 0) as open_listener:
        port = open_listener.getsockname()[1]
        with pytest.raises(ServingError, match=r"Address already in use; change --secure-port$"):
            listen("127.0.0.1", port, options="--secure-port")


@pytest.mark.parametrize(("host", "port"), [("localhost", 0), ("127.0.0.1", 65536), ("127.0.0.1", -1)])
def test_what_is_no_address_or_port_is_refused(host: str, port: int) -> None:
    with pytest.raises(ServingError, match=f"cannot listen on {host} port {port}: .+"):
        listen(host, port)


def test_a_port_of_all_addresses_is_called_so() -> None:
    with pytest.raises(ServingError, match="cannot listen on any address port 65536: "):
        listen("", 65536)
