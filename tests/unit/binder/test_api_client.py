from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest

from podium.binder import ApiClient, not_scheduled
from podium.binder.api_client import NodeFilled
from podium.client.dispatcher import Dispatcher
from podium.objects.api_errors import (
    ApiError,
    Conflict,
    ConnectionLost,
    Forbidden,
    InternalError,
    Malformed,
    NotFound,
    OutcomeUnknown,
    ServerTimeout,
    TooManyRequests,
    Unavailable,
    Unreachable,
)
from tests.builders import pod
from tests.unit.binder.builders import Request, Wire
from tests.virtual_time import START_S, LoopClock

pytestmark = pytest.mark.anyio

POD = "/api/v1/namespaces/default/pods/web-1"
BIND, READ, PATCH = f"POST {POD}/binding", f"GET {POD}", f"PATCH {POD}/status"
ALREADY = Conflict('pod web-1 is already assigned to node "n1"', code=409, reason="Conflict")


def client(wire: Wire) -> ApiClient:
    return ApiClient(Dispatcher(wire, LoopClock()), LoopClock())


def pod_answer(node: str | None = None, *, uid: str = "uid-web-1") -> dict[str, Any]:
    metadata = {"uid": uid, "name": "web-1", "namespace": "default"}
    return {"kind": "Pod", "metadata": metadata, "spec": {"nodeName": node, "containers": []}}


def _raise(error: ApiError) -> Any:
    raise error


def script(*answers: Any) -> Callable[[Request], Any]:
    """Give the answers one after the other; raise those that are errors."""
    script_steps: Iterator[Any] = iter(answers)

    def answer(request: Request) -> Any:
        step = next(script_steps)
        if isinstance(step, Exception):
            raise step
        return step

    return answer


def assert_waits(wire: Wire) -> None:
    """Three waits, each five times as long as the one before it, and longer by up to a tenth."""
    times_s = [request.at_s for request in wire.requests]
    waits_s = [later_s - earlier_s for earlier_s, later_s in pairwise(times_s)]
    assert [round(wait_s / least_s, 3) for wait_s, least_s in zip(waits_s, (0.01, 0.05, 0.25), strict=True)] == [
        pytest.approx(1.05, abs=0.05)
    ] * 3


async def test_a_binding_names_the_pod_its_uid_and_the_node() -> None:
    wire = Wire()
    await client(wire).bind(pod(), "n1")
    assert wire.calls == [BIND]
    assert wire.requests[0].body == {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"namespace": "default", "name": "web-1", "uid": "uid-web-1"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"},
    }


async def test_a_binding_that_could_not_reach_the_server_is_tried_four_times() -> None:
    wire = Wire(script(Unreachable("a"), Unreachable("b"), Unreachable("c"), {}))
    await client(wire).bind(pod(), "n1")
    assert wire.calls == [BIND] * 4
    assert_waits(wire)
    wire = Wire(script(*[Unreachable("down")] * 4))
    with pytest.raises(Unreachable):
        await client(wire).bind(pod(), "n1")
    assert wire.calls == [BIND] * 4


@pytest.mark.parametrize("error", [ALREADY, NotFound("gone", code=404), Forbidden("no", code=403)])
async def test_a_binding_that_certainly_did_not_happen_is_not_tried_again(error: ApiError) -> None:
    wire = Wire(script(error))
    with pytest.raises(type(error)) as caught:
        await client(wire).bind(pod(), "n1")
    assert caught.value is error
    assert wire.calls == [BIND]


async def test_a_binding_that_has_come_too_late_is_not_sent() -> None:
    wire = Wire()
    binding = client(wire)
    binding.refuse_bindings_if(lambda candidate: candidate.metadata.name == "web-1")
    with pytest.raises(NodeFilled, match='node "n1" has been filled by another scheduler'):
        await binding.bind(pod(), "n1")
    assert wire.calls == []
    await binding.bind(pod("web-2"), "n1")
    assert len(wire.calls) == 1


async def test_whether_it_is_too_late_is_asked_each_time_that_the_binding_is_about_to_be_sent() -> None:
    wire = Wire(script(TooManyRequests("slow down"), {}))
    binding, verdicts = client(wire), iter([False, True])
    binding.refuse_bindings_if(lambda _: next(verdicts))
    with pytest.raises(NodeFilled):
        await binding.bind(pod(), "n1")
    assert wire.calls == [BIND]


@pytest.mark.parametrize("error", [OutcomeUnknown("lost"), InternalError("oops", code=500), Unavailable("x", code=503)])
async def test_a_binding_in_doubt_that_has_happened_is_a_success(error: ApiError) -> None:
    wire = Wire(script(error, pod_answer("n1")))
    await client(wire).bind(pod(), "n1")
    assert wire.calls == [BIND, READ]


async def test_a_binding_in_doubt_that_has_not_happened_is_made_again() -> None:
    wire = Wire(script(OutcomeUnknown("lost"), pod_answer(), {}))
    await client(wire).bind(pod(), "n1")
    assert wire.calls == [BIND, READ, BIND]


POD_BYTES = json.dumps(pod_answer("n1") | {"apiVersion": "v1"}).encode()
FAILURE = b'{"kind":"Status","apiVersion":"v1","status":"Failure","code":409,"reason":"Conflict"}'
SENSELESS = [
    b"",
    b"null",
    b"{}",
    b"<html>Log in</html>",
    b'{"kind":"Status","apiVersion":"v1"}',
    b'{"kind":"Status","apiVersion":"v1","status":"Succ',
    b'{"kind":"PodList","apiVersion":"v1","items":[]}',
    b"\xff\xfe",
    b"[" * 100_000,
    FAILURE,
]


@pytest.mark.parametrize("answer", [*SENSELESS, POD_BYTES], ids=lambda answer: answer[:40].decode(errors="replace"))
async def test_a_binding_answered_by_no_status_of_success_is_looked_up_and_made_again_where_it_has_not_happened(
    answer: bytes,
) -> None:
    wire = Wire(script(answer, pod_answer(), {}))
    await client(wire).bind(pod(), "n1")
    assert wire.calls == [BIND, READ, BIND]


async def test_a_binding_that_has_happened_is_a_success_whatever_the_answer_looked_like() -> None:
    wire = Wire(script(FAILURE, pod_answer("n1")))
    await client(wire).bind(pod(), "n1")
    assert wire.calls == [BIND, READ]


async def test_a_binding_that_only_gets_senseless_answers_fails() -> None:
    wire = Wire(script(b"", pod_answer(), b"<html>", pod_answer(), b"{}", pod_answer()))
    with pytest.raises(Malformed, match="not a Status of success"):
        await client(wire).bind(pod(), "n1")
    assert wire.calls == [BIND, READ] * 3


@pytest.mark.parametrize(
    "answer",
    [
        *SENSELESS,
        b'{"kind":"Pod","metadata":{"name":"web-2","namespace":"default","uid":"u2"},"spec":{"nodeName":"n9"}}',
        b'{"kind":"Binding","metadata":{"name":"web-1","namespace":"default","uid":"u2"},"spec":{"nodeName":"n9"}}',
    ],
    ids=lambda answer: answer[:60].decode(errors="replace"),
)
async def test_a_pod_is_read_again_where_the_answer_is_not_that_pod(answer: bytes) -> None:
    wire = Wire(script(OutcomeUnknown("lost"), answer, pod_answer("n1")))
    await client(wire).bind(pod(), "n1")
    assert wire.calls == [BIND, READ, READ]


async def test_a_pod_that_nests_as_deeply_as_an_api_server_lets_it_can_be_read() -> None:
    deep = json.dumps(pod_answer("n1")).replace("}", ', "x": ' + "[" * 5_000 + "]" * 5_000 + "}", 1)
    wire = Wire(script(OutcomeUnknown("lost"), deep.encode()))
    await client(wire).bind(pod(), "n1")
    assert wire.calls == [BIND, READ]


async def test_a_conflict_with_ones_own_late_binding_is_a_success() -> None:
    wire = Wire(script(OutcomeUnknown("lost"), pod_answer(), ALREADY, pod_answer("n1")))
    await client(wire).bind(pod(), "n1")
    assert wire.calls == [BIND, READ, BIND, READ]


async def test_a_conflict_of_another_kind_stays_one() -> None:
    conflict = Conflict("pod web-1 is being deleted", code=409, reason="Conflict")
    wire = Wire(script(InternalError("oops", code=500), pod_answer(), conflict, pod_answer()))
    with pytest.raises(Conflict, match="being deleted"):
        await client(wire).bind(pod(), "n1")


REFUSALS = [
    Conflict("pod web-1 is being deleted", code=409, reason="Conflict"),
    NotFound("no such path", code=404),
    Forbidden("no", code=403),
]


@pytest.mark.parametrize("refusal", REFUSALS)
@pytest.mark.parametrize("doubt", [OutcomeUnknown("no answer in time"), ServerTimeout("x", code=504)])
async def test_a_refusal_settles_nothing_about_an_earlier_binding_that_may_be_under_way(
    doubt: ApiError, refusal: ApiError
) -> None:
    wire = Wire(script(doubt, *[pod_answer(), refusal] * 5, pod_answer("n1")))
    await client(wire).bind(pod(), "n1")
    assert wire.calls == [BIND, READ] * 6


async def test_a_refusal_stands_once_the_server_has_dropped_the_binding_that_was_under_way() -> None:
    wire = Wire(script(OutcomeUnknown("no answer in time"), *[pod_answer(), REFUSALS[0]] * 30))
    with pytest.raises(Conflict, match="being deleted"):
        await client(wire).bind(pod(), "n1")
    final_read = wire.requests[-1]
    assert str(final_read) == READ
    assert 60 <= final_read.at_s - wire.requests[0].at_s < 66


async def test_a_pod_that_goes_ends_the_wait_for_a_binding_that_may_be_under_way() -> None:
    wire = Wire(script(OutcomeUnknown("lost"), *[pod_answer(), REFUSALS[0]] * 2, NotFound("gone", code=404)))
    with pytest.raises(NotFound, match="gone"):
        await client(wire).bind(pod(), "n1")


async def test_a_pod_bound_elsewhere_is_a_conflict() -> None:
    wire = Wire(script(OutcomeUnknown("lost"), pod_answer("n2")))
    with pytest.raises(Conflict, match='already assigned to node "n2"'):
        await client(wire).bind(pod(), "n1")


async def test_another_pod_of_the_same_name_is_a_conflict_wherever_it_is() -> None:
    wire = Wire(script(OutcomeUnknown("lost"), pod_answer("n1", uid="u2")))
    with pytest.raises(Conflict, match="its uid is u2, not uid-web-1"):
        await client(wire).bind(pod(), "n1")


async def test_a_pod_that_is_gone_meanwhile_is_not_found() -> None:
    wire = Wire(script(OutcomeUnknown("lost"), NotFound("gone", code=404)))
    with pytest.raises(NotFound):
        await client(wire).bind(pod(), "n1")


async def test_the_read_is_tried_again_and_a_pod_that_cannot_be_read_leaves_the_outcome_unknown() -> None:
    failures = [ConnectionLost("x"), [], Unreachable("y"), ConnectionLost("z")]
    wire = Wire(script(InternalError("oops", code=500), *failures))
    with pytest.raises(OutcomeUnknown, match="oops; and the pod could not be read again: z"):
        await client(wire).bind(pod(), "n1")
    assert wire.calls == [BIND, READ, READ, READ, READ]


async def test_a_pod_that_cannot_be_read_is_read_again_while_its_binding_may_be_under_way() -> None:
    wire = Wire(script(OutcomeUnknown("lost"), *[ConnectionLost("x")] * 9, pod_answer("n1")))
    await client(wire).bind(pod(), "n1")
    assert wire.calls == [BIND, *[READ] * 10]


async def test_a_binding_that_keeps_getting_lost_is_given_up_once_the_server_has_dropped_the_last_one() -> None:
    wire = Wire(lambda request: pod_answer() if request.method == "GET" else _raise(OutcomeUnknown("lost")))
    with pytest.raises(OutcomeUnknown, match="lost"):
        await client(wire).bind(pod(), "n1")
    began_s, *_, last_sent_s = [request.at_s for request in wire.requests if str(request) == BIND]
    assert last_sent_s - began_s < 66
    assert wire.calls[-1] == READ
    assert 60 <= wire.requests[-1].at_s - last_sent_s < 66


async def test_a_refusal_that_passes_does_not_end_a_binding_that_was_in_doubt() -> None:
    wire = Wire(script(OutcomeUnknown("lost"), *[pod_answer(), Forbidden("no", code=403)] * 3, pod_answer(), {}))
    await client(wire).bind(pod(), "n1")
    assert wire.calls == [*[BIND, READ] * 4, BIND]


async def test_an_error_without_doubt_ends_the_retries() -> None:
    wire = Wire(script(InternalError("oops", code=500), pod_answer(), Forbidden("no", code=403), pod_answer()))
    with pytest.raises(Forbidden):
        await client(wire).bind(pod(), "n1")


# ---------------------------------------------------------------- status


async def test_a_status_patch_carries_condition_and_nomination() -> None:
    wire = Wire()
    failed_pod = pod(nominated="n1")
    pod_condition = not_scheduled(failed_pod, "no room", is_rejected=True)
    assert await client(wire).patch_status(failed_pod, condition=pod_condition, nominated_node_name="")
    assert wire.calls == [PATCH]
    status = wire.requests[0].body["status"]
    assert status["nominatedNodeName"] is None
    assert status["conditions"][0]["message"] == "no room"
    assert START_S == 1_700_000_000
    assert status["conditions"][0]["lastTransitionTime"].startswith("2023-11-14T")


async def test_nothing_is_called_where_nothing_changes() -> None:
    wire = Wire()
    assert not await client(wire).patch_status(pod(nominated="n1"), nominated_node_name="n1")
    assert wire.calls == []


async def test_a_status_patch_is_tried_four_times_with_growing_pauses() -> None:
    wire = Wire(script(*[Unavailable("x", code=503)] * 4))
    with pytest.raises(Unavailable):
        await client(wire).patch_status(pod(), nominated_node_name="n1")
    assert_waits(wire)


async def test_two_pods_whose_writes_failed_together_are_not_written_again_together() -> None:
    times_s = []
    for uid in ("u1", "u2"):
        wire = Wire(script(Unavailable("x", code=503), {}))
        await client(wire).patch_status(pod(uid=uid), nominated_node_name="n1")
        times_s.append(wire.requests[1].at_s - wire.requests[0].at_s)
    assert abs(times_s[0] - times_s[1]) > 1e-5


@pytest.mark.parametrize(
    "error", [InternalError("x", code=500), Conflict("x", code=409), Unreachable("x"), OutcomeUnknown("x")]
)
async def test_a_status_patch_gets_through_after_a_passing_failure(error: ApiError) -> None:
    wire = Wire(script(error, {}))
    assert await client(wire).patch_status(pod(), nominated_node_name="n1")
    assert wire.calls == [PATCH, PATCH]


@pytest.mark.parametrize(
    "answer",
    [*SENSELESS, POD_BYTES.replace(b"web-1", b"web-2"), POD_BYTES.replace(b'"uid-web-1"', b'"u2"')],
    ids=lambda answer: answer[:60].decode(errors="replace"),
)
async def test_a_status_patch_not_answered_by_that_pod_is_made_again(answer: bytes) -> None:
    wire = Wire(script(answer, {}))
    assert await client(wire).patch_status(pod(), nominated_node_name="n1")
    assert wire.calls == [PATCH, PATCH]


async def test_a_status_patch_of_a_pod_that_is_gone_is_not_tried_again() -> None:
    wire = Wire(script(NotFound("gone", code=404)))
    with pytest.raises(NotFound):
        await client(wire).patch_status(pod(), nominated_node_name="n1")


# ---------------------------------------------------------------- deletion, and conditions taken away

DELETE = f"DELETE {POD}"


async def test_a_pod_is_deleted_by_uid() -> None:
    wire = Wire()
    assert await client(wire).delete_pod(pod())
    assert wire.calls == [DELETE]
    assert wire.requests[0].body == {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": "uid-web-1"}}


@pytest.mark.parametrize("error", [NotFound("gone", code=404), Conflict("another uid", code=409)])
async def test_a_pod_that_is_gone_or_another_one_needs_no_deleting(error: ApiError) -> None:
    wire = Wire(script(error))
    assert not await client(wire).delete_pod(pod())
    assert wire.calls == [DELETE]


async def test_a_delete_without_an_answer_is_made_again() -> None:
    wire = Wire(script(OutcomeUnknown("lost"), Unreachable("down"), InternalError("oops", code=500), {}))
    assert await client(wire).delete_pod(pod())
    assert_waits(wire)


@pytest.mark.parametrize("answer", SENSELESS, ids=lambda answer: answer[:40].decode(errors="replace"))
async def test_a_delete_with_a_senseless_answer_is_made_again(answer: bytes) -> None:
    wire = Wire(script(answer, NotFound("gone", code=404)))
    assert not await client(wire).delete_pod(pod())
    assert wire.calls == [DELETE, DELETE]


async def test_a_delete_may_be_answered_by_a_status_of_success() -> None:
    wire = Wire(script({"kind": "Status", "apiVersion": "v1", "status": "Success", "details": {"uid": "uid-web-1"}}))
    assert await client(wire).delete_pod(pod())
    assert wire.calls == [DELETE]


async def test_a_delete_that_keeps_failing_is_given_up() -> None:
    wire = Wire(script(*[Unavailable("x", code=503)] * 4))
    with pytest.raises(Unavailable):
        await client(wire).delete_pod(pod())
    assert len(wire.calls) == 4


async def test_a_delete_that_is_not_allowed_is_not_tried_again() -> None:
    wire = Wire(script(Forbidden("no", code=403)))
    with pytest.raises(Forbidden):
        await client(wire).delete_pod(pod())
    assert wire.calls == [DELETE]


async def test_a_condition_is_taken_away_by_its_type() -> None:
    wire = Wire()
    await client(wire).remove_condition(pod(), "DisruptionTarget")
    assert wire.calls == [PATCH]
    assert wire.requests[0].body == {
        "metadata": {"uid": "uid-web-1"},
        "status": {"conditions": [{"$patch": "delete", "type": "DisruptionTarget"}]},
    }
