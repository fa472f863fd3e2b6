"""The last release and this tree side by side, in the small; `make upgrade` tries 5,000 pods."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.sandbox import Sandbox
from tests.control_plane.client import Client
from tests.e2e.cluster import SandboxCluster
from tests.upgrade.trial import BEFORE, NOW, ROOT, Trial, has_commit, last_release, replay_all, unpack

pytestmark = pytest.mark.anyio

_PODS = 300


@pytest.mark.skipif(not has_commit(last_release()), reason="a clone without the history of the last release")
async def test_versions_take_turns_and_every_pod_is_bound_once(tmp_path: Path) -> None:
    versions = {BEFORE: unpack(last_release(), tmp_path / "before"), NOW: ROOT}
    async with Sandbox() as sandbox, Client(sandbox.url) as admin:
        cluster = SandboxCluster(admin, sandbox.write_kubeconfig(tmp_path / "kubeconfig"), sandbox)
        trial = Trial(cluster, tmp_path, versions, _PODS)
        await trial.run()
    assert [version for version, _ in trial.lives] == [BEFORE, NOW, BEFORE, NOW]
    assert replay_all(trial) == 2
