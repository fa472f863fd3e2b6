"""Writes the summaries of the members into their Cluster objects in Karmada, as its status controller would.

Owns the fields nodeSummary and resourceSummary of their status. A member whose state is not fresh, or that has no
Cluster object, is left alone, and never keeps the others from being written.

Source: karmada pkg/controllers/status/cluster_status_controller.go, v1.18.
Differs: a status is written only if it differs. The other fields of the status stay Karmada's own. Its controllers must
run with `--enable-cluster-resource-modeling=false`, or they write these fields as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import anyio
import anyio.lowlevel
import msgspec

from podium.client.requests import MERGE_PATCH
from podium.client.session import ApiSession
from podium.estimator.cluster_objects import CLUSTERS, Cluster
from podium.estimator.division.answers import summary_answer
from podium.estimator.member import MemberCluster
from podium.lib.error_text import error_text
from podium.lib.log import get_logger
from podium.objects.api_errors import ApiError, Malformed
from podium.objects.errors import FieldError

log = get_logger("estimator")

_DEADLINE_S: Final = 5.0


class StatusReport:
    """The task that writes summaries.

    Args:
        session: to Karmada's API server.
        members: returns the clusters whose state is fresh, by their names in Karmada.
        with_models: the feature gate CustomizedClusterResourceModeling.
        interval_s: between two rounds.
    """

    def __init__(
        self,
        session: ApiSession,
        members: Callable[[], Mapping[str, MemberCluster]],
        *,
        with_models: bool,
        interval_s: float,
    ) -> None:
        self._session = session
        self._members = members
        self._with_models = with_models
        self._interval_s = interval_s
        self._faults: dict[str, str] = {}

    async def run(self) -> None:
        """Write until cancelled. Call this once only, since it closes the connections at its end."""
        async with self._session:
            while True:
                await self.write_all()
                await anyio.sleep(self._interval_s)

    async def write_all(self) -> None:
        """Write the status of each member that has changed."""
        async with anyio.create_task_group() as group:
            for name, member in self._members().items():
                # Asked in parallel: one Cluster that is slow must not make the others late.
                group.start_soon(self._write_or_log, name, member)
                await anyio.lowlevel.checkpoint()

    async def _write_or_log(self, name: str, member: MemberCluster) -> None:
        try:
            await self._write(name, member)
            self._faults.pop(name, None)
        except (ApiError, FieldError) as error:
            # Once for each fault: rounds are frequent, and a member without a Cluster object may stay so.
            if self._faults.get(name) != (text := error_text(error)):
                self._faults[name] = text
                log.error("Status cannot be reported", cluster=name, error=text)

    async def _write(self, name: str, member: MemberCluster) -> None:
        body = await self._session.request("GET", f"{CLUSTERS.path}/{name}", deadline_s=_DEADLINE_S)
        try:
            cluster = msgspec.json.decode(body, type=Cluster)
            present = msgspec.json.decode(body).get("status") or {}
        except msgspec.DecodeError as error:
            raise Malformed(f"Cluster {name}: {error}") from error
        if cluster.metadata.deletion_timestamp is not None:
            return
        summary = summary_answer(member.summary(cluster.spec.resource_models if self._with_models else ()))
        patch = {field: _patch(present.get(field), value) for field, value in summary.items()}
        patch = {field: change for field, change in patch.items() if change}
        if patch:
            content = msgspec.json.encode({"status": patch})
            path = f"{CLUSTERS.path}/{name}/status"
            await self._session.request("PATCH", path, content, content_type=MERGE_PATCH, deadline_s=_DEADLINE_S)


def _patch(present: Any, value: Any) -> Any:
    """Return the merge patch that turns one JSON value into another; {} if they are equal."""
    if not isinstance(value, dict) or not isinstance(present, dict):
        return {} if present == value else value
    changes = {key: _patch(present.get(key), item) for key, item in value.items() if present.get(key) != item}
    # A merge patch keeps what it does not name.
    return changes | {key: None for key in present if key not in value}
