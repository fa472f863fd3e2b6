"""The archive and the manifest with which krew installs `kubectl podium`."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import yaml

import podium
from release.archives import Member, compress, tar
from release.single_file import PYTHONS, Target


def plugin_archive(command: Path, licence: Path) -> Path:
    """Write an archive of the executable and the licence beside the executable."""
    archive = command.with_suffix(".tar.gz")
    members = [
        Member("kubectl-podium", command.read_bytes(), 0o755),
        Member("LICENSE", licence.read_bytes()),
    ]
    archive.write_bytes(compress(tar(members)))
    return archive


def krew_manifest(archives: Mapping[Target, Path], url: str) -> str:
    """The manifest for these archives, which will be served below the URL."""
    manifest = {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": "podium"},
        "spec": {
            "version": f"v{podium.__version__}",
            "homepage": url,
            "shortDescription": "Ask where pods go, why, and how many fit",
            "description": (
                "Runs kube-scheduler's own decisions on your cluster or on a dump of it: where a pod would go,\n"
                "how many replicas fit, which nodes to buy. It never writes to the cluster unless you run it as\n"
                "a scheduler.\n"
            ),
            "caveats": f"Needs python3, one of {', '.join(PYTHONS)}.\n",
            "platforms": [
                {
                    "selector": {"matchLabels": {"os": target.system, "arch": target.machine}},
                    "uri": f"{url}/v{podium.__version__}/{archive.name}",
                    "sha256": hashlib.sha256(archive.read_bytes()).hexdigest(),
                    "bin": "kubectl-podium",
                    "files": [{"from": "kubectl-podium", "to": "."}, {"from": "LICENSE", "to": "."}],
                }
                for target, archive in archives.items()
            ],
        },
    }
    return yaml.safe_dump(manifest, sort_keys=False)
