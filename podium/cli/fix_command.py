"""The command with which the live page of a running podium asks what would make a pod fit."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from podium.config import KubeSchedulerConfiguration

_TIME_LIMIT: Final = "1m"


def fix_command(
    kubeconfig: str | None,
    context: str | None,
    file: Path | None,
    plugins: Sequence[str],
    config: KubeSchedulerConfiguration,
) -> tuple[str, ...]:
    """Return the command that prints the answer as JSON at a lower priority, given a pod's namespace and name.

    A question has no feature gates, and no other address of the API server than the kubeconfig's.

    Args:
        kubeconfig, context, file, plugins: those of the running podium, as its command line has them.
        config: the configuration of the file, or podium's own without one.
    """
    # The child uses this process's module path: another interpreter would not find the modules of the single file.
    path = f"sys.path[:] = {sys.path!r}"
    code = f"import os, sys; {path}; os.nice(5); from podium.cli.main import main; sys.exit(main())"
    kubeconfig = kubeconfig or config.client_connection.kubeconfig
    options = {"--kubeconfig": kubeconfig, "--context": context, "--config": file and str(file.absolute())}
    given_options = [text for name, value in options.items() if value for text in (name, value)]
    return (
        *(sys.executable, "-c", code, "why", "--fix", "--output=json", f"--time-limit={_TIME_LIMIT}"),
        # The process that asks knows more than its Lease.
        *("--lease=", f"--decide-as={config.release.minor}", *given_options),
        *(f"--plugin={plugin}" for plugin in plugins),
    )
