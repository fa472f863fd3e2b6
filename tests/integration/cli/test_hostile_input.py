"""What people with bad intentions, or bad luck, give to commands as files: one line each, status 1, little time."""

import gzip
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from podium.cli.main import main

_CLUSTER = """
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}
"""
_POD = """
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: a, image: x}]}
"""


def _multiplying(line):
    """Within an object: ten lines, each ten times the one before."""
    lines = "  a0: &a0 {k0: 1, k1: 2}\n"
    for n in range(1, 10):
        lines += line(n, ",".join([f"*a{n - 1}"] * 10))
    return f"apiVersion: v1\nkind: Pod\nmetadata:\n  name: x\nspec:\n{lines}"


_HOSTILE = {
    "aliases": _multiplying(lambda n, previous: f"  a{n}: &a{n} [{previous}]\n"),
    "merge-keys": _multiplying(lambda n, previous: f"  a{n}: &a{n}\n    <<: [{previous}]\n"),
    "an-anchor-in-itself": "apiVersion: v1\nkind: Pod\nmetadata: &m\n  name: x\n  labels: *m\n",
    "deep-flow": "{apiVersion: v1, kind: Pod, spec: " + "[" * 100_000 + "]" * 100_000 + "}",
    "deep-blocks": "- " * 100_000 + "x",
    "deep-json": '{"apiVersion": "v1", "kind": "Pod", "spec": ' + "[" * 100_000 + "]" * 100_000 + "}",
    "lists-of-lists": '{"apiVersion":"v1","kind":"List","items":[' * 400 + "]}" * 400,
    "an-integer-as-a-key": "{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {" + "9" * 5000 + ": [}}",
    "an-integer": "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {priority: " + "9" * 5000 + "}",
    "a-hexadecimal-integer": "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {priority: 0x" + "f" * 5000 + "}",
    "an-integer-in-json": '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"},"spec":{"priority":'
    + "9" * 5000
    + "}}",
    "binary": bytes(range(256)) * 16,
    "nuls": b"\0" * 5000,
    "a-torn-archive": gzip.compress(bytes(range(256)) * 100)[:200],
    "a-spoilt-archive": gzip.compress(b"x" * 10_000)[:20] + b"spoilt" * 20,
    "a-tag": 'apiVersion: v1\nkind: Pod\nmetadata: !!python/object/apply:os.system ["true"]\n',
    "escapes": 'apiVersion: v1\nkind: "\\e[2J\\e[31mPod"\nmetadata: {name: 5, labels: 3}\nitems: 3\nspec: "\\e[2J"\n',
}
_EXAMPLES = Path(__file__).parents[3] / "examples" / "karmada"
_COMMANDS = {
    "evaluate-pod": "evaluate -f cluster.yaml --pod hostile",
    "evaluate-cluster": "evaluate -f hostile --pod pod.yaml",
    "evaluate-config": "evaluate -f cluster.yaml --pod pod.yaml --config hostile",
    "config-check": "config check hostile",
    "config-effective": "config effective hostile",
    "estimate-workload": "estimate -f cluster.yaml --workload hostile",
    "estimate-cluster": "estimate -f hostile --requests cpu=1",
    "estimate-cluster-object": "estimate -f cluster.yaml --requests cpu=1 --cluster-object hostile",
    "estimate-kubeconfig": "estimate --kubeconfig hostile --requests cpu=1",
    "estimator": "estimator serve --kubeconfig hostile",
    "estimator-summary": "estimator summary -f hostile",
    "divide-binding": f"divide -f hostile --clusters {_EXAMPLES}/clusters.yaml",
    "divide-clusters": f"divide -f {_EXAMPLES}/web.yaml --clusters hostile",
    "divide-member": f"divide -f {_EXAMPLES}/web.yaml --member m=hostile",
    "plan-cluster": "plan -f hostile --adopt-nodes",
    "plan-add": "plan -f cluster.yaml --adopt-nodes --add hostile",
    "plan-catalogue": "plan -f cluster.yaml --adopt-nodes --catalogue hostile",
    "provisioner-node-pools": "provisioner run --node-pools hostile",
    "run-config": "run --config hostile",
}


@pytest.fixture(autouse=True)
def _files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cluster.yaml").write_text(_CLUSTER)
    (tmp_path / "pod.yaml").write_text(_POD)


@pytest.mark.parametrize("hostile", _HOSTILE)
@pytest.mark.parametrize("command", _COMMANDS)
def test_a_hostile_file_ends_a_command_with_one_line(command, hostile, tmp_path):
    content = _HOSTILE[hostile]
    (tmp_path / "hostile").write_bytes(content if isinstance(content, bytes) else content.encode())
    began_s = time.process_time()
    result = CliRunner().invoke(main, _COMMANDS[command].split())
    assert time.process_time() - began_s < 20
    assert isinstance(result.exception, SystemExit), result.exception
    # To the check, a file that is no configuration is an answer.
    assert result.exit_code in ((1, 3) if command == "config-check" else (1,))
    lines = result.stderr.splitlines()
    if "config" not in command or "kubeconfig" in command:
        assert len(lines) == 1, lines
    assert lines
    assert all(len(line) < 1000 and line.isprintable() for line in lines), lines


@pytest.mark.parametrize("device", ["/dev/zero", "."])
@pytest.mark.parametrize("command", ["config-check", "estimate-kubeconfig", "estimator", "run-config"])
def test_a_device_or_a_directory_is_no_configuration(command, device):
    result = CliRunner().invoke(main, _COMMANDS[command].replace("hostile", device).split())
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert "File too large" in line or "irectory" in line
