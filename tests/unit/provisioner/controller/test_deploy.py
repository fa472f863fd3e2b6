"""The Deployment in deploy/provisioner fits the command and the account."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from podium.cli.provisioner import run

DEPLOY = Path(__file__).parents[4] / "deploy" / "provisioner"

Json = dict[str, Any]


def manifest(file: str, kind: str) -> Json:
    documents: list[Json] = [
        document for document in yaml.safe_load_all((DEPLOY / file).read_text()) if document["kind"] == kind
    ]
    [only] = documents
    return only


def test_the_deployment_runs_the_command_under_the_account() -> None:
    template = manifest("deployment.yaml", "Deployment")["spec"]["template"]["spec"]
    [container] = template["containers"]
    assert container["args"][:2] == ["provisioner", "run"]
    flags = {flag for parameter in run.params for flag in parameter.opts}
    assert {argument.partition("=")[0] for argument in container["args"][2:]} <= flags
    assert template["serviceAccountName"] == manifest("rbac.yaml", "ServiceAccount")["metadata"]["name"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    defaults = {parameter.name: parameter.default for parameter in run.params}
    assert f":{ports['health']}" == defaults["health_address"]
    assert f":{ports['metrics']}" == defaults["metrics_address"]
    for probe in ("livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["port"] == "health"
