"""Questions about volumes.

Source: karpenter pkg/controllers/provisioning/suite_test.go and scheduling/suite_test.go (scenarios only), v1.15.0.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.parity.karpenter.questions import (
    DRIVER,
    Question,
    csi_node,
    in_zone,
    mounts,
    replicas,
    selector,
    solve,
    storage_class,
    volume,
    volume_claim,
)
from tests.unit.provisioner.clusters import (
    HOSTNAME,
    ZONE,
    Document,
    node,
    node_pool,
    pod,
    requirement,
    spread,
)
from tests.unit.provisioner.fleets import TYPES as SIZES
from tests.unit.provisioner.fleets import ago, machine

WEB = pod("web", **mounts("data"))


def questions() -> Iterator[Question]:
    """All questions of this module."""
    yield from _claims()
    yield from _zones()
    yield from _ephemeral()
    yield from _limits()


def _claims() -> Iterator[Question]:
    def about(sentence: str, *parts: Document) -> Question:
        return solve("claims", sentence, WEB, *parts)

    deletion = {"deletionTimestamp": ago(5), "finalizers": ["kubernetes.io/pv-protection"]}
    binding = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
    yield about("A claim that is not there")
    yield about("A claim that waits for a pod", volume_claim(), storage_class())
    yield about("A claim without a class", volume_claim(of=None))
    yield about("A claim of the empty class", volume_claim(of=""))
    yield about("A claim of a class that is not there", volume_claim(of="none"))
    yield about("A claim of a class that binds at once", volume_claim(), storage_class(volumeBindingMode="Immediate"))
    yield about("A claim that is being deleted", volume_claim(metadata=deletion), storage_class())
    yield about(
        "A claim that has lost its volume", volume_claim(volume="disk", phase="Lost"), storage_class(), volume()
    )
    yield about("A bound claim whose volume is not there", volume_claim(volume="disk"), storage_class())
    yield about(
        "A bound claim whose volume is being deleted",
        volume_claim(volume="disk"),
        storage_class(),
        volume(metadata=deletion),
    )
    yield about(
        "A claim that names its volume and is not yet bound",
        volume_claim(volume="disk", metadata={}),
        storage_class(),
        volume(),
    )
    for name, of in (("without a class", None), ("of the empty class", ""), ("of a class that is not there", "none")):
        yield about(f"A bound claim {name}", volume_claim(of=of, volume="disk"), volume("disk", in_zone("zone-3")))
    yield about(
        "A bound claim of a class that binds at once",
        volume_claim(volume="disk", metadata=binding),
        storage_class(volumeBindingMode="Immediate"),
        volume(),
    )
    yield solve("claims", "A pod with a wrong claim does not hold up another", WEB, pod("other"))
    yield solve(
        "claims",
        "A pod with a claim of a wrong class does not hold up another",
        WEB,
        pod("other"),
        volume_claim(of="none"),
    )
    yield about(
        "A volume of a file server",
        volume_claim(of="", volume="disk"),
        volume(source={"nfs": {"server": "files", "path": "/"}}),
    )


def _zones() -> Iterator[Question]:
    def about(sentence: str, *parts: Document) -> Question:
        return solve("volume-zones", sentence, *parts)

    classes = storage_class("standard", "zone-1", "zone-3")
    yield about("A class of two zones", WEB, volume_claim(), classes)
    yield about(
        "A class of zones that the pod excludes",
        pod("web", **mounts("data"), **selector(**{ZONE: "zone-2"})),
        volume_claim(),
        classes,
    )
    yield about(
        "A class of zones that the NodePool excludes",
        WEB,
        volume_claim(),
        classes,
        node_pool(requirements=[in_zone("zone-2")]),
    )
    yield about(
        "A volume in one zone", WEB, volume_claim(volume="disk"), volume("disk", in_zone("zone-3")), storage_class()
    )
    yield about(
        "A volume of two terms",
        WEB,
        volume_claim(volume="disk"),
        volume("disk", in_zone("zone-2"), in_zone("zone-3")),
        storage_class(),
    )
    yield about(
        "A volume of two zones",
        WEB,
        volume_claim(volume="disk"),
        volume("disk", in_zone("zone-2", "zone-3")),
        storage_class(),
    )
    yield about(
        "A volume in a zone that the pod excludes",
        pod("web", **mounts("data"), **selector(**{ZONE: "zone-1"})),
        volume_claim(volume="disk"),
        volume("disk", in_zone("zone-3")),
        storage_class(),
    )
    two = pod("web", **mounts("data", "logs"))
    logs = volume_claim("logs", volume="logs")
    disjoint = [volume("disk", in_zone("zone-1")), volume("logs", in_zone("zone-2"))]
    yield about("Two volumes of different zones", two, volume_claim(volume="disk"), logs, *disjoint, storage_class())
    volumes = [
        volume("disk", in_zone("zone-1"), in_zone("zone-3")),
        volume("logs", in_zone("zone-2"), in_zone("zone-3")),
    ]
    yield about("Two volumes that share one zone", two, volume_claim(volume="disk"), logs, *volumes, storage_class())
    on_host = [requirement(HOSTNAME, "In", "gone")]
    yield about(
        "A volume on a node that is gone, by its driver",
        WEB,
        volume_claim(volume="disk"),
        volume("disk", on_host),
        storage_class(),
    )
    for name, source in (("local", {"local": {"path": "/disk"}}), ("host path", {"hostPath": {"path": "/disk"}})):
        yield about(
            f"A {name} volume on a node that is gone",
            WEB,
            volume_claim(volume="disk"),
            volume("disk", on_host, source=source),
            storage_class(),
        )
        yield about(
            f"A {name} volume on a node that is gone, or in a zone",
            WEB,
            volume_claim(volume="disk"),
            volume("disk", on_host, in_zone("zone-2"), source=source),
            storage_class(),
        )
    apart = replicas(3, labels={"app": "web"}, topologySpreadConstraints=[spread(minDomains=3)])
    for index, document in enumerate(apart):
        document["spec"] |= mounts(f"data-{index}")
    claims = [volume_claim(f"data-{index}") for index in range(3)]
    yield solve(
        "volume-zones",
        "Pods with claims are spread over zones",
        apart,
        claims,
        storage_class("standard", "zone-1", "zone-2", "zone-3"),
    )
    bound_claims = [volume_claim(f"data-{index}", volume=f"disk-{index}") for index in range(3)]
    disks = [volume(f"disk-{index}", in_zone(f"zone-{index + 1}")) for index in range(3)]
    yield solve(
        "volume-zones",
        "Pods with volumes in three zones are spread over them",
        apart,
        bound_claims,
        disks,
        storage_class(),
    )
    least = [requirement(ZONE, "Exists", minValues=2)]
    for policy in ("Strict", "BestEffort"):
        yield solve(
            "volume-zones",
            f"A volume leaves fewer zones than minValues: {policy}",
            WEB,
            volume_claim(volume="disk"),
            volume("disk", in_zone("zone-3")),
            storage_class(),
            node_pool(requirements=least),
            minValuesPolicy=policy,
        )
    key = {"matchLabelExpressions": [{"key": "example.com/rack", "values": ["one"]}]}
    yield about("A class of racks", WEB, volume_claim(), storage_class(allowedTopologies=[key]))


def _ephemeral_pod(of: str | None, name: str = "web") -> Document:
    spec = {} if of is None else {"storageClassName": of}
    document = pod(name)
    document["spec"]["volumes"] = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}]
    return document


def _ephemeral() -> Iterator[Question]:
    default = {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
    wide, narrow = storage_class("wide"), storage_class("narrow", "zone-2")
    yield solve("ephemeral", "A volume of a class", _ephemeral_pod("narrow"), wide, narrow)
    yield solve(
        "ephemeral",
        "A volume of the default class",
        _ephemeral_pod(None),
        wide,
        storage_class("usual", "zone-3", metadata=default),
    )
    yield solve("ephemeral", "A volume without a class where there is no default", _ephemeral_pod(None), wide)
    yield solve("ephemeral", "A volume of a class that is not there", _ephemeral_pod("none"), wide)
    yield solve(
        "ephemeral",
        "A volume of a class in a zone that the NodePool excludes",
        _ephemeral_pod("narrow"),
        narrow,
        node_pool(requirements=[in_zone("zone-1")]),
    )
    older = storage_class("older", "zone-1", metadata=default | {"creationTimestamp": ago(9000)})
    newer = storage_class("newer", "zone-2", metadata=default | {"creationTimestamp": ago(900)})
    yield solve("ephemeral", "Of two default classes the newer one counts", _ephemeral_pod(None), older, newer)
    own_claim = volume_claim("web-scratch", of="narrow")
    yield solve("ephemeral", "Its claim has been made", _ephemeral_pod("narrow"), narrow, own_claim)
    bound_claim = volume_claim("web-scratch", of="narrow", volume="disk")
    yield solve(
        "ephemeral",
        "Its claim is bound",
        _ephemeral_pod("narrow"),
        narrow,
        bound_claim,
        volume("disk", in_zone("zone-3")),
    )


def _limits() -> Iterator[Question]:
    def with_claims(count: int, per_pod: int = 1) -> list[Document]:
        documents = replicas(count, cpu="100m")
        for index, document in enumerate(documents):
            document["spec"] |= mounts(*(f"data-{index}-{number}" for number in range(per_pod)))
        return [
            *documents,
            *(volume_claim(f"data-{index}-{number}") for index in range(count) for number in range(per_pod)),
        ]

    ready = machine("old", 4)
    yield solve(
        "volume-limits",
        "A node takes as many volumes as its driver says",
        with_claims(3),
        ready,
        csi_node("old", 2),
        storage_class(),
        types=SIZES,
    )
    yield solve(
        "volume-limits",
        "A driver without a limit",
        with_claims(3),
        ready,
        csi_node("old", None),
        storage_class(),
        types=SIZES,
    )
    yield solve("volume-limits", "A node whose driver is unknown", with_claims(3), ready, storage_class(), types=SIZES)
    yield solve(
        "volume-limits",
        "Pods with several volumes each",
        with_claims(3, 2),
        ready,
        csi_node("old", 4),
        storage_class(),
        types=SIZES,
    )
    objects = [*replicas(4, cpu="100m", **mounts("data")), volume_claim()]
    yield solve(
        "volume-limits", "Pods that share one claim", objects, ready, csi_node("old", 1), storage_class(), types=SIZES
    )
    running = [pod("old", node="old", **mounts("data")), volume_claim(volume="disk"), volume()]
    yield solve(
        "volume-limits",
        "Volumes of running pods count",
        with_claims(2),
        running,
        ready,
        csi_node("old", 2),
        storage_class(),
        types=SIZES,
    )
    yield solve(
        "volume-limits",
        "A pod whose volume is there already",
        [pod("new", cpu="100m", **mounts("data")), *running],
        ready,
        csi_node("old", 1),
        storage_class(),
        types=SIZES,
    )
    other_driver = csi_node("old", 1)
    other_driver["spec"]["drivers"][0]["name"] = f"other.{DRIVER}"
    yield solve(
        "volume-limits",
        "The limit of another driver does not count",
        with_claims(3),
        ready,
        other_driver,
        storage_class(),
        types=SIZES,
    )
    yield solve(
        "volume-limits",
        "A node of nobody has limits, too",
        with_claims(3),
        node("own", cpu="8"),
        csi_node("own", 1),
        storage_class(),
        types=SIZES,
    )
    files = [volume_claim(of="", volume="disk"), volume(source={"nfs": {"server": "files", "path": "/"}})]
    yield solve(
        "volume-limits",
        "Volumes of a file server have no limit",
        replicas(3, cpu="100m", **mounts("data")),
        files,
        ready,
        csi_node("old", 1),
        types=SIZES,
    )
    in_tree = volume(source={"awsElasticBlockStore": {"volumeID": "vol"}})
    migrated = csi_node("old", 1)
    migrated["spec"]["drivers"][0]["name"] = "ebs.csi.aws.com"
    old_class = storage_class(provisioner="kubernetes.io/aws-ebs")
    claims = [volume_claim("data-0-0", volume="disk"), volume_claim("data-1-0")]
    yield solve(
        "volume-limits",
        "A volume of a plugin that became a driver counts for the driver",
        with_claims(2)[:2],
        claims,
        in_tree,
        ready,
        migrated,
        old_class,
        types=SIZES,
    )
