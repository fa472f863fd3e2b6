"""Sets up access control: connections for reviews, trusted client CAs, and the guard in front of the endpoints.

Source: apiserver/pkg/server/options/authentication.go and authorization.go, v0.36.
Differs: without a kubeconfig for reviews, podium's own connection is used, also outside a cluster; upstream then
refuses every request.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from aiohttp.typedefs import Middleware

from podium.client.credentials import Credentials, load
from podium.client.session import ApiSession
from podium.lib.clock import Clock
from podium.objects.api_errors import ApiError
from podium.server.access_options import AccessOptions
from podium.server.serving.authentication import Authenticator, ClientAuthorities
from podium.server.serving.authorization import Authorizer
from podium.server.serving.checks import guard
from podium.server.serving.listener import ServingError
from podium.server.serving.tls import ServingTls

_CONNECTIONS_MAX = 4


class Access:
    """The access control in front of the endpoints.

    Attributes: ``middleware``, which must run before every handler.
    """

    def __init__(self, middleware: Middleware, tls: ServingTls, lookup: ApiSession | None) -> None:
        self.middleware = middleware
        self._tls = tls
        self._lookup = lookup

    async def run(self) -> None:
        """Reload certificate files, and the CA that the API server publishes if it is used, until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._tls.run)
            if self._lookup is not None:
                tasks.start_soon(ClientAuthorities(self._tls).keep_looking_up, self._lookup)


@asynccontextmanager
async def open_access(
    options: AccessOptions, own_credentials: Credentials, tls: ServingTls, clock: Clock
) -> AsyncIterator[Access]:
    """Set up access control for a server with these TLS settings.

    Args:
        own_credentials: podium's connection.

    Raises:
        ConnectionConfigError: a kubeconfig cannot be used.
        CertificateError: the file of client CAs cannot be used.
        ServingError: the lookup of the published CA failed, and the options do not tolerate that.
    """
    identities = await _credentials(options.authentication_kubeconfig, own_credentials, clock)
    rights = await _credentials(options.authorization_kubeconfig, own_credentials, clock)
    async with (
        ApiSession(identities, connections_max=_CONNECTIONS_MAX) as authentication,
        ApiSession(rights, connections_max=_CONNECTIONS_MAX) as authorization,
    ):
        if options.client_ca_file:
            tls.follow_authorities(options.client_ca_file)
        looks_up = not options.client_ca_file and not options.authentication_skip_lookup
        if looks_up and not options.authentication_tolerate_lookup_failure:
            try:
                await ClientAuthorities(tls).look_up(authentication)
            except (ApiError, ValueError) as error:
                raise ServingError(f"unable to load the client CA: {error}") from error
        door = guard(
            Authenticator(authentication, clock, options.authentication_token_cache_s, tls.believes),
            Authorizer(
                authorization,
                clock,
                options.authorization_always_allow_paths,
                options.authorized_cache_s,
                options.unauthorized_cache_s,
            ),
            clock,
        )
        yield Access(door, tls, authentication if looks_up else None)


async def _credentials(kubeconfig: str, own_credentials: Credentials, clock: Clock) -> Credentials:
    return await load(kubeconfig, clock) if kubeconfig else own_credentials
