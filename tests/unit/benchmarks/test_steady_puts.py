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
    puts_sent: list[bytes] = []
    started_s = time.monotonic()
    with SteadyPuts(puts_sent.extend, [b"one", b"two"], 1000.0) as puts:
        _wait(lambda: len(puts_sent) >= 3)
    assert puts_sent[:3] == [b"one", b"two", b"one"]
    assert puts.made == len(puts_sent) <= (time.monotonic() - started_s) * 1000.0


def test_a_refusal_is_raised_when_the_block_ends() -> None:
    refusals: list[bytes] = []

    def refuse(messages: Sequence[bytes]) -> None:
        refusals.extend(messages)
        raise EtcdError("refused")

    with pytest.raises(EtcdError, match="refused"), SteadyPuts(refuse, [b"one"], 1000.0):
        _wait(lambda: refusals)


def test_nothing_is_put_of_nothing() -> None:
    puts_sent: list[bytes] = []
    with SteadyPuts(puts_sent.extend, [], 1000.0) as puts:
        pass
    assert (puts.made, puts_sent) == (0, [])
