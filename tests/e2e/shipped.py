"""What is shipped in deploy/, and a real cluster that has it."""

from __future__ import annotations

import functools
import itertools
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio.to_thread
import yaml

from tests.control_plane.client import Client
from tests.control_plane.locate import Binaries
from tests.e2e.cluster import RealCluster
from tests.e2e.waiting import eventually

Json = dict[str, Any]

DEPLOY = Path(__file__).parents[2] / "deploy"
ACCOUNT = ("kube-system", "podium")


def manifests(kind: str) -> list[Json]:
    documents = [item for file in sorted(DEPLOY.glob("*.yaml")) for item in yaml.safe_load_all(file.read_text())]
    return [item for item in documents if item["kind"] == kind]


def configuration() -> Json:
    [config_map] = manifests("ConfigMap")
    configuration: Json = yaml.safe_load(config_map["data"]["config.yaml"])
    return configuration


async def apply(cluster: RealCluster, binaries: Binaries, *flags: str) -> str:
    """What kubectl prints; it has to succeed, without a warning."""
    command = [binaries["kubectl"], "--kubeconfig", cluster.kubeconfig, "apply", *flags, "-f", f"{DEPLOY}/"]
    result = await anyio.to_thread.run_sync(
        lambda: subprocess.run(command, capture_output=True, text=True, check=False)
    )
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout


def grants() -> Iterator[tuple[str, str, str, str, str]]:
    """Group, resource, verb, namespace and name of everything the roles allow."""
    for role in (*manifests("ClusterRole"), *manifests("Role")):
        namespace = role["metadata"].get("namespace", "default")
        for rule in role["rules"]:
            for group, resource, verb in itertools.product(rule["apiGroups"], rule["resources"], rule["verbs"]):
                for name in rule.get("resourceNames", [""]):
                    yield group, resource, verb, namespace, name


async def may(
    account: Client, group: str, resource: str, verb: str, namespace: str = "default", name: str = ""
) -> bool:
    """What the API server says of the account's rights."""
    resource, _, subresource = resource.partition("/")
    attributes = {
        "group": group,
        "resource": resource,
        "subresource": subresource,
        "verb": verb,
        "namespace": namespace,
        "name": name,
    }
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    answer = await account.create("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
    return bool(answer["status"]["allowed"])


async def wait_granted(account: Client) -> None:
    """Until the API server has taken in all that the roles grant."""
    for right in grants():
        await eventually(functools.partial(may, account, *right))


async def shipped_token(cluster: RealCluster, binaries: Binaries) -> str:
    """Applies the manifests, and returns a token of their account that has its rights."""
    await apply(cluster, binaries)
    token = await cluster.admin.service_account_token(*ACCOUNT)
    async with Client(cluster.plane.url, token=token, tls=cluster.plane.ssl_context()) as account:
        await wait_granted(account)
    return token
