"""Bearer tokens and their users: the sandbox's own token, and tokens that it issued for service accounts.

Source: KEP-1205 (bound service account tokens); the claims of kubernetes pkg/serviceaccount/claims.go (v1.36).
Differs: tokens are signed with a private key without OIDC discovery, and are not bound to an object.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import orjson

from podium.sandbox.errors import Cause, invalid
from podium.sandbox.resources import resource_named
from podium.sandbox.validation import mapping

Json = dict[str, Any]

ADMIN: Json = {"username": "sandbox-admin", "groups": ["system:masters", "system:authenticated"]}
ISSUER = "https://kubernetes.default.svc.cluster.local"
_ACCOUNTS = resource_named("serviceaccounts")
_LIFETIME_S_MIN, _LIFETIME_S_DEFAULT, _LIFETIME_S_MAX = 600, 3600, 1 << 32
_HEADER: Json = {"alg": "HS256", "typ": "JWT"}


class Tokens:
    """Issues and verifies tokens.

    Args:
        admin_token: the administrator's token. With None every client is an administrator.
        now: the wall clock, for the expiry of tokens.
    """

    def __init__(self, admin_token: str | None, now: Callable[[], datetime]) -> None:
        self._admin_token = admin_token
        self._now = now
        self._key = secrets.token_bytes(32)

    @property
    def admits_everybody(self) -> bool:
        """Return whether requests need no token."""
        return self._admin_token is None

    def user_of(self, token: str) -> Json | None:
        """Return the `userInfo` of the token's user, or None if the token is unknown or has expired."""
        claims = self._claims(token)
        if claims is None:
            return ADMIN if self._admin_token in (None, token) else None
        if claims["exp"] <= self._now().timestamp():
            return None
        binding = claims["kubernetes.io"]
        namespace, account = binding["namespace"], binding["serviceaccount"]
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
        return {"username": claims["sub"], "uid": account["uid"], "groups": groups}

    def issue(self, account: Json, request: Json) -> Json:
        """Answer a `TokenRequest` for a service account.

        Raises:
            ApiError: 422, the requested lifetime is too short or too long.
        """
        spec, metadata = mapping(request, "spec"), account["metadata"]
        lifetime_s = _lifetime_s(spec, metadata["name"])
        audiences = spec.get("audiences") or [ISSUER]
        time = self._now()
        claims = {
            "aud": audiences,
            "exp": int(time.timestamp()) + lifetime_s,
            "iat": int(time.timestamp()),
            "iss": ISSUER,
            "kubernetes.io": {
                "namespace": metadata["namespace"],
                "serviceaccount": {"name": metadata["name"], "uid": metadata["uid"]},
            },
            "sub": f"system:serviceaccount:{metadata['namespace']}:{metadata['name']}",
        }
        expires = (time + timedelta(seconds=lifetime_s)).strftime("%Y-%m-%dT%H:%M:%SZ")
        return {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {"name": metadata["name"], "namespace": metadata["namespace"]},
            "spec": {"audiences": audiences, "expirationSeconds": lifetime_s},
            "status": {"token": self._sign(claims), "expirationTimestamp": expires},
        }

    def _sign(self, claims: Json) -> str:
        body = f"{_encode(orjson.dumps(_HEADER))}.{_encode(orjson.dumps(claims))}"
        return f"{body}.{self._signature(body)}"

    def _signature(self, body: str) -> str:
        return _encode(hmac.digest(self._key, body.encode(errors="replace"), hashlib.sha256))

    def _claims(self, token: str) -> Json | None:
        """Return the claims of a token, or None if it was not issued here."""
        body, _, signature = token.rpartition(".")
        if not hmac.compare_digest(signature.encode(errors="replace"), self._signature(body).encode()):
            return None
        claims: Json = orjson.loads(urlsafe_b64decode(body.partition(".")[2] + "=="))
        return claims


def _lifetime_s(spec: Json, name: str) -> int:
    lifetime_s = spec.get("expirationSeconds") or _LIFETIME_S_DEFAULT
    reason = ""
    if not isinstance(lifetime_s, int) or lifetime_s < _LIFETIME_S_MIN:
        reason = "may not specify a duration less than 10 minutes"
    elif lifetime_s > _LIFETIME_S_MAX:
        reason = f"may not specify a duration larger than {_LIFETIME_S_MAX} seconds"
    if reason:
        raise invalid(_ACCOUNTS, name, [Cause("spec.expirationSeconds", f"Invalid value: {lifetime_s}: {reason}")])
    return lifetime_s


def _encode(body: bytes) -> str:
    return urlsafe_b64encode(body).rstrip(b"=").decode()
