"""Authenticates requests: by a client certificate, or by a bearer token that the API server reviews.

Owns the mapping from a request to its user. Never decides what that user may do. Tokens are not stored: the cache
identifies them by a keyed hash.

Source: apiserver/pkg/authentication/authenticatorfactory and plugin/pkg/authenticator/token/webhook, v0.36.
Differs: a certificate of an unknown CA is refused in the TLS handshake, not with a 401; the headers of a front proxy
are ignored (a scheduler is not behind an API aggregator).
"""

from __future__ import annotations

import hashlib
import os
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import anyio
import msgspec
import orjson
from aiohttp import web

from podium.client.answers import read
from podium.client.dispatcher import Requester
from podium.lib.clock import Clock
from podium.lib.error_text import error_text
from podium.lib.expiring import ExpiringCache
from podium.lib.log import get_logger
from podium.objects.api_errors import ApiError
from podium.server.serving.tls import ServingTls

log = get_logger("serving")

_TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
_CONFIG_MAP = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
_CLIENT_CA = "client-ca-file"
_TOKENS_MAX = 1024
_REVIEW_S_MAX = 10.0
_LOOKUP_PERIOD_S = 60.0
_LOOKUP_RETRY_S = 10.0
AUTHENTICATED = "system:authenticated"


class NotAuthenticated(Exception):  # noqa: N818 - named after the response
    """The credentials are not valid. The message goes to the log only."""


@dataclass(frozen=True, slots=True)
class User:
    """A user, as the API server identifies them."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


ANONYMOUS = User("system:anonymous", groups=("system:unauthenticated",))


class _UserInfo(msgspec.Struct):
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}


class _TokenReviewStatus(msgspec.Struct):
    authenticated: bool = False
    user: _UserInfo = msgspec.field(default_factory=_UserInfo)
    error: str = ""


class _TokenReview(msgspec.Struct):
    kind: Literal["TokenReview"]
    status: _TokenReviewStatus


_decode = msgspec.json.Decoder(_TokenReview).decode


class Authenticator:
    """Determines the user of a request.

    Args:
        session: sends TokenReviews to the API server.
        cache_s: how long a token's verdict, good or bad, is cached; failed reviews are not cached.
        is_still_trusted: returns whether client certificates that a TLS context has verified are trusted now.
    """

    def __init__(
        self, session: Requester, clock: Clock, cache_s: float, is_still_trusted: Callable[[ssl.SSLContext], bool]
    ) -> None:
        self._session = session
        self._is_still_trusted = is_still_trusted
        self._cache_s = cache_s
        self._verdicts: ExpiringCache[User | NotAuthenticated] = ExpiringCache(clock, _TOKENS_MAX)
        # Keyed, so that digests in a memory dump cannot be looked up in a table of precomputed hashes of tokens.
        self._hash_key = os.urandom(32)

    async def user_of(self, request: web.BaseRequest) -> User:
        """Return the user of the request; anonymous without credentials. Raises: `NotAuthenticated`."""
        # As upstream, a certificate takes precedence over a token.
        user = self._certificate_user(request)
        if user is not None:
            return user
        scheme, _, value = request.headers.get("Authorization", "").strip().partition(" ")
        token = value.strip()
        if scheme.lower() != "bearer" or not token:
            return ANONYMOUS
        return await self._token_user(token)

    async def _token_user(self, token: str) -> User:
        digest = hashlib.blake2b(token.encode(errors="replace"), key=self._hash_key).digest()
        verdict = self._verdicts.get(digest)
        if verdict is None:
            verdict = await self._review(token)
            # Refusals are cached, too: a client that retries with a bad token must not cost a review each time.
            self._verdicts.put(digest, verdict, self._cache_s)
        if isinstance(verdict, NotAuthenticated):
            raise NotAuthenticated(str(verdict))
        return verdict

    async def _review(self, token: str) -> User | NotAuthenticated:
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        try:
            answer = await self._session.request("POST", _TOKEN_REVIEWS, orjson.dumps(review), deadline_s=_REVIEW_S_MAX)
            verdict = read(_decode, answer, lambda: "a TokenReview").status
        except (ApiError, TypeError) as error:
            # Raised, so not cached: that the API server cannot be reached says nothing about the token.
            raise NotAuthenticated(f"the token could not be reviewed: {error_text(error)}") from error
        if not verdict.authenticated:
            return NotAuthenticated(verdict.error or "the token is not valid")
        user = verdict.user
        return User(user.username, user.uid, _with_authenticated(user.groups), user.extra)

    def _certificate_user(self, request: web.BaseRequest) -> User | None:
        """Return the user that a client certificate names, or None without a client certificate.

        The certificate was verified in this connection's handshake, or in that of the session it resumes.

        Raises: `NotAuthenticated`.
        """
        connection = request.transport
        ssl_object: Any = None if connection is None else connection.get_extra_info("ssl_object")
        certificate = None if ssl_object is None else ssl_object.getpeercert()
        if not certificate:
            return None
        # TLS checks the expiry only in the handshake, and a connection may be kept open for days.
        if time.time() > ssl.cert_time_to_seconds(certificate["notAfter"]):
            raise NotAuthenticated("the client certificate has expired")
        if not self._is_still_trusted(ssl_object.context):
            raise NotAuthenticated("the CA of the client certificate is no longer trusted")
        return _subject_user(certificate)


def _subject_user(certificate: Mapping[str, Any]) -> User | None:
    attributes = [pair for part in certificate.get("subject", ()) for pair in part]
    name = next((value for key, value in attributes if key == "commonName"), "")
    # Kubernetes' convention: the common name is the user, each organization a group.
    groups = tuple(value for key, value in attributes if key == "organizationName")
    return User(name, groups=_with_authenticated(groups)) if name else None


def _with_authenticated(groups: tuple[str, ...]) -> tuple[str, ...]:
    # A TokenReview's user has this group already; for certificates, the server that verifies them must add it.
    return groups if AUTHENTICATED in groups else (*groups, AUTHENTICATED)


class ClientAuthorities:
    """Trusts the client CAs that the API server publishes; used if no CA file is given."""

    def __init__(self, tls: ServingTls) -> None:
        self._tls = tls

    async def look_up(self, session: Requester) -> None:
        """Trust the CAs that the API server publishes. Raises: `ApiError`, `ValueError` (includes `ssl.SSLError`)."""
        answer = orjson.loads(await session.request("GET", _CONFIG_MAP, deadline_s=_REVIEW_S_MAX))
        data = answer.get("data") if isinstance(answer, dict) else None
        authority = str((data or {}).get(_CLIENT_CA) or "")
        try:
            if authority:
                self._tls.trust(authority)
        except ssl.SSLError as error:
            raise ValueError(f"{_CLIENT_CA} holds no certificate: {error}") from error

    async def keep_looking_up(self, session: Requester) -> None:
        """Look up the CAs periodically, until cancelled, since they are rotated from time to time."""
        has_warned = False
        while True:
            try:
                await self.look_up(session)
                pause_s = _LOOKUP_PERIOD_S
            except (ApiError, ValueError) as error:
                pause_s = _LOOKUP_RETRY_S
                if not has_warned:
                    log.warning("Client certificates are not accepted: the CA is unknown", error=str(error))
                has_warned = True
            await anyio.sleep(pause_s)
