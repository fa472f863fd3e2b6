"""The kube-scheduler binary, asked what it makes of a configuration file."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import yaml

from tests.parity.configured import Verdict

_NOWHERE: Final = """\
apiVersion: v1
kind: Config
clusters: [{name: nowhere, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: nobody, user: {}}]
contexts: [{name: nowhere, context: {cluster: nowhere, user: nobody}}]
current-context: nowhere
"""
_FAILED: Final = '"command failed" err='
_ANSWER_S_MAX: Final = 60.0
_POLL_S: Final = 0.01


class NoVerdictError(Exception):
    """kube-scheduler has neither written the configuration back nor ended."""


def verdict(binary: Path, text: str) -> Verdict:
    """What it makes of the file; it gets a kubeconfig for a server that is not there, and nothing is asked of one.

    Raises: NoVerdictError.
    """
    with tempfile.TemporaryDirectory(prefix="podium-parity-") as name:
        directory = Path(name)
        (directory / "kubeconfig").write_text(_NOWHERE)
        config, effective, log = (directory / each for each in ("config.yaml", "effective.yaml", "log"))
        config.write_text(_with_kubeconfig(text, directory / "kubeconfig"))
        command = [str(binary), f"--config={config}", f"--write-config-to={effective}", "--secure-port=0"]
        with log.open("w") as stderr, subprocess.Popen(command, stdout=stderr, stderr=stderr) as process:
            try:
                _wait_for_answer(process, effective)
            finally:
                process.kill()
        if _has_been_written(effective):
            return Verdict(yaml.safe_load(effective.read_text()))
        return Verdict(None, error_in(log.read_text()))


def _with_kubeconfig(text: str, kubeconfig: Path) -> str:
    document = yaml.safe_load(text)
    client: Any = document.setdefault("clientConnection", {})
    if not isinstance(client, dict):
        return text
    client["kubeconfig"] = str(kubeconfig)
    return yaml.safe_dump(document, sort_keys=False)


def _wait_for_answer(process: subprocess.Popen[bytes], effective: Path) -> None:
    """It goes on after it has written the configuration, in one piece."""
    ends_s = time.monotonic() + _ANSWER_S_MAX
    while process.poll() is None and not _has_been_written(effective):
        if time.monotonic() > ends_s:
            raise NoVerdictError
        time.sleep(_POLL_S)


def _has_been_written(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


def error_in(log: str) -> str:
    """Why kube-scheduler has ended, from what it logs."""
    _, found, error = log.rpartition(_FAILED)
    if not found:
        return log
    error = error.strip()
    return str(json.loads(error)) if error.startswith('"') else error
