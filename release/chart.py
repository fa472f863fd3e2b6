"""The Helm chart as an archive and as an artifact of an image registry (`helm install oci://…`)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import yaml

from release.archives import Member, compress, files_below, tar
from release.oci import Layout

_CONFIG: Final = "application/vnd.cncf.helm.config.v1+json"
_CONTENT: Final = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"


def write_chart(chart: Path, out: Path) -> tuple[Path, Path]:
    """Write the chart's archive and its layout; return both paths."""
    description = yaml.safe_load((chart / "Chart.yaml").read_text())
    name, version = description["name"], description["version"]
    # helm reads Chart.yaml first, and has no directories in its archives.
    members = [member for member in files_below(chart, f"{name}/") if member.content is not None]
    content = compress(tar(sorted(members, key=_description_first)))
    archive, layout = out / f"{name}-chart-{version}.tgz", Layout()
    archive.write_bytes(content)
    manifest = layout.add_manifest(
        layout.add_json(description, _CONFIG),
        [layout.add(content, _CONTENT)],
        {
            "org.opencontainers.image.title": name,
            "org.opencontainers.image.version": version,
            "org.opencontainers.image.description": description["description"],
        },
    )
    artifact = out / f"{name}-chart-{version}.oci.tar"
    layout.write(artifact, {version: manifest})
    return archive, artifact


def _description_first(member: Member) -> tuple[bool, str]:
    return not member.name.endswith("/Chart.yaml"), member.name
