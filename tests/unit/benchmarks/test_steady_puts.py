import time
from collections.abc import Callable, Sequence

import pytest

from benchmarks.etcd import EtcdError
from benchmarks.steady_puts import SteadyPuts


def _wait(is_so: Callable[[], object]) -> None:
    deadline_s = time.monotonic() + 10.0
    while not is_so() and time.monotonic() < deadline_s:
        time.sleep(0.001)


def test_messages_are_put_in_turn_over_and_over_and_no_more_than_are_due() -> None:
    put: list[bytes] = []
    started_s = time.monotonic()
    with SteadyPuts(put.extend, [b"one", b"two"], 1000.0) as puts:
        _wait(lambda: len(put) >= 3)
    assert put[:3] == [b"one", b"two", b"one"]
    assert puts.made == len(put) <= (time.monotonic() - started_s) * 1000.0


def test_a_refusal_is_raised_when_the_block_ends() -> None:
    refused: list[bytes] = []

    def refuse(messages: Sequence[bytes]) -> None:
        refused.extend(messages)
        raise EtcdError("refused")

    with pytest.raises(EtcdError, match="refused"), SteadyPuts(refuse, [b"one"], 1000.0):
        _wait(lambda: refused)


def test_nothing_is_put_of_nothing() -> None:
    put: list[bytes] = []
    with SteadyPuts(put.extend, [], 1000.0) as puts:
        pass
    assert (puts.made, put) == (0, [])
