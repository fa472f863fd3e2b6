"""Which binaries make up the control plane, which versions are taken, and how each one tells its version.

The Go module beside this file is the only place that names versions: they are read from its `go.mod`. Other modules
name other versions of some of the tools.
"""

from __future__ import annotations

import hashlib
import platform
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

GO_MODULE_DIR = Path(__file__).parent / "go"


@dataclass(frozen=True, slots=True)
class Tool:
    """One binary: its file name, the Go package it is built from, and how to ask for its version."""

    name: str
    package: str
    module: str
    version_args: tuple[str, ...] = ("--version",)


TOOLS = (
    Tool("etcd", "go.etcd.io/etcd/server/v3", "go.etcd.io/etcd/server/v3"),
    Tool("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver", "k8s.io/kubernetes"),
    Tool("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager", "k8s.io/kubernetes"),
    Tool("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler", "k8s.io/kubernetes"),
    Tool("kubectl", "k8s.io/kubernetes/cmd/kubectl", "k8s.io/kubernetes", ("version", "--client")),
)

# kubectl carries its version in client-go, the servers in component-base.
_VERSION_PACKAGES = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")


def required_version(tool: Tool, module: Path = GO_MODULE_DIR) -> str:
    """The exact version a module's `go.mod` asks for, without the leading v, such as `1.36.2`."""
    return _match(rf"^(?:\t|require ){re.escape(tool.module)} v(\S+)(?: //.*)?$", (module / "go.mod").read_text())


def kubernetes_version(module: Path = GO_MODULE_DIR) -> str:
    """The version of the Kubernetes binaries that a module builds, without the leading v."""
    return required_version(next(tool for tool in TOOLS if tool.name == "kube-apiserver"), module)


def required_go(module: Path = GO_MODULE_DIR) -> tuple[int, ...]:
    """The oldest Go release that can build a module, such as (1, 26, 0)."""
    return release(_match(r"^go (\S+)$", (module / "go.mod").read_text()))


def release(version: str) -> tuple[int, ...]:
    """The numbers of a version: `1.36.2-rc.1` is (1, 36, 2)."""
    numbers = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(part) for part in numbers.group().split(".")) if numbers else ()


def reported_version(tool: Tool, path: Path) -> str | None:
    """What the binary says its version is, or None when it cannot be run or says nothing of the kind."""
    try:
        answer = subprocess.run([path, *tool.version_args], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r"\bv?(\d+\.\d+\.\d+\S*)", answer.stdout)
    return match.group(1) if answer.returncode == 0 and match else None


def is_acceptable(tool: Tool, version: str | None) -> bool:
    """Whether a binary somebody else installed may be used: the same minor release as `go.mod` names."""
    return version is not None and release(version)[:2] == release(required_version(tool))[:2]


def build_flags(module: Path = GO_MODULE_DIR) -> tuple[str, ...]:
    """Flags of `go build`. They decide what comes out, so they are part of the cache key."""
    version = kubernetes_version(module)
    major, minor = release(version)[:2]
    stamps = {
        "gitVersion": f"v{version}",
        "gitMajor": str(major),
        "gitMinor": str(minor),
        "gitTreeState": "clean",
    }
    linker = ["-s", "-w"]
    linker += [f"-X={package}.{key}={text}" for package in _VERSION_PACKAGES for key, text in stamps.items()]
    return ("-mod=readonly", "-buildvcs=false", "-trimpath", f"-ldflags={' '.join(linker)}")


def cache_key() -> str:
    """Names one build: the Kubernetes version, and a hash of all that could change the binaries."""
    content = hashlib.sha256()
    for part in ("go.mod", "go.sum"):
        content.update((GO_MODULE_DIR / part).read_bytes())
    content.update(repr((TOOLS, build_flags(), platform.system(), platform.machine())).encode())
    return f"v{kubernetes_version()}-{content.hexdigest()[:12]}"


def _match(pattern: str, text: str) -> str:
    match = re.search(pattern, text, re.MULTILINE)
    assert match is not None, f"go.mod has no line like {pattern}"
    return match.group(1)
