"""The provenance of a release: what was built, from what, and who says so."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Final

import podium
from podium.lib.provenance import PREDICATE_TYPE, STATEMENT_TYPE, PrivateKey, envelope
from release.debian import DebianPackage

_BUILD: Final = "urn:podium:make-release"


def write_provenance(
    out: Path, keys: list[PrivateKey], url: str, commit: str, locks: list[Path], packages: list[DebianPackage]
) -> None:
    """Write the provenance of all files in a folder beside them.

    Args:
        keys: sign it; without one it is not signed.
        url: where podium is published; may be empty.
        commit: that of the sources.
        locks: the files that name each Python package with its hash.
        packages: what is in the image of Debian.
    """
    dependencies: list[dict[str, Any]] = [
        {"name": "podium", **({"uri": f"git+{url}"} if url else {}), "digest": {"gitCommit": commit}},
        *({"name": lock.name, "digest": {"sha256": _sha256(lock)}} for lock in locks),
        *({"uri": package.purl, "digest": {"sha256": package.sha256}} for package in packages),
    ]
    statement = {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": file.name, "digest": {"sha256": _sha256(file)}} for file in sorted(out.iterdir())],
        "predicateType": PREDICATE_TYPE,
        "predicate": {
            "buildDefinition": {
                "buildType": f"{_BUILD}/v1",
                "externalParameters": {"version": podium.__version__, "commit": commit},
                "resolvedDependencies": dependencies,
            },
            "runDetails": {"builder": {"id": _BUILD}},
        },
    }
    (out / f"podium-{podium.__version__}.intoto.json").write_bytes(envelope(statement, keys))


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
