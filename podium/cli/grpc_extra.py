"""The import of gRPC, which only commands with the extra `estimator` need."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click


@contextmanager
def importing_grpc(*, serves: bool) -> Iterator[None]:
    """Set gRPC up for what is imported within the context.

    Args:
        serves: for a server, which refuses TLS 1.2.

    Raises:
        click.ClickException: the extra is not installed.
    """
    from podium.estimator.server.tls13 import keep_quiet, refuse_tls12

    # gRPC's C core reads its settings from the environment when it is imported.
    keep_quiet()
    if serves:
        refuse_tls12()
    try:
        yield
    except ImportError as error:
        raise click.ClickException(
            f"this needs podium[estimator], in a clone pip install -r requirements/estimator.lock: {error}"
        ) from error
