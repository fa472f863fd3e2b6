"""The manifests of deploy/estimator fit the command and each other."""

from pathlib import Path
from random import Random

import pytest
import yaml

from podium.cli.estimator import serve
from podium.client.credentials import load
from podium.client.informer_set import InformerSet
from podium.client.session import ApiSession
from podium.estimator.accurate import Rules
from podium.estimator.member import Gates
from podium.estimator.server.live import LiveMember
from podium.lib.clock import ManualClock

DEPLOY = Path(__file__).parents[4] / "deploy" / "estimator"


def _documents(name):
    return list(yaml.safe_load_all((DEPLOY / name).read_text()))


def test_deployment_gives_flags_that_there_are_and_mounts_what_they_name():
    template = _documents("deployment.yaml")[0]["spec"]["template"]["spec"]
    (container,) = template["containers"]
    command, subcommand, *flags = container["args"]
    assert (command, subcommand) == ("estimator", "serve")
    options = {option for parameter in serve.params for option in parameter.opts}
    mounts = [mount["mountPath"] for mount in container["volumeMounts"]]
    for flag in flags:
        name, _, value = flag.partition("=")
        assert name in options
        assert any(value.startswith(mount) for mount in mounts)


def test_services_lead_to_the_deployment_by_the_names_that_karmada_looks_for():
    deployment = _documents("deployment.yaml")[0]
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    ports = {
        port["name"]: port["containerPort"] for port in deployment["spec"]["template"]["spec"]["containers"][0]["ports"]
    }
    for service in _documents("services.yaml"):
        assert service["metadata"]["name"] == f"karmada-scheduler-estimator-{service['metadata']['labels']['cluster']}"
        assert service["spec"]["selector"].items() <= labels.items()
        (port,) = service["spec"]["ports"]
        assert ports[port["targetPort"]] == port["port"] == 10352


def _grants(name):
    rules = _documents(name)[0]["rules"]
    assert all(rule["verbs"] == ["list", "watch"] for rule in rules)
    return {(group, name) for rule in rules for group in rule["apiGroups"] for name in rule["resources"]}


async def _read(*, is_accurate):
    clock, random = ManualClock(), Random(1)
    session = ApiSession(await load(None, clock, master="http://127.0.0.1:1"))
    informers = InformerSet(session, clock=clock, random=random)
    gates = Gates(resource_quota_estimate=True)
    live = LiveMember("m1", session, informers, gates, clock, random, rules=Rules() if is_accurate else None)
    return {(resource.group, resource.plural) for resource in live.resources}


@pytest.mark.anyio
async def test_roles_in_a_member_are_what_is_read():
    first, second = _grants("member-rbac.yaml"), _grants("member-rbac-accurate.yaml")
    assert first == await _read(is_accurate=False)
    assert not first & second
    assert first | second == await _read(is_accurate=True)
