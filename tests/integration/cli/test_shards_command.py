"""`podium shards` against the sandbox."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from click.testing import CliRunner, Result

from podium.cli.shards import command
from podium.sandbox.embedded import Sandbox
from podium.shards import Announcement, owner
from podium.shards.announcement import GROUP_LABEL
from tests import manifests

BOTH = frozenset({"m1", "m2"})


def lease(member: str, holder: str = "host") -> dict[str, Any]:
    announcement = Announcement(member, manifests.ZONE, (BOTH,))
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": f"group-{member}",
            "namespace": "kube-system",
            "labels": {GROUP_LABEL: "group"},
            "annotations": announcement.annotations(),
        },
        # A time far ahead: no Lease runs out while the test waits for its turn.
        "spec": {
            "holderIdentity": holder,
            "leaseDurationSeconds": 15,
            "renewTime": "2999-01-01T00:00:00.000000Z",
        },
    }


async def ask(sandbox: Sandbox, directory: Path, *arguments: str) -> Result:
    file = str(sandbox.write_kubeconfig(directory / "kubeconfig"))
    invocation = partial(CliRunner().invoke, command, [*arguments, "--kubeconfig", file], env={"COLUMNS": "200"})
    return await anyio.to_thread.run_sync(invocation)


@pytest.mark.anyio
async def test_the_owners_of_all_nodes_are_shown(tmp_path: Path) -> None:
    async with Sandbox(kubelets=False) as sandbox:
        for item in (lease("m1"), lease("m2")):
            sandbox.store.create(item)
        for number in range(6):
            sandbox.store.create(manifests.node(f"n{number}", labels={manifests.ZONE: f"zone-{number}"}))
        as_json = await ask(sandbox, tmp_path, "group", "-o", "json")
        report = json.loads(as_json.output)
        owners = {name: member["member"] for member in report["members"] for name in member["nodes"]}
        assert owners == {f"n{number}": owner(f"zone-{number}", BOTH) for number in range(6)}
        assert (report["apiVersion"], report["unowned"]) == ("podium/v1alpha1", [])
        table = await ask(sandbox, tmp_path, "group")
        assert "Every node has a member" in table.output
        assert [line.split()[:2] for line in table.output.splitlines() if line.strip()[:1] == "m"] == [
            ["m1", "alive"],
            ["m2", "alive"],
        ]


@pytest.mark.anyio
async def test_a_group_without_members_is_an_error_that_names_it(tmp_path: Path) -> None:
    async with Sandbox(kubelets=False) as sandbox:
        result = await ask(sandbox, tmp_path, "nobody")
        assert result.exit_code == 1
        assert "no Lease in kube-system belongs to a member of the group nobody" in result.output
