from datetime import UTC, datetime, timedelta

import pytest

from podium.sandbox.errors import ApiError
from podium.sandbox.tokens import ADMIN, Tokens

ACCOUNT = {"metadata": {"name": "robot", "namespace": "team", "uid": "1"}}


class Clock:
    time = datetime(2026, 1, 1, 12, tzinfo=UTC)

    def __call__(self):
        return self.time


def test_a_token_speaks_for_its_account_until_it_expires():
    clock = Clock()
    tokens = Tokens("secret", clock)
    issued = tokens.issue(ACCOUNT, {"spec": {"expirationSeconds": 600}})
    assert issued["status"]["expirationTimestamp"] == "2026-01-01T12:10:00Z"
    user = tokens.user_of(issued["status"]["token"])
    assert user["username"] == "system:serviceaccount:team:robot"
    assert "system:serviceaccounts:team" in user["groups"]
    clock.time += timedelta(minutes=10)
    assert tokens.user_of(issued["status"]["token"]) is None


def test_a_token_that_expired_is_refused_where_nobody_needs_one():
    clock = Clock()
    tokens = Tokens(None, clock)
    token = tokens.issue(ACCOUNT, {})["status"]["token"]
    clock.time += timedelta(hours=1)
    assert tokens.user_of(token) is None
    assert tokens.user_of("anything") == ADMIN


def test_tokens_of_others_are_not_recognized():
    token = Tokens(None, Clock()).issue(ACCOUNT, {})["status"]["token"]
    tokens = Tokens("secret", Clock())
    assert tokens.user_of("secret") == ADMIN
    for foreign_token in (token, "", "..", "\udcff.a.b"):
        assert tokens.user_of(foreign_token) is None


@pytest.mark.parametrize("lifetime_s", [599, (1 << 32) + 1, "long"])
def test_a_lifetime_out_of_bounds_is_refused(lifetime_s):
    with pytest.raises(ApiError) as caught:
        Tokens(None, Clock()).issue(ACCOUNT, {"spec": {"expirationSeconds": lifetime_s}})
    assert caught.value.details["causes"][0]["field"] == "spec.expirationSeconds"
