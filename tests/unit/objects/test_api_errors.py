from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.objects import api_errors
from podium.objects.api_errors import ApiError, TooManyRequests, from_response


def answer(http_code: int, **status: object) -> ApiError:
    return from_response(http_code, json.dumps({"kind": "Status", "status": "Failure", **status}).encode())


def test_the_reason_decides_before_the_code() -> None:
    assert type(answer(409, code=409, reason="AlreadyExists")) is api_errors.AlreadyExists
    assert type(answer(500, code=500, reason="ServerTimeout")) is api_errors.ServerTimeout
    assert type(answer(409, code=409, reason="SomethingNew")) is api_errors.Conflict


def test_an_answer_without_a_status_is_classified_by_its_code() -> None:
    error = from_response(503, b"<html>upstream connect error</html>")
    assert type(error) is api_errors.Unavailable
    assert error.message == "<html>upstream connect error</html>"
    assert type(from_response(418, b"")) is ApiError
    assert type(from_response(599, b"")) is api_errors.ServerError


def test_the_status_names_the_wait_where_no_header_does() -> None:
    error = answer(429, reason="TooManyRequests", details={"retryAfterSeconds": 3})
    assert isinstance(error, TooManyRequests)
    assert error.retry_after_s == 3.0
    assert from_response(429, b"", "5").retry_after_s == 5.0
    assert from_response(429, b"", "Wed, 21 Oct 2026 07:28:00 GMT").retry_after_s == 1.0


@pytest.mark.parametrize("header", ["86400", "9" * 400])
def test_a_server_that_wants_to_be_left_alone_for_hours_is_asked_again_after_a_minute(header: str) -> None:
    assert from_response(429, b"", header).retry_after_s == 60.0
    assert answer(503, details={"retryAfterSeconds": 86400}).retry_after_s == 60.0


@pytest.mark.parametrize(
    ("seconds", "wait_s"), [(10**400, 60.0), (-(10**400), 0.0), (-5, 0.0)], ids=["huge", "hugely negative", "negative"]
)
def test_a_wait_that_cannot_be_counted_is_bounded(seconds: int, wait_s: float) -> None:
    assert answer(429, details={"retryAfterSeconds": seconds}).retry_after_s == wait_s


def test_a_code_that_no_answer_has_is_not_believed() -> None:
    error = answer(429, code=10**30)
    assert isinstance(error, TooManyRequests)
    assert error.code == 429


@pytest.mark.parametrize(("code", "unknown"), [(401, False), (404, False), (409, False), (429, False), (500, True)])
def test_only_failures_of_the_server_leave_the_outcome_open(code: int, unknown: bool) -> None:
    assert answer(code).may_have_happened is unknown


def test_a_429_by_priority_and_fairness_differs_from_one_by_a_webhook() -> None:
    """Both carry the header of the flow schema on a real API server."""
    text = b"Too many requests, please try again later.\n"
    webhook = b'{"kind":"Status","code":429,"message":"admission webhook "a" denied the request: full"}'

    def is_server_wide(body: bytes, has_flow_schema: bool) -> bool:
        error = from_response(429, body, "5", has_flow_schema=has_flow_schema)
        assert isinstance(error, TooManyRequests)
        return error.is_server_wide

    assert is_server_wide(text, True)
    assert is_server_wide(b'{"kind":"Status","code":429,"message":"Too many requests"}', True)
    assert not is_server_wide(webhook, True)
    assert not is_server_wide(text, False)
    assert not is_server_wide(webhook, False)


@pytest.mark.parametrize("code", [100, 204, 206, 207, 299, 301, 304, 307, 399])
def test_an_answer_that_neither_accepts_nor_refuses_leaves_the_outcome_open(code: int) -> None:
    error = from_response(code, b'{"kind":"Status","status":"Success"}')
    assert type(error) is api_errors.Malformed
    assert error.may_have_happened
    assert str(code) in error.message


@pytest.mark.parametrize(
    "status", [{"code": 404}, {"code": 200}, {"reason": "NotFound"}, {"reason": "TooManyRequests"}]
)
def test_the_words_of_a_body_do_not_close_what_the_code_leaves_open(status: dict[str, object]) -> None:
    assert type(answer(500, **status)) is api_errors.InternalError
    assert type(answer(502, **status)) is api_errors.Unavailable
    assert answer(408, **status).may_have_happened


@given(st.integers(300, 599), st.binary(max_size=60), st.none() | st.text(max_size=8))
def test_whatever_a_server_answers_becomes_an_error_with_words(code: int, body: bytes, retry_after: str | None) -> None:
    assert str(from_response(code, body, retry_after))
