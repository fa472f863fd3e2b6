"""The options of authentication and authorization, under kube-scheduler's names and with its defaults.

Source: apiserver/pkg/server/options/authentication.go and authorization.go, v0.36.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

OPEN_PATHS: Final = ("/healthz", "/readyz", "/livez")


@dataclass(frozen=True, slots=True)
class AccessOptions:
    """Says where users are reviewed, and how long verdicts are cached.

    An empty kubeconfig means podium's own connection.
    """

    authentication_kubeconfig: str = ""
    authentication_skip_lookup: bool = False
    authentication_tolerate_lookup_failure: bool = True
    authentication_token_cache_s: float = 10.0
    client_ca_file: str = ""
    authorization_kubeconfig: str = ""
    authorization_always_allow_paths: tuple[str, ...] = OPEN_PATHS
    authorized_cache_s: float = 10.0
    unauthorized_cache_s: float = 10.0
