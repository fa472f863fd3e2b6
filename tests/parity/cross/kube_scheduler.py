"""The kube-scheduler binary, asked what it makes of a configuration file."""

from __future__ import annotations

import json
import subprocess
import tempfile
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


class NoVerdictError(Exception):
    """kube-scheduler has not ended."""


def verdict(binary: Path, text: str) -> Verdict:
    """Return upstream's verdict on the file, with a kubeconfig for a server that is not there; it asks none.

    Raises: NoVerdictError.
    """
    with tempfile.TemporaryDirectory(prefix="podium-parity-") as name:
        directory = Path(name)
        (directory / "kubeconfig").write_text(_NOWHERE)
        config, effective, log = (directory / name for name in ("config.yaml", "effective.yaml", "log"))
        config.write_text(_with_kubeconfig(text, directory / "kubeconfig"))
        command = [str(binary), f"--config={config}", f"--write-config-to={effective}", "--secure-port=0"]
        with log.open("w") as stderr:
            try:
                # It ends after it has written the whole file, too.
                subprocess.run(command, stdout=stderr, stderr=stderr, timeout=_ANSWER_S_MAX, check=False)
            except subprocess.TimeoutExpired as error:
                raise NoVerdictError from error
        if effective.exists():
            return Verdict(yaml.safe_load(effective.read_text()))
        return Verdict(None, error_in(log.read_text()))


def _with_kubeconfig(text: str, kubeconfig: Path) -> str:
    document = yaml.safe_load(text)
    client: Any = document.setdefault("clientConnection", {})
    if not isinstance(client, dict):
        return text
    client["kubeconfig"] = str(kubeconfig)
    return yaml.safe_dump(document, sort_keys=False)


def error_in(log: str) -> str:
    """Why kube-scheduler has ended, from what it logs."""
    _, separator, error = log.rpartition(_FAILED)
    if not separator:
        return log
    error = error.strip()
    return str(json.loads(error)) if error.startswith('"') else error
