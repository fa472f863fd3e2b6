"""The contexts of a kubeconfig, each of which is a member cluster to commands about many clusters."""

from __future__ import annotations

from pathlib import Path

import click


def contexts_of(kubeconfig: str) -> list[str]:
    """Return the names of the contexts.

    Raises:
        click.ClickException: the kubeconfig cannot be read.
    """
    from podium.client.kubeconfig import KubeconfigError, context_names

    try:
        return context_names(Path(kubeconfig))
    except KubeconfigError as error:
        raise click.ClickException(f"kubeconfig {kubeconfig}: {error}") from error
