from __future__ import annotations

import ssl
from typing import Any

import pytest

from podium.lib.clock import ManualClock
from podium.objects.api_errors import Forbidden, Unreachable
from podium.server.serving import ServingTls, self_signed
from podium.server.serving.authentication import ANONYMOUS, Authenticator, ClientAuthorities, NotAuthenticated, User
from tests.unit.binder.builders import Request, Wire

pytestmark = pytest.mark.anyio


NEVER = "Dec 31 23:59:59 9999 GMT"


class Asks:
    """As much of a request as is looked at."""

    def __init__(self, authorization: str | None = None, subject: Any = None, expires: str = NEVER) -> None:
        self.headers = {} if authorization is None else {"Authorization": authorization}
        self.transport = self
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._certificate = None if subject is None else {"subject": subject, "notAfter": expires}

    def get_extra_info(self, name: str) -> Any:
        return self if name == "ssl_object" and self._certificate is not None else None

    def getpeercert(self) -> Any:
        return self._certificate


def verdict(request: Request) -> Any:
    if request.body["spec"]["token"] == "good":
        user = {"username": "jane", "uid": "7", "groups": ["dev"], "extra": {"scope": ["a"]}}
        return {"kind": "TokenReview", "status": {"authenticated": True, "user": user}}
    return {"kind": "TokenReview", "status": {"error": "no such token"}}


def door(answer: Any = verdict, believes: Any = lambda _: True) -> tuple[Authenticator, Wire, ManualClock]:
    wire, clock = Wire(answer), ManualClock()
    return Authenticator(wire, clock, 10.0, believes), wire, clock


async def user_of(authenticator: Authenticator, asks: Any) -> User:
    return await authenticator.user_of(asks)


@pytest.mark.parametrize("header", [None, "", "Basic YTpi", "Bearer", "Bearer  "])
async def test_who_shows_nothing_that_can_be_reviewed_is_anonymous(header: str | None) -> None:
    authenticator, wire, _ = door()
    assert await user_of(authenticator, Asks(header)) == ANONYMOUS
    assert wire.calls == []


@pytest.mark.parametrize("header", ["Bearer good", "bearer good", " Bearer  good "])
async def test_a_token_is_reviewed_by_the_api_server(header: str) -> None:
    authenticator, wire, _ = door()
    user = await user_of(authenticator, Asks(header))
    assert user == User("jane", "7", ("dev", "system:authenticated"), {"scope": ("a",)})
    [review] = wire.requests
    assert (review.method, review.path) == ("POST", "/apis/authentication.k8s.io/v1/tokenreviews")
    assert review.body["spec"] == {"token": "good"}


async def test_a_token_that_is_not_valid_is_refused() -> None:
    authenticator, _, _ = door()
    with pytest.raises(NotAuthenticated, match="no such token"):
        await user_of(authenticator, Asks("Bearer bad"))


@pytest.mark.parametrize("token", ["good", "bad"])
async def test_a_verdict_holds_for_its_time_whichever_it_is(token: str) -> None:
    authenticator, wire, clock = door()

    async def ask() -> None:
        try:
            await user_of(authenticator, Asks(f"Bearer {token}"))
        except NotAuthenticated:
            assert token == "bad"

    await ask()
    clock.advance(9.0)
    await ask()
    assert len(wire.requests) == 1
    clock.advance(1.0)
    await ask()
    assert len(wire.requests) == 2


@pytest.mark.parametrize("error", [Unreachable("no route"), Forbidden("no rights")])
async def test_a_review_that_fails_refuses_and_is_made_again(error: Exception) -> None:
    failing = True

    def answer(request: Request) -> Any:
        if failing:
            raise error
        return verdict(request)

    authenticator, _, _ = door(answer)
    with pytest.raises(NotAuthenticated, match="could not be reviewed"):
        await user_of(authenticator, Asks("Bearer good"))
    failing = False
    assert (await user_of(authenticator, Asks("Bearer good"))).name == "jane"


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"<html>Log in</html>",
        [],
        {"kind": "TokenReview"},
        {"kind": "TokenReview", "status": {"authenticated": "perhaps"}},
        {"kind": "Pod", "status": {"authenticated": True, "user": {"username": "jane"}}},
        {"kind": "Status", "status": "Success"},
    ],
)
async def test_an_answer_that_is_no_review_refuses_and_is_not_remembered(answer: Any) -> None:
    answers = [verdict, lambda _: answer]
    authenticator, _, _ = door(lambda request: answers.pop()(request))
    with pytest.raises(NotAuthenticated, match="could not be reviewed"):
        await user_of(authenticator, Asks("Bearer good"))
    assert (await user_of(authenticator, Asks("Bearer good"))).name == "jane"


async def test_no_token_is_kept() -> None:
    authenticator, _, _ = door()
    await user_of(authenticator, Asks("Bearer good"))
    assert "good" not in repr(vars(authenticator)) + repr(vars(authenticator._verdicts))


async def test_a_client_certificate_names_the_user_and_comes_first() -> None:
    authenticator, wire, _ = door()
    subject = ((("organizationName", "system:masters"),), (("organizationName", "b"),), (("commonName", "admin"),))
    user = await user_of(authenticator, Asks("Bearer good", subject))
    assert user == User("admin", groups=("system:masters", "b", "system:authenticated"))
    assert wire.calls == []


async def test_a_certificate_without_a_name_is_nobodys() -> None:
    authenticator, _, _ = door()
    assert await user_of(authenticator, Asks(None, ((("organizationName", "b"),),))) == ANONYMOUS


async def test_the_published_authority_is_believed_from_then_on() -> None:
    pair = self_signed()
    tls = ServingTls(pair)
    authorities = ClientAuthorities(tls)
    assert tls.context.verify_mode is ssl.CERT_NONE
    await authorities.look_up(Wire(lambda _: {"data": {}}))
    assert tls.context.verify_mode is ssl.CERT_NONE
    await authorities.look_up(Wire(lambda _: {"data": {"client-ca-file": pair.certificate.decode()}}))
    assert tls.context.verify_mode is ssl.CERT_OPTIONAL
    assert len(tls.context.get_ca_certs()) == 1


async def test_an_authority_that_is_none_changes_nothing() -> None:
    tls = ServingTls(self_signed())
    with pytest.raises(ValueError, match="client-ca-file holds no certificate"):
        await ClientAuthorities(tls).look_up(Wire(lambda _: {"data": {"client-ca-file": "nonsense"}}))
    assert tls.context.verify_mode is ssl.CERT_NONE
