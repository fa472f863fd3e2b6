"""The task behind the stand-in controllers: it watches changes and reconciles the objects that they affect.

Source: kubernetes cmd/kube-controller-manager, pkg/controller/garbagecollector (v1.36).
Differs: dependents are deleted when the deletion of their owner is seen, always in the background. An owner that never
existed deletes no dependents, so pods may name fictitious owners.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import Any

from podium.sandbox.controllers import budgets, daemon_sets, deployments, jobs, replica_sets, stateful_sets
from podium.sandbox.controllers.budgets import BUDGETS
from podium.sandbox.controllers.claims import CLAIMS, TEMPLATES, Claims
from podium.sandbox.controllers.daemon_sets import DAEMON_SETS, NODES, concerns_daemons
from podium.sandbox.controllers.deployments import DEPLOYMENTS
from podium.sandbox.controllers.ephemeral_claims import VOLUME_CLAIMS, give_claims, has_ephemeral_volumes
from podium.sandbox.controllers.job_failures import JobBackoffs
from podium.sandbox.controllers.jobs import JOBS, TRACKING
from podium.sandbox.controllers.ownership import Dependents, controller_of
from podium.sandbox.controllers.pods import PODS
from podium.sandbox.controllers.replica_sets import REPLICA_SETS
from podium.sandbox.controllers.revisions import REVISIONS
from podium.sandbox.controllers.stateful_sets import STATEFUL_SETS, is_member
from podium.sandbox.feeds import Feed
from podium.sandbox.journal import DELETED, Change, Key, Record
from podium.sandbox.resources import BY_KIND, ResourceType, resource_named
from podium.sandbox.store import Store

Json = dict[str, Any]

_RECONCILERS: dict[str, Callable[[Store, Record, list[Record]], bool]] = {
    DEPLOYMENTS.storage: deployments.reconcile,
    REPLICA_SETS.storage: replica_sets.reconcile,
    STATEFUL_SETS.storage: stateful_sets.reconcile,
    DAEMON_SETS.storage: daemon_sets.reconcile,
}
_WITH_PODS = (*_RECONCILERS, JOBS.storage)
_NAMESPACES = resource_named("namespaces")
_FOLLOWED = (
    *(DEPLOYMENTS, REPLICA_SETS, JOBS, STATEFUL_SETS, DAEMON_SETS, REVISIONS, BUDGETS),
    *(NODES, PODS, CLAIMS, TEMPLATES, VOLUME_CLAIMS, _NAMESPACES, resource_named("replicationcontrollers")),
)
_RETRY_S = 1.0
# The time from a change to the round that handles it, with those that come meanwhile. Upstream's controllers write over
# the network, too: a scheduler has heard of the change by then.
_ROUND_S = 0.01


def _call_later(delay_s: float, function: Callable[..., None], *arguments: Any) -> None:
    asyncio.get_running_loop().call_later(delay_s, function, *arguments)


class Controllers:
    """Stands in for kube-controller-manager, as far as this package implements it.

    Args:
        call_later: calls a function after that many seconds.
    """

    def __init__(self, store: Store, call_later: Callable[..., None] = _call_later) -> None:
        self._store = store
        self._call_later = call_later
        self._dependents = Dependents(store)
        self._claims = Claims(store, self._dependents)
        self._feeds = [(resource, Feed(store.collection(resource))) for resource in _FOLLOWED]
        self._due: dict[tuple[str, Key], None] = {}
        self._budgets_due: dict[str, None] = {}
        self._retried: set[tuple[str, Key]] = set()
        self._job_backoffs = JobBackoffs()
        self._job_timers: set[tuple[str, str]] = set()
        """The UIDs of Jobs that a timer syncs again, each with what for: a deadline, or the time of a failure."""
        self._gone: list[str] = []
        self._wake = asyncio.Event()

    async def run(self) -> None:
        """Run rounds until cancelled."""
        with ExitStack() as listening:
            for _, feed in self._feeds:
                listening.enter_context(feed.waking(self._wake.set))
            while True:
                self._wake.clear()
                self.work()
                await self._wake.wait()
                await asyncio.sleep(_ROUND_S)

    def work(self) -> None:
        """Run one round: read the changes, then reconcile every object that they affect."""
        for resource, feed in self._feeds:
            for change in feed.read():
                self._note(resource, change)
        deletions, self._gone = self._gone, []
        for uid in deletions:
            self._collect(uid)
        self._claims.work()
        due, self._due = self._due, {}
        for entry in due:
            self._reconcile(*entry)
        namespaces, self._budgets_due = self._budgets_due, {}
        for key, record in list(self._store.collection(BUDGETS).records.items()) if namespaces else ():
            if key[0] in namespaces:
                budgets.reconcile(self._store, record)

    def _note(self, resource: ResourceType, change: Change) -> None:
        obj, namespace = change.record.obj, change.record.key[0]
        if resource is NODES:
            if concerns_daemons(change):
                self._due |= dict.fromkeys((DAEMON_SETS.storage, key) for key in self._keys(DAEMON_SETS))
            return
        self._dependents.note(resource, change)
        self._claims.note(resource, change)
        self._budgets_due[namespace] = None
        if change.type == DELETED:
            self._gone.append(obj["metadata"]["uid"])
        elif resource is _NAMESPACES:
            self._give_account(obj["metadata"]["name"])
        elif resource.storage in _WITH_PODS or (resource is PODS and has_ephemeral_volumes(obj)):
            self._due[resource.storage, change.record.key] = None
        for concerned in (obj, change.previous.obj if change.previous else obj):
            self._note_owner(concerned)

    def _note_owner(self, obj: Json) -> None:
        reference = controller_of(obj)
        if reference is not None:
            owner = BY_KIND.get((reference.get("apiVersion", ""), reference.get("kind", "")))
            if owner is not None and (owner is PODS or owner.storage in _WITH_PODS):
                self._due[owner.storage, (obj["metadata"].get("namespace", ""), reference.get("name", ""))] = None

    def _reconcile(self, storage: str, key: Key) -> None:
        resource = resource_named(storage)
        record = self._store.collection(resource).records.get(key)
        if record is None or "deletionTimestamp" in record.obj["metadata"]:
            return
        if resource is PODS:
            is_refused = give_claims(self._store, record)
        else:
            member = is_member if resource is STATEFUL_SETS else None
            pods = self._dependents.controlled_by(record, resource, member)
            record = self._store.collection(resource).records[key]
            if resource is JOBS:
                is_refused = jobs.reconcile(self._store, record, pods, self._job_backoffs)
                self._await_times(key)
            else:
                is_refused = _RECONCILERS[storage](self._store, record, pods)
        if is_refused:
            self._try_later(storage, key)

    def _await_times(self, key: Key) -> None:
        """Reconcile a Job again at its deadline, and when it may replace failed pods."""
        job = self._store.collection(JOBS).records[key].obj
        uid = job["metadata"]["uid"]
        waits = {"deadline": jobs.seconds_left(self._store, job)}
        if (backoff := self._job_backoffs.of(uid)) is not None:
            waits[backoff.last_failure.isoformat()] = backoff.seconds_left(self._store.now())
        for reason, seconds in waits.items():
            if seconds is not None and (uid, reason) not in self._job_timers:
                self._job_timers.add((uid, reason))
                self._call_later(seconds, self._try_again, JOBS.storage, key)

    def _keys(self, resource: ResourceType) -> Iterable[Key]:
        return self._store.collection(resource).records

    def _try_later(self, storage: str, key: Key) -> None:
        if (storage, key) not in self._retried:
            self._retried.add((storage, key))
            self._call_later(_RETRY_S, self._try_again, storage, key)

    def _try_again(self, storage: str, key: Key) -> None:
        self._retried.discard((storage, key))
        self._due[storage, key] = None
        self._wake.set()

    def _collect(self, uid: str) -> None:
        for resource, record in list(self._dependents.of(uid)):
            current = record
            if TRACKING in (record.obj["metadata"].get("finalizers") or ()):
                current = jobs.release(self._store, record)
            if current.key in self._store.collection(resource).records:
                self._store.delete_record(resource, current, {})

    def _give_account(self, namespace: str) -> None:
        accounts = self._store.collection(resource_named("serviceaccounts"))
        if (namespace, "default") not in accounts.records:
            account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
            self._store.create(account, namespace=namespace)
