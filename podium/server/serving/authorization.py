"""Authorizes requests: some paths are open to all users, for the others the API server decides.

Owns the decision and how long it is cached. Never looks at credentials.

Source: apiserver/pkg/server/options/authorization.go and plugin/pkg/authorizer/webhook, v0.36.
Differs: requests for an open path are not authenticated, so that probes never wait for the API server.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec
import orjson

from podium.client.answers import read
from podium.client.dispatcher import Requester
from podium.lib.clock import Clock
from podium.lib.expiring import ExpiringCache
from podium.objects.api_errors import ApiError
from podium.server.serving.authentication import User

_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_PRIVILEGED = "system:masters"
_ANSWERS_MAX = 4096
_REVIEW_S_MAX = 10.0


class NotDecided(Exception):  # noqa: N818 - named after what happened
    """The access review failed, so it is unknown whether the request is allowed."""


class _Verdict(msgspec.Struct):
    allowed: bool = False
    denied: bool = False


class _AccessReview(msgspec.Struct):
    kind: Literal["SubjectAccessReview"]
    status: _Verdict


_decode = msgspec.json.Decoder(_AccessReview).decode


class Authorizer:
    """Decides whether a user may access a path.

    Args:
        session: where access is reviewed.
        open_paths: paths open to all users; one that ends in `/*` includes all paths below it.
        allowed_s, refused_s: how long the API server's verdict is cached.
    """

    def __init__(
        self, session: Requester, clock: Clock, open_paths: Sequence[str], allowed_s: float, refused_s: float
    ) -> None:
        self._session = session
        self._open = frozenset(path for path in open_paths if not path.endswith("/*"))
        self._open_below = tuple(path[:-1] for path in open_paths if path.endswith("/*"))
        self._allowed_s = allowed_s
        self._refused_s = refused_s
        self._answers: ExpiringCache[bool] = ExpiringCache(clock, _ANSWERS_MAX)

    def is_open(self, path: str) -> bool:
        """Whether all users may access the path."""
        return path in self._open or bool(self._open_below and path.startswith(self._open_below))

    async def allows(self, user: User, verb: str, path: str) -> bool:
        """Whether the user may access the path. Raises: `NotDecided`."""
        if _PRIVILEGED in user.groups:
            return True
        spec: dict[str, Any] = {
            "user": user.name,
            "uid": user.uid,
            "groups": user.groups,
            "extra": user.extra,
            "nonResourceAttributes": {"path": path, "verb": verb},
        }
        body = orjson.dumps({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec})
        cached_answer = self._answers.get(body)
        if cached_answer is not None:
            return cached_answer
        try:
            answer = await self._session.request("POST", _REVIEWS, body, deadline_s=_REVIEW_S_MAX)
            verdict = read(_decode, answer, lambda: "a SubjectAccessReview").status
        except ApiError as error:
            raise NotDecided(str(error)) from error
        is_allowed = verdict.allowed and not verdict.denied
        self._answers.put(body, is_allowed, self._allowed_s if is_allowed else self._refused_s)
        return is_allowed
