"""The manifests of deploy/estimator fit the command and each other."""

from pathlib import Path

import yaml

from podium.cli.estimator import serve
from podium.estimator.member import READ

DEPLOY = Path(__file__).parents[4] / "deploy" / "estimator"


def _documents(name):
    return list(yaml.safe_load_all((DEPLOY / name).read_text()))


def test_deployment_gives_flags_that_there_are_and_mounts_what_they_name():
    template = _documents("deployment.yaml")[0]["spec"]["template"]["spec"]
    (container,) = template["containers"]
    command, subcommand, *flags = container["args"]
    assert (command, subcommand) == ("estimator", "serve")
    known = {option for parameter in serve.params for option in parameter.opts}
    mounts = [mount["mountPath"] for mount in container["volumeMounts"]]
    for flag in flags:
        name, _, value = flag.partition("=")
        assert name in known
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


def test_role_in_a_member_is_what_is_read():
    rules = _documents("member-rbac.yaml")[0]["rules"]
    allowed = {(group, name) for rule in rules for group in rule["apiGroups"] for name in rule["resources"]}
    assert allowed == {(resource.group, resource.plural) for resource in READ}
    assert all(rule["verbs"] == ["list", "watch"] for rule in rules)
