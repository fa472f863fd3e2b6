from __future__ import annotations

from typing import Any

import pytest

from podium.lib.clock import ManualClock
from podium.objects.api_errors import Unreachable
from podium.server.serving.authentication import ANONYMOUS, User
from podium.server.serving.authorization import Authorizer, NotDecided
from tests.unit.binder.builders import Request, Wire

pytestmark = pytest.mark.anyio

JANE = User("jane", "7", ("dev",), {"scope": ("a",)})


def door(answer: Any, *open_paths: str) -> tuple[Authorizer, Wire, ManualClock]:
    wire, clock = Wire(answer), ManualClock()
    return Authorizer(wire, clock, open_paths, 10.0, 5.0), wire, clock


def allows_jane(request: Request) -> Any:
    return {"kind": "SubjectAccessReview", "status": {"allowed": request.body["spec"]["user"] == "jane"}}


async def test_the_api_server_is_told_who_wants_what() -> None:
    authorizer, wire, _ = door(allows_jane)
    assert await authorizer.allows(JANE, "get", "/metrics")
    assert not await authorizer.allows(ANONYMOUS, "get", "/metrics")
    assert wire.requests[0].path == "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    assert wire.requests[0].body["spec"] == {
        "user": "jane",
        "uid": "7",
        "groups": ["dev"],
        "extra": {"scope": ["a"]},
        "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
    }


async def test_each_user_verb_and_path_has_its_own_answer_for_its_time() -> None:
    authorizer, wire, clock = door(allows_jane)
    questions: list[tuple[User, str, str]] = [
        (JANE, "get", "/metrics"),
        (JANE, "delete", "/metrics"),
        (JANE, "get", "/configz"),
        (ANONYMOUS, "get", "/metrics"),
    ]
    for _ in range(2):
        for user, verb, path in questions:
            await authorizer.allows(user, verb, path)
    assert len(wire.requests) == 4
    clock.advance(5.0)
    for user, verb, path in questions:
        await authorizer.allows(user, verb, path)
    assert len(wire.requests) == 5
    clock.advance(5.0)
    await authorizer.allows(JANE, "get", "/metrics")
    assert len(wire.requests) == 6


async def test_masters_need_no_review() -> None:
    authorizer, wire, _ = door(allows_jane)
    assert await authorizer.allows(User("root", groups=("system:masters",)), "delete", "/metrics")
    assert wire.calls == []


async def test_both_allowed_and_denied_is_denied() -> None:
    authorizer, _, _ = door(lambda _: {"kind": "SubjectAccessReview", "status": {"allowed": True, "denied": True}})
    assert not await authorizer.allows(JANE, "get", "/metrics")


async def test_a_review_that_fails_decides_nothing_and_is_made_again() -> None:
    failing = True

    def answer(request: Request) -> Any:
        if failing:
            raise Unreachable("no route")
        return allows_jane(request)

    authorizer, _, _ = door(answer)
    with pytest.raises(NotDecided, match="no route"):
        await authorizer.allows(JANE, "get", "/metrics")
    failing = False
    assert await authorizer.allows(JANE, "get", "/metrics")


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"<html>Log in</html>",
        [],
        {"kind": "SubjectAccessReview"},
        {"kind": "Pod", "status": {"allowed": True}},
        {"kind": "Status", "status": "Success"},
    ],
)
async def test_an_answer_that_is_no_review_decides_nothing_and_is_not_remembered(answer: Any) -> None:
    answers = [allows_jane, lambda _: answer]
    authorizer, _, _ = door(lambda request: answers.pop()(request))
    with pytest.raises(NotDecided, match="not a SubjectAccessReview"):
        await authorizer.allows(JANE, "get", "/metrics")
    assert await authorizer.allows(JANE, "get", "/metrics")


async def test_open_paths_are_meant_exactly_or_with_all_below_them() -> None:
    authorizer, _, _ = door(allows_jane, "/healthz", "/debug/*")
    is_open = {path for path in ("/healthz", "/healthz/ping", "/healthzz", "/debug/a/b", "/debug", "/metrics")
               if authorizer.is_open(path)}  # fmt: skip
    assert is_open == {"/healthz", "/debug/a/b"}
