"""Access and token reviews. Everything is allowed, to every client or, if the sandbox has a token, to its holders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from podium.sandbox.tokens import ADMIN, Tokens

Json = dict[str, Any]

_ALLOWED: Json = {"allowed": True, "reason": "the sandbox allows everything"}
_RULES: Json = {
    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    "incomplete": False,
}

_REFUSED: Json = {"allowed": False, "reason": "the sandbox knows only who has its token"}


def _token_verdict(spec: Json, tokens: Tokens) -> Json:
    user = tokens.user_of(str(spec.get("token", "")))
    if user is None:
        return {"authenticated": False, "error": "this is not the sandbox's token"}
    return {"authenticated": True, "user": user}


def _access_verdict(spec: Json, tokens: Tokens) -> Json:
    is_known = spec.get("user") == ADMIN["username"] or "system:masters" in spec.get("groups", ())
    return _ALLOWED if tokens.admits_everybody or is_known else _REFUSED


# A client that asks about itself has already presented the token.
_STATUS: dict[str, Callable[[Json, Tokens], Json]] = {
    "authentication.k8s.io/v1/tokenreviews": _token_verdict,
    "authentication.k8s.io/v1/selfsubjectreviews": lambda _, __: {"userInfo": ADMIN},
    "authorization.k8s.io/v1/selfsubjectaccessreviews": lambda _, __: _ALLOWED,
    "authorization.k8s.io/v1/subjectaccessreviews": _access_verdict,
    "authorization.k8s.io/v1/localsubjectaccessreviews": _access_verdict,
    "authorization.k8s.io/v1/selfsubjectrulesreviews": lambda _, __: _RULES,
}


def is_review(path: str) -> bool:
    """Return whether the path belongs to a review."""
    return _name(path) in _STATUS


def answer_review(path: str, review: Json, tokens: Tokens) -> Json:
    """Return the review with its status filled in."""
    return review | {"status": _STATUS[_name(path)](review.get("spec") or {}, tokens)}


def _name(path: str) -> str:
    parts = path.removeprefix("/apis/").split("/")
    if len(parts) == 5 and parts[2] == "namespaces":
        del parts[2:4]
    return "/".join(parts)
