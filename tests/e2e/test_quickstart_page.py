"""The commands of docs/quickstart.md, one after the other as they stand there, against a real API server.

Those of kind and docker need a container runtime. What they must agree on with the rest is checked instead: names of
the image, and the archive's annotation by which containerd, and so kind, names what it imports.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Final

import pytest

import podium
from release.image import full_name
from tests.control_plane.locate import Binaries
from tests.e2e.cluster import RealCluster
from tests.e2e.conftest import StartDaemon
from tests.e2e.shown import ROOT, Shell, shown_in
from tests.helm.chart import Helm
from tests.manifests import node

PAGE: Final = "docs/quickstart.md"
NOT_RUN: Final = re.compile("kind |docker |make |kubectl -n kube-system rollout")
"""No container runtime, and no kubelet that runs the Deployment's pods. test_demo.py runs the demo."""


def arguments_of(program: str) -> list[list[str]]:
    commands = [shlex.split(command, comments=True) for command in shown_in(PAGE)]
    return [words[1:] for words in commands if words[0] == program]


def option(words: list[str], name: str) -> str:
    return words[words.index(name) + 1]


@pytest.mark.anyio
@pytest.mark.control_plane
async def test_the_page_leads_from_the_chart_to_a_bound_pod_and_the_reason_of_a_pending_one(
    own_cluster: RealCluster, control_plane_binaries: Binaries, helm: Helm, start: StartDaemon, tmp_path: Path
) -> None:
    cluster = own_cluster
    programs = {"kubectl": control_plane_binaries["kubectl"], "helm": helm.binary}
    shell = Shell(tmp_path / "home", cluster.kubeconfig, ROOT, programs)
    await cluster.create(node("kind", cpu="4"))
    await start(cluster)
    install, apply, pods, events, huge, why, fix = (command for command in shown_in(PAGE) if not NOT_RUN.match(command))
    assert "STATUS: deployed" in await shell.run(install)
    deployment = json.loads(await shell.run("kubectl -n kube-system get deployment podium -o json"))
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    ((_, *build_arguments),) = [words for words in arguments_of("docker") if words[0] == "build"]
    assert container["image"] == option(build_arguments, "-t")
    # A node that has the image must not ask a registry for it.
    assert container["imagePullPolicy"] == "IfNotPresent"
    await shell.run(apply)
    await cluster.wait_bound(["podium-one"])
    assert "kind" in await shell.run(pods)
    await cluster.wait_events("Scheduled", 1)
    assert "podium" in await shell.run(events)
    await shell.run(huge)
    await cluster.wait_condition("huge")
    assert "Insufficient cpu" in await shell.run(why)
    assert "cpu" in await shell.run(fix)


def test_kind_loads_the_image_that_was_built_into_the_cluster_that_was_created() -> None:
    create, *loads, delete = arguments_of("kind")
    assert create[:2] == ["create", "cluster"]
    assert delete[:2] == ["delete", "cluster"]
    assert {option(words, "--name") for words in (create, *loads, delete)} == {"podium"}
    image, archive = (words for words in loads)
    ((_, *build_arguments),) = [words for words in arguments_of("docker") if words[0] == "build"]
    assert image[:3] == ["load", "docker-image", option(build_arguments, "-t")]
    assert archive[:3] == ["load", "image-archive", f"dist/podium-{podium.__version__}-image.oci.tar"]


@pytest.mark.control_plane
def test_an_archive_that_kind_loads_names_its_images_as_the_chart_does(helm: Helm) -> None:
    """A kubelet reads `podium:0.6.0` as `docker.io/library/podium:0.6.0`, the name that the archive gives."""
    members = {"enabled": True, "members": ["east"]}
    rendered = helm.text({"estimator": members, "fleets": {"enabled": True}, "provisioner": {"enabled": True}})
    images = set(re.findall(r"^ +image: (\S+)$", rendered, re.MULTILINE))
    version = podium.__version__
    assert {f"docker.io/library/{image}" for image in images} == {full_name(version), full_name(f"{version}-estimator")}
    assert full_name(f"{version}-otel") == f"docker.io/library/podium-otel:{version}"
