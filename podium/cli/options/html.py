"""The option `--html` of commands whose answer can be a page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from podium.cli.pages.sections import Page


def html_option(content: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the option.

    Args:
        content: the content of the page, for the help.
    """
    return click.option(
        "--html",
        type=click.Path(path_type=Path),
        callback=_check_writable,
        metavar="FILE",
        help=f"Write a page into this file: {content}. It loads nothing.",
    )


def _check_writable(context: click.Context, parameter: click.Parameter, file: Path | None) -> Path | None:
    """Refuse a file that cannot be written, before the work begins. Raises: click.ClickException."""
    del parameter
    if file is None or context.resilient_parsing:
        return file
    is_new = not file.exists()
    try:
        file.open("ab").close()
    except OSError as error:
        raise click.ClickException(f"--html: {file}: {error.strerror}") from None

    def clean_up() -> None:
        if is_new and file.is_file() and not file.stat().st_size:
            file.unlink()

    context.call_on_close(clean_up)
    return file


def write_page(file: Path, page: Page) -> None:
    """Write the page. Raises: click.ClickException if it cannot be written."""
    import podium
    from podium.cli.pages.document import document

    try:
        file.write_bytes(document(page, podium.__version__))
    except OSError as error:
        raise click.ClickException(f"--html: {file}: {error.strerror}") from None
