"""Checking that an answer is the object, or the success, that was asked for."""

from __future__ import annotations

import json

import pytest

from podium.client.answers import check_object, check_success
from podium.objects.api_errors import Malformed
from podium.objects.meta import ObjectMeta

EVENT = {"kind": "Event", "apiVersion": "v1", "metadata": {"name": "e", "namespace": "team", "uid": "1"}, "note": "x"}
AS_WRITTEN = json.dumps(EVENT, separators=(",", ":")).encode()
NAMED = ObjectMeta(name="e", namespace="team")


@pytest.mark.parametrize(
    "answer", [AS_WRITTEN, AS_WRITTEN + b"\n", json.dumps(EVENT, indent=1).encode(), b" " + AS_WRITTEN]
)
def test_the_object_is_accepted_however_it_is_written(answer):
    check_object(answer, "v1", "Event", NAMED)


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "Status"},
        {"apiVersion": "v2"},
        {"metadata": {"name": "f", "namespace": "team"}},
        {"metadata": {"name": "e", "namespace": "tea"}},
        {"metadata": {"name": "e"}},
        {"metadata": None},
    ],
)
def test_another_object_is_malformed(changes):
    answer = json.dumps({**EVENT, **changes}, separators=(",", ":")).encode()
    with pytest.raises(Malformed, match="the answer is not Event team/e"):
        check_object(answer, "v1", "Event", NAMED)


@pytest.mark.parametrize("answer", [b"", b"{}", b"<html></html>", b"[]", AS_WRITTEN[:-1], AS_WRITTEN[:60]])
def test_what_is_no_object_is_malformed(answer):
    with pytest.raises(Malformed):
        check_object(answer, "v1", "Event", NAMED)


def test_the_uid_counts_if_it_is_asked_for():
    check_object(AS_WRITTEN, "v1", "Event", ObjectMeta(name="e", namespace="team", uid="1"))
    with pytest.raises(Malformed):
        check_object(AS_WRITTEN, "v1", "Event", ObjectMeta(name="e", namespace="team", uid="2"))


def test_only_a_status_of_success_is_a_success():
    check_success(b'{"kind":"Status","apiVersion":"v1","status":"Success","code":201}')
    for answer in (b"", b"{}", b'{"kind":"Status","apiVersion":"v1","status":"Failure"}', AS_WRITTEN):
        with pytest.raises(Malformed):
            check_success(answer)
