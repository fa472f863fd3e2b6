"""The checks of `podium doctor`, ordered so that each check relies on the ones before it.

Owns the requests to the API server and the interpretation of the responses.

Source: the supported versions follow from kube-scheduler 1.36's version skew policy.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

import anyio
import orjson

from podium.client.advice import diagnosis_of
from podium.client.permissions import Needs, Permission
from podium.client.session import ApiSession
from podium.config import (
    AS_DEFAULT_SCHEDULER,
    LEASE_NAME,
    NEWEST,
    OLDEST_SERVER,
    KubeSchedulerConfiguration,
    PodGroupRules,
)
from podium.config.scheduler_names import similar_name
from podium.daemon.doctor.findings import Report
from podium.daemon.doctor.metrics import check_metrics
from podium.daemon.permissions import needs
from podium.daemon.stray_pods import WAITING_S_MIN
from podium.framework.contract.plugin import Plugin
from podium.framework.contract.status import PluginError
from podium.lib.clock import Clock
from podium.objects.api_errors import ApiError, Forbidden, NotFound, Unauthorized, Unreachable
from podium.objects.resource_types import CUSTOM
from podium.objects.times import time_or_none
from podium.server.election import is_held_by_kube_scheduler

MINORS = tuple(int(version.partition(".")[2]) for version in (OLDEST_SERVER, NEWEST.minor))
"""The lowest and the highest supported minor version of Kubernetes."""
_SKEW_S_MAX = 5.0
_DEADLINE_S = 10.0
_REVIEWS_AT_ONCE_MAX = 8
_RECENT_S_MAX = 120.0
_EVENTS_MAX = 500
_PODS_MAX = 5000
_ACCESS_REVIEWS_PATH = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_SELF_REVIEWS_PATH = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


async def examine(
    report: Report,
    session: ApiSession,
    config: KubeSchedulerConfiguration,
    plugins: Mapping[str, type[Plugin]],
    clock: Clock,
    pod_groups: PodGroupRules | None = None,
    *,
    is_default_scheduler: bool = False,
    is_shard: bool = False,
) -> None:
    """Run all checks and add their findings to the report.

    Args:
        pod_groups: the rules for scheduling pods in groups; None if each pod is scheduled by itself.
        is_default_scheduler: True if podium is to take kube-scheduler's place, which may then hold the Lease.
        is_shard: True if the configuration is that of a member of a group of shards.
    """
    if not await _check_api_server(report, session, clock):
        return
    try:
        needs_of_config = needs(config, plugins, session, clock, pod_groups=pod_groups, is_shard=is_shard)
    except PluginError:
        return  # The command has reported the plugin error already, whether or not the API server can be reached.
    await _check_needs(report, session, needs_of_config)
    await check_metrics(report, session, needs_of_config.metrics, clock)
    await _check_lease(report, session, config, clock, is_default_scheduler=is_default_scheduler)
    await _check_other_schedulers(report, session, config, clock)
    await _check_stray_pods(report, session, config, clock)


async def examine_needs(report: Report, session: ApiSession, needs_of_config: Needs, clock: Clock) -> None:
    """Check the API server, the user, and the APIs and permissions that are needed; add the findings to the report."""
    if await _check_api_server(report, session, clock):
        await _check_needs(report, session, needs_of_config)


async def _check_needs(report: Report, session: ApiSession, needs_of_config: Needs) -> None:
    await _check_user(report, session)
    await _check_apis(report, session, needs_of_config)
    await _check_permissions(report, session, needs_of_config)


# ------------------------------------------------------------ the server


async def _check_api_server(report: Report, session: ApiSession, clock: Clock) -> bool:
    """Return True if the API server responds at all; check its version and its clock."""
    try:
        # A stream, because only it gives the Date header.
        began_s = clock.now()
        stream = await session.stream("/version", deadline_s=_DEADLINE_S, idle_s_max=_DEADLINE_S)
        try:
            date, body = stream.date, b""
            while chunk := await stream.read():
                body += chunk
        finally:
            stream.close()
        version = _git_version(orjson.loads(body))
    except Unauthorized as error:
        cause, advice = diagnosis_of(error)
        report.fail("credentials", f"{cause}: {error}", advice)
        return False
    except Unreachable as error:
        cause, advice = diagnosis_of(error)
        report.fail("api server", f"{cause}: {error}", advice)
        return False
    except (ApiError, ValueError) as error:
        report.fail("api server", f"it does not report its version: {error}", "is this a Kubernetes API server?")
        return False
    _check_version(report, version)
    # The server's time is of somewhere between request and response.
    _check_clock_skew(report, date, (began_s + clock.now()) / 2)
    return True


def _git_version(answer: object) -> str:
    if isinstance(answer, dict) and isinstance(version := answer.get("gitVersion"), str):
        return version
    raise ValueError("the response has no gitVersion")


def _check_version(report: Report, version: str) -> None:
    numbers = re.match(r"v?(\d+)\.(\d+)", version)
    lowest, highest = MINORS
    if numbers is None or int(numbers[1]) != 1 or not lowest <= int(numbers[2]) <= highest:
        message = f"it is {version or 'of unknown version'}; podium supports 1.{lowest} to 1.{highest}"
        report.warn("api server", message, "try podium on such a cluster before relying on it")
    else:
        report.ok("api server", f"it is {version}")


def _check_clock_skew(report: Report, date: str | None, now_s: float) -> None:
    try:
        server_s = parsedate_to_datetime(date or "").timestamp()
    except ValueError:
        report.warn("clock", "the API server does not report its time", "compare the machines' clocks by hand")
        return
    # The Date header is truncated to whole seconds.
    skew_s = now_s - (server_s + 0.5)
    if abs(skew_s) > _SKEW_S_MAX:
        message = f"the local clock is {abs(skew_s):.0f} s {'ahead of' if skew_s > 0 else 'behind'} the API server's"
        advice = "synchronise both (NTP): tokens and certificates may be refused, Events and logs show wrong times; "
        report.warn("clock", message, advice + "leader election does not depend on it")
    else:
        report.ok("clock", "it agrees with the API server's")


async def _check_user(report: Report, session: ApiSession) -> None:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    try:
        answer = orjson.loads(await session.post(_SELF_REVIEWS_PATH, orjson.dumps(review)))
    except Unauthorized as error:
        cause, advice = diagnosis_of(error)
        report.fail("credentials", f"{cause}: {error}", advice)
    except ApiError as error:
        report.warn("credentials", f"the API server does not name podium's user: {error}", "see the rights below")
    else:
        name = answer["status"]["userInfo"].get("username", "nobody")
        report.ok("credentials", f"authenticated as {name}")


# ------------------------------------------------------------ APIs and permissions


async def _check_apis(report: Report, session: ApiSession, needs_of_config: Needs) -> None:
    names_by_root: dict[str, frozenset[str] | None] = {}
    is_any_missing = False
    for resource, users in needs_of_config.resources.items():
        root = resource.path.rpartition("/")[0]
        if root not in names_by_root:
            names_by_root[root] = await _resource_names(session, root)
        names = names_by_root[root]
        # Without an answer nothing is known, and the right to read it is checked below.
        if names is not None and resource.plural not in names:
            is_any_missing = True
            message = f"the API server does not serve {resource.plural} at {root}, which {', '.join(users)} reads"
            if resource in needs_of_config.required:
                report.fail("apis", message, "install its CustomResourceDefinition")
            elif resource.gate == CUSTOM:
                report.warn("apis", message, "install its CustomResourceDefinition, or disable the plugin")
            # A missing kind of an API group is one of a version or feature that is off, with which podium can do.
            elif resource.group:
                report.warn("apis", message, "podium runs as if no such object existed; disable the plugin or upgrade")
            else:
                report.fail("apis", message, "is this a Kubernetes API server?")
    if not is_any_missing:
        report.ok("apis", f"all {len(needs_of_config.resources)} watched resources are served")


async def _resource_names(session: ApiSession, root: str) -> frozenset[str] | None:
    """Return the names of the resources of a group and version; None if the API server does not answer."""
    try:
        answer = orjson.loads(await session.request("GET", root, deadline_s=_DEADLINE_S))
    except NotFound:
        return frozenset()
    except ApiError:
        return None
    return frozenset(resource["name"] for resource in answer.get("resources", ()))


async def _check_permissions(report: Report, session: ApiSession, needs_of_config: Needs) -> None:
    verdicts: dict[Permission, bool | ApiError] = {}
    # The reviews pass through the server's priority and fairness, too, which dozens at once would fill.
    limiter = anyio.CapacityLimiter(_REVIEWS_AT_ONCE_MAX)

    async def ask(permission: Permission) -> None:
        async with limiter:
            try:
                verdicts[permission] = await _is_allowed(session, permission)
            except ApiError as error:
                verdicts[permission] = error

    async with anyio.create_task_group() as tasks:
        for permission in needs_of_config.permissions:
            tasks.start_soon(ask, permission)
    failures = [verdict for verdict in verdicts.values() if isinstance(verdict, ApiError)]
    if failures:
        advice = "bind podium's user to the ClusterRole system:basic-user, or ask an administrator"
        report.fail("rights", f"the API server does not say what podium may do: {failures[0]}", advice)
        return
    for permission, users in needs_of_config.permissions.items():
        if not verdicts[permission]:
            report.fail(
                "rights",
                f"not allowed to {permission}, which {', '.join(users)} needs",
                _missing_rule_advice(permission, needs_of_config.role),
            )
    if all(verdicts.values()):
        report.ok("rights", f"all {len(verdicts)} needed permissions are granted")


async def _is_allowed(session: ApiSession, permission: Permission) -> bool:
    resource, _, subresource = permission.resource.partition("/")
    attributes = {
        "group": permission.group,
        "resource": resource,
        "subresource": subresource,
        "verb": permission.verb,
        "namespace": permission.namespace,
        "name": permission.name,
    }
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    answer = orjson.loads(await session.post(_ACCESS_REVIEWS_PATH, orjson.dumps(review)))
    return bool(answer["status"]["allowed"])


def _missing_rule_advice(permission: Permission, role_file: str) -> str:
    """Return the advice to add the missing RBAC rule."""
    role = f"the Role in {permission.namespace}" if permission.namespace else "the ClusterRole"
    names = f", resourceNames: [{permission.name}]" if permission.name else ""
    rule = (
        f'{{apiGroups: ["{permission.group}"], resources: [{permission.resource}]{names}, verbs: [{permission.verb}]}}'
    )
    return f"add to {role} of podium's user: {rule} ({role_file} has it)"


# ------------------------------------------------------------ other schedulers with the same lease or name


async def _check_lease(
    report: Report,
    session: ApiSession,
    config: KubeSchedulerConfiguration,
    clock: Clock,
    *,
    is_default_scheduler: bool,
) -> None:
    election = config.leader_election
    path = f"/apis/coordination.k8s.io/v1/namespaces/{election.resource_namespace}/leases/{election.resource_name}"
    lease = f"{election.resource_namespace}/{election.resource_name}"
    try:
        content = orjson.loads(await session.request("GET", path, deadline_s=_DEADLINE_S))
    except NotFound:
        if election.leader_elect:
            report.ok("lease", f"{lease} does not exist yet and will be created")
        return
    except ApiError as error:
        if election.leader_elect:
            report.fail("lease", f"{lease} cannot be read: {error}", "see the rights")
        return
    spec = content.get("spec") or {}
    holder, age_s = spec.get("holderIdentity") or "", _age_s(spec.get("renewTime"), clock)
    # Expired long ago is as good as free: a process that ended without a word leaves its name.
    is_held = bool(holder) and age_s is not None and age_s <= float(spec.get("leaseDurationSeconds") or 0) + _SKEW_S_MAX
    if election.leader_elect and is_held_by_kube_scheduler(content) and not is_default_scheduler:
        message = f"{LEASE_NAME}: {lease} is held by {holder}, which is kube-scheduler: podium does not start"
        report.fail("lease", message, f"choose another name, or pass {AS_DEFAULT_SCHEDULER} to stand by until it ends")
    elif not is_held:
        report.ok("lease", f"{lease} has no holder at the moment")
    elif election.leader_elect:
        advice = (
            "nothing to do if that is a replica of podium; otherwise set leaderElection.resourceName to another name"
        )
        report.warn("lease", f"{lease} is held by {holder}: podium would stand by until the holder ends", advice)
    else:
        advice = "set leaderElection.leaderElect to true, or end the other process: two would bind the same pods"
        report.warn("lease", f"{lease} is held by {holder}, and this configuration has no leader election", advice)


async def _check_other_schedulers(
    report: Report, session: ApiSession, config: KubeSchedulerConfiguration, clock: Clock
) -> None:
    """Report other processes that bind pods under podium's scheduler names, if podium may list Events."""
    for profile in config.profiles:
        name = profile.scheduler_name
        selector = f"reason%3DScheduled%2CreportingController%3D{name}"
        path = f"/apis/events.k8s.io/v1/events?limit={_EVENTS_MAX}&fieldSelector={selector}"
        try:
            events = orjson.loads(await session.request("GET", path, deadline_s=_DEADLINE_S)).get("items") or []
        except (Forbidden, NotFound):
            # The scheduler needs neither right, so that without it there is nothing to report.
            return
        except ApiError as error:
            report.warn(
                "others", f"Events cannot be listed: {error}", "make sure that no other scheduler uses this name"
            )
            return
        ages_s = {event.get("reportingInstance", "?"): _age_s(event.get("eventTime"), clock) for event in events}
        # Events last an hour, and a scheduler that was replaced has left some.
        active_instances = sorted(
            instance for instance, age_s in ages_s.items() if age_s is not None and age_s < _RECENT_S_MAX
        )
        if active_instances:
            advice = "nothing to do if that is a replica of podium with the same lease; otherwise end it or rename one"
            report.warn(
                "others",
                f"{', '.join(active_instances)} has bound pods as {name} in the last {_RECENT_S_MAX:g} s",
                advice,
            )
        else:
            report.ok("others", f"no other process has bound pods as {name} lately")


async def _check_stray_pods(
    report: Report, session: ApiSession, config: KubeSchedulerConfiguration, clock: Clock
) -> None:
    """Report pods that wait for a misspelt scheduler name, if podium may list pods."""
    names = {profile.scheduler_name for profile in config.profiles}
    path = f"/api/v1/pods?limit={_PODS_MAX}&fieldSelector=spec.nodeName%3D%2Cstatus.phase%3DPending"
    try:
        pods = orjson.loads(await session.request("GET", path, deadline_s=_DEADLINE_S)).get("items") or []
    except ApiError:
        return
    waiting: dict[tuple[str, str], list[str]] = {}
    for pod in pods:
        metadata, name = pod.get("metadata") or {}, (pod.get("spec") or {}).get("schedulerName") or ""
        age_s = _age_s(metadata.get("creationTimestamp"), clock)
        likely_name = similar_name(name, names)
        # A young pod may only wait for a scheduler that starts.
        if likely_name is not None and age_s is not None and age_s >= WAITING_S_MIN:
            waiting.setdefault((name, likely_name), []).append(f"{metadata.get('namespace')}/{metadata.get('name')}")
    for (name, likely_name), keys in waiting.items():
        advice = f"correct spec.schedulerName at the source of these pods, unless a scheduler named {name} is to run"
        message = (
            f"{len(keys)} wait for a scheduler named {name}, such as {keys[0]}; a profile here is named {likely_name}"
        )
        report.warn("pods", message, advice)


def _age_s(time: object, clock: Clock) -> float | None:
    time_s = time_or_none(time)
    return None if time_s is None else clock.now() - time_s
