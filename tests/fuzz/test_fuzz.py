"""A few seeds of each surface, and what has done harm before."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tests.fuzz import configuration, limits, objects, watch_bytes
from tests.fuzz.campaign import SURFACES, Surface, Tally, run_batch
from tests.fuzz.crowds import CROWDS, Crowded, Labelled
from tests.fuzz.limits import stall_s
from tests.fuzz.mutations import Mutation, Repeated
from tests.fuzz.objects import Hostile
from tests.fuzz.targets import TARGETS
from tests.fuzz.watch_bytes import RUBBISH, SHAPES, Line, Sending

_INPUTS = 15
_GOOD = Line("ADDED", 1, 5, ())


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("CRITICAL")


@pytest.mark.parametrize("surface", SURFACES, ids=lambda surface: surface.name)
@pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisWarning")
def test_hostile_inputs_do_no_harm(surface: Surface) -> None:
    tally = Tally(surface.name)
    run_batch(surface, 1, _INPUTS, tally)
    assert tally.inputs >= _INPUTS


@pytest.mark.parametrize("line", RUBBISH, ids=lambda line: repr(line[:40]))
def test_a_list_or_watch_that_brings_rubbish_is_begun_anew(line: bytes) -> None:
    watch_bytes.check(Sending((), True, (line,), b"", (3, 400), ("\n",)))
    for shape in (0, len(SHAPES) - 1):
        watch_bytes.check(Sending((_GOOD, line, _GOOD), True, (), b"", (), ("\n",), shape, piece_bytes=1))


@pytest.mark.parametrize(
    "text",
    [
        b'{"kind": "KubeSchedulerConfiguration", "": 1}',
        configuration.bomb(6, 8).encode(),
        b"a: b\n" * 100_000,
        b"[" * 10_000,
    ],
    ids=["a field without a name", "aliases", "long", "deep"],
)
def test_a_configuration_that_did_harm_is_refused(text: bytes) -> None:
    configuration.check(text)


def _identity(tree: Any) -> Any:
    return tree


@pytest.mark.parametrize(
    ("section", "change"),
    [("affinity", Repeated(where, 10_000, 1)) for where in range(40, 90, 15)]
    + [("schedulingGates", Repeated(525, 10_000, 2))],
)
def test_a_pod_with_ten_thousand_of_anything_holds_nobody_up(section: str, change: Mutation) -> None:
    objects.check([Hostile("Pod", (section,), "", (_identity, change))])


@pytest.mark.parametrize("where", ["", "node-1"], ids=["pending", "running"])
@pytest.mark.parametrize("name", CROWDS)
def test_a_pod_crowded_with_small_demands_holds_nobody_up(name: str, where: str) -> None:
    objects.check([Hostile("Pod", (), where, (Crowded(name, 1_000), Crowded(name, 10_000)))])


@pytest.mark.parametrize("where", ["", "node-1"], ids=["pending", "running"])
def test_a_pod_with_a_hundred_thousand_labels_holds_nobody_up(where: str) -> None:
    objects.check([Hostile("Pod", (), where, (Labelled(20_000), Labelled(100_000)))])


def test_a_stall_a_hang_and_a_wrong_field_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HANG_S", 0.1)
    with pytest.raises(AssertionError, match="a stall: 2000 ms"):
        stall_s(lambda: 2.0)
    with pytest.raises(AssertionError, match="a hang"):
        stall_s(_never_ends_in_a_group)
    with pytest.raises(TypeError):
        objects.check([Hostile("Pod", (), "", (_identity, _fail))])


def _never_ends_in_a_group() -> float:
    try:
        while True:
            pass
    except BaseException as error:
        raise BaseExceptionGroup("of tasks", [error]) from error


def _fail(tree: Any) -> Any:
    raise TypeError("no such change")


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_takes_its_seeds_and_what_becomes_of_them(name: str) -> None:
    run, seeds = TARGETS[name]
    contents = [content for content, _ in zip(seeds(), range(_INPUTS), strict=False)]
    assert contents
    random = Random(name)
    for content in contents:
        run(content)
        for _ in range(_INPUTS):
            place = random.randrange(len(content))
            run(content[:place] + random.randbytes(random.randrange(3)) + content[place + random.randrange(3) :])


@pytest.mark.parametrize(
    "content",
    [
        b'{"items":[{"metadata":{"name":"n1\xb3"},"usage":{"cpu":"1","memory":"1Gi"}}]}',
        b'{"data":{"NodeMetricsMap":{"n1":{"metrics":[{"name":"x","type":"C\xb3","operator":"Average","value":5}]}}}}',
    ],
)
def test_one_item_of_an_answer_that_is_not_utf_8_is_noted(content: bytes) -> None:
    TARGETS["metrics"].run(content)
