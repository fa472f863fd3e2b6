"""The manifests of deploy/fleets fit the command, and the .proto file is that of the service."""

from pathlib import Path
from random import Random

import pytest
import yaml

from podium.cli.clusters_serve import serve
from podium.client.credentials import load
from podium.client.informer_set import InformerSet
from podium.client.session import ApiSession
from podium.estimator.accurate import Rules
from podium.fleets.server.messages import proto_text
from podium.fleets.server.watched import WatchedCluster
from podium.lib.clock import ManualClock

DEPLOY = Path(__file__).parents[4] / "deploy" / "fleets"


def _documents(name):
    return list(yaml.safe_load_all((DEPLOY / name).read_text()))


def test_deployment_gives_flags_that_there_are_and_mounts_what_they_name():
    _, deployment = _documents("deployment.yaml")
    template = deployment["spec"]["template"]["spec"]
    (container,) = template["containers"]
    command, subcommand, *flags = container["args"]
    assert (command, subcommand) == ("clusters", "serve")
    options = {option for parameter in serve.params for option in parameter.opts}
    assert {flag.partition("=")[0] for flag in flags} <= options
    mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert "--kubeconfig-dir=/etc/members" in flags
    assert mounts == {"/etc/members"}


def test_service_leads_to_the_deployment():
    service, deployment = _documents("deployment.yaml")
    template = deployment["spec"]["template"]
    ports = {port["name"] for port in template["spec"]["containers"][0]["ports"]}
    assert service["spec"]["selector"].items() <= template["metadata"]["labels"].items()
    assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports


@pytest.mark.anyio
async def test_role_in_a_member_is_what_is_read():
    rules = _documents("member-rbac.yaml")[0]["rules"]
    assert all(rule["verbs"] == ["list", "watch"] for rule in rules)
    grants = {(group, name) for rule in rules for group in rule["apiGroups"] for name in rule["resources"]}
    clock = ManualClock()
    session = ApiSession(await load(None, clock, master="http://127.0.0.1:1"))
    informers = InformerSet(session, clock=clock, random=Random(1))
    member = WatchedCluster("m1", session, informers, Rules(), clock)
    assert grants == {(resource.group, resource.plural) for resource in member.resources}


def test_proto_file_is_that_of_the_service():
    assert (DEPLOY / "fleets.proto").read_text().endswith(proto_text())
