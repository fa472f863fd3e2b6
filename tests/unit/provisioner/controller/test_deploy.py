"""The manifests of deploy/provisioner fit the command and each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from podium.cli.provisioner import run
from podium.provisioner.controller.app import Options
from podium.provisioner.controller.watched import WATCHED
from podium.provisioner.placing_planner import OTHERS

DEPLOY = Path(__file__).parents[4] / "deploy" / "provisioner"

Json = dict[str, Any]


def manifest(file: str, kind: str) -> Json:
    found: list[Json] = [each for each in yaml.safe_load_all((DEPLOY / file).read_text()) if each["kind"] == kind]
    [only] = found
    return only


def test_everything_that_is_watched_may_be_listed_and_watched() -> None:
    allowed = {
        (group, resource)
        for rule in manifest("rbac.yaml", "ClusterRole")["rules"]
        if {"list", "watch"} <= set(rule["verbs"])
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert allowed == {(each.group, each.plural) for each in (*WATCHED.values(), *OTHERS)}


def test_the_lease_and_the_status_have_the_name_that_the_role_allows() -> None:
    role = manifest("rbac.yaml", "Role")
    assert role["metadata"]["namespace"] == Options().namespace
    assert [rule["resourceNames"] for rule in role["rules"] if "resourceNames" in rule] == [[Options().name]] * 2


def test_the_deployment_runs_the_command_under_the_account() -> None:
    template = manifest("deployment.yaml", "Deployment")["spec"]["template"]["spec"]
    [container] = template["containers"]
    assert container["args"][:2] == ["provisioner", "run"]
    flags = {flag for parameter in run.params for flag in parameter.opts}
    assert {argument.partition("=")[0] for argument in container["args"][2:]} <= flags
    assert template["serviceAccountName"] == manifest("rbac.yaml", "ServiceAccount")["metadata"]["name"]
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    defaults = {each.name: each.default for each in run.params}
    assert f":{ports['health']}" == defaults["health_address"]
    assert f":{ports['metrics']}" == defaults["metrics_address"]
    for probe in ("livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["port"] == "health"
