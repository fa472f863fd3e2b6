"""Artifacts of an image registry as a layout of files in one archive, by the OCI image specification 1.1."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from release.archives import DIRECTORY_MODE, Member, compress, tar

Json = dict[str, Any]

MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
INDEX: Final = "application/vnd.oci.image.index.v1+json"
IMAGE_CONFIG: Final = "application/vnd.oci.image.config.v1+json"
REFERENCE: Final = "org.opencontainers.image.ref.name"
CONTAINERD_NAME: Final = "io.containerd.image.name"
"""The name under which containerd imports an entry. Without it, containerd makes one of the date and the tag."""
LAYER: Final = "application/vnd.oci.image.layer.v1.tar+gzip"


def digest(content: bytes) -> str:
    """Return the content's digest as registries write it."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


class Layout:
    """The blobs of an artifact, each below its digest."""

    def __init__(self) -> None:
        self._blobs: dict[str, bytes] = {}

    def add(self, content: bytes, media_type: str) -> Json:
        """Add a blob, and return its descriptor."""
        self._blobs[digest(content)] = content
        return {"mediaType": media_type, "digest": digest(content), "size": len(content)}

    def add_json(self, value: Json, media_type: str) -> Json:
        """Add a document, and return its descriptor."""
        return self.add(_encoded(value), media_type)

    def add_manifest(self, config: Json, layers: list[Json], annotations: Json) -> Json:
        """Add the manifest of a config and layers, which are descriptors, and return its descriptor."""
        manifest = {"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers}
        return self.add_json({**manifest, "annotations": annotations}, MANIFEST)

    def write(
        self, archive: Path, entries: Mapping[str, Json], names: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """Write the layout of these entries by tag.

        Args:
            names: by tag, the full name of an image with registry and tag, for containerd.
        """
        annotations = {
            tag: {REFERENCE: tag} | ({CONTAINERD_NAME: names[tag]} if tag in names else {}) for tag in entries
        }
        tagged = [{**entry, "annotations": annotations[tag]} for tag, entry in entries.items()]
        index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": tagged}
        members = [
            Member("oci-layout", _encoded({"imageLayoutVersion": "1.0.0"})),
            Member("index.json", _encoded(index)),
            Member("blobs", None, DIRECTORY_MODE),
            Member("blobs/sha256", None, DIRECTORY_MODE),
            *(Member(f"blobs/{name.replace(':', '/')}", content) for name, content in sorted(self._blobs.items())),
        ]
        archive.write_bytes(tar(members))


class ImageLayer:
    """A compressed layer of an image, and the digest of what is compressed."""

    def __init__(self, members: list[Member]) -> None:
        content = tar(members)
        self.diff_id = digest(content)
        self.compressed = compress(content)


def _encoded(value: Json) -> bytes:
    return json.dumps(value, indent=1, sort_keys=True).encode() + b"\n"
