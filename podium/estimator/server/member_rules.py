"""The rules that decide in a member cluster: those of its API server's release."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.client.server_version import release_of
from podium.estimator.errors import EstimateError
from podium.objects.api_errors import ApiError

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

    from podium.estimator.accurate import Rules
    from podium.server.process import Connection


async def rules_of_member(name: str, connection: Connection, rules: Rules, log: FilteringBoundLogger) -> Rules:
    """Return the rules as the member's own release has them, or as they are if it cannot be asked."""
    if rules.as_of is None:
        return rules
    try:
        async with connection.session() as session:
            release, server = await release_of(session)
        member_rules = rules.as_of(release)
    except (ApiError, EstimateError) as error:
        minor = rules.config.release.minor
        log.warning("Not deciding as the member's own release", cluster=name, minor=minor, error=str(error))
        return rules
    log.info("Deciding as kube-scheduler does", cluster=name, minor=release.minor, server=server)
    return member_rules
