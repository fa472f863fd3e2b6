"""Spread constraints that pods get from the configuration."""

from __future__ import annotations

from typing import Any

import msgspec

from podium.objects.core import Pod, TopologySpreadConstraint
from podium.provisioner.provisioning.default_spreads import DefaultSpreads
from podium.provisioner.state.reading import read_objects
from tests.unit.provisioner.clusters import ZONE, Document, as_pod, owned_by, pod, spread

WEB = {"app": "web"}
RULE = msgspec.convert(
    {"topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}, TopologySpreadConstraint
)


def with_defaults(document: Document, *objects: Document) -> Pod:
    return DefaultSpreads(read_objects(objects), [RULE]).with_defaults(as_pod(document))


def selector_of(pod: Pod) -> Any:
    (constraint,) = pod.spec.topology_spread_constraints
    return msgspec.json.decode(msgspec.json.encode(constraint.label_selector))


def service(name: str, **selector: str) -> Document:
    return {"kind": "Service", "metadata": {"name": name, "namespace": "default"}, "spec": {"selector": selector}}


def controller(kind: str, selector: Any) -> Document:
    return {"kind": kind, "metadata": {"name": "web", "namespace": "default"}, "spec": {"selector": selector}}


def test_a_pod_that_nothing_selects_gets_none() -> None:
    assert with_defaults(pod("a", labels=WEB)).spec.topology_spread_constraints == ()
    assert with_defaults(pod("a", labels=WEB), service("other", app="db")).spec.topology_spread_constraints == ()


def test_a_pod_with_its_own_gets_none() -> None:
    own = pod("a", labels=WEB, topologySpreadConstraints=[spread("rack")])
    (constraint,) = with_defaults(own, service("web", app="web")).spec.topology_spread_constraints
    assert constraint.topology_key == "rack"


def test_all_services_of_the_pod_make_the_selector() -> None:
    web_pod = with_defaults(pod("a", labels={**WEB, "tier": "x"}), service("one", app="web"), service("two", tier="x"))
    assert selector_of(web_pod) == {"matchLabels": {"app": "web", "tier": "x"}}


def test_the_controllers_selector_is_added() -> None:
    selector = {"matchLabels": {"app": "web"}}
    for kind in ("ReplicaSet", "StatefulSet"):
        web_pod = with_defaults(pod("a", labels=WEB, metadata=owned_by(kind, "web")), controller(kind, selector))
        assert selector_of(web_pod) == {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]}
    old = pod("a", labels=WEB, metadata=owned_by("ReplicationController", "web", "v1"))
    assert selector_of(with_defaults(old, controller("ReplicationController", WEB))) == {"matchLabels": WEB}


def test_a_job_adds_nothing() -> None:
    assert (
        with_defaults(
            pod("a", labels=WEB, metadata=owned_by("Job", "web", "batch/v1"))
        ).spec.topology_spread_constraints
        == ()
    )
