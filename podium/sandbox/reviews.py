"""Access and token reviews: everybody may do everything here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Json = dict[str, Any]

_USER: Json = {"username": "sandbox-admin", "groups": ["system:masters", "system:authenticated"]}
_ALLOWED: Json = {"allowed": True, "reason": "the sandbox allows everything"}
_RULES: Json = {
    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    "incomplete": False,
}

_STATUS: dict[str, Callable[[], Json]] = {
    "authentication.k8s.io/v1/tokenreviews": lambda: {"authenticated": True, "user": _USER},
    "authentication.k8s.io/v1/selfsubjectreviews": lambda: {"userInfo": _USER},
    "authorization.k8s.io/v1/selfsubjectaccessreviews": lambda: _ALLOWED,
    "authorization.k8s.io/v1/subjectaccessreviews": lambda: _ALLOWED,
    "authorization.k8s.io/v1/localsubjectaccessreviews": lambda: _ALLOWED,
    "authorization.k8s.io/v1/selfsubjectrulesreviews": lambda: _RULES,
}


def is_review(path: str) -> bool:
    """Whether a path is that of a review."""
    return _name(path) in _STATUS


def answer_review(path: str, review: Json) -> Json:
    """The review with its status filled in."""
    return review | {"status": _STATUS[_name(path)]()}


def _name(path: str) -> str:
    parts = path.removeprefix("/apis/").split("/")
    if len(parts) == 5 and parts[2] == "namespaces":
        del parts[2:4]
    return "/".join(parts)
