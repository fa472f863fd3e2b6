"""`podium release verify`: checks that downloaded files are those of a release."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from podium.cli.exit_codes import EXIT_NO
from podium.cli.groups import CommandGroup
from podium.cli.output import TEXT, LinesException, output_option, print_value, say
from podium.lib.plurals import count_of

if TYPE_CHECKING:
    from podium.lib.provenance import PublicKey

_PROVENANCE: Final = "*.intoto.json"
_PROVENANCE_MAX: Final = 16 << 20
_KEY_MAX: Final = 1 << 20


class _NotAsPublished(LinesException):
    """The files differ from those of the release."""

    exit_code = EXIT_NO


@click.group(cls=CommandGroup)
def command() -> None:
    """Check the files of a release."""


@command.command()
@click.argument("directory", type=click.Path(path_type=Path), metavar="DIR")
@click.option(
    "--key",
    "key_file",
    type=click.Path(path_type=Path),
    required=True,
    help="The publisher's public key (PEM, Ed25519 or ECDSA).",
)
@output_option()
def verify(directory: Path, key_file: Path, output: str) -> None:
    """Check that the files in DIR are those of a release.

    The provenance in DIR must be signed with the key, and each file must have the digest stated there. Files that were
    changed, are missing or do not belong to the release are named, and the exit code is 3.
    """
    from podium.lib.bounded_read import read_file
    from podium.lib.provenance import ProvenanceError, read_public_key, verified_statement

    try:
        key: PublicKey = read_public_key(read_file(key_file, _KEY_MAX))
    except (ProvenanceError, OSError) as error:
        raise click.ClickException(f"{key_file}: {getattr(error, 'strerror', None) or error}") from error
    provenance = _provenance_in(directory)
    try:
        statement = verified_statement(provenance.read_bytes(), key)
        digests = _digests(statement)
    except ProvenanceError as error:
        raise click.ClickException(f"{provenance}: {error}") from error
    problems = _problems(directory, digests, provenance.name)
    if problems:
        raise _NotAsPublished(problems)
    if output == TEXT:
        say(f"{count_of(len(digests), 'file')} as published, signed with {key_file}")
    else:
        print_value({"files": digests, "key": str(key_file)}, output)


def _provenance_in(directory: Path) -> Path:
    if not directory.is_dir():
        raise click.ClickException(f"{directory} is not a directory")
    files = sorted(directory.glob(_PROVENANCE))
    if len(files) != 1:
        raise click.ClickException(f"{directory} has {len(files)} files {_PROVENANCE}, and needs one")
    if files[0].stat().st_size > _PROVENANCE_MAX:
        raise click.ClickException(f"{files[0]} is larger than {_PROVENANCE_MAX >> 20} MiB")
    return files[0]


def _digests(statement: Mapping[str, Any]) -> dict[str, str]:
    """Return the SHA-256 digest of each file of the release, by its name."""
    from podium.lib.provenance import ProvenanceError

    try:
        digests = {str(subject["name"]): str(subject["digest"]["sha256"]) for subject in statement["subject"]}
    except (KeyError, TypeError) as error:
        raise ProvenanceError("subject is not a list of names with digests") from error
    if not digests:
        raise ProvenanceError("subject names no files")
    return digests


def _problems(directory: Path, digests: Mapping[str, str], provenance: str) -> list[str]:
    names = {file.name for file in directory.iterdir()} - {provenance}
    problems = [f"{name}: does not belong to the release" for name in sorted(names - digests.keys())]
    for name, digest in sorted(digests.items()):
        file = directory / name
        # A name with a path in it is no name of a file of the directory.
        if name not in names:
            problems.append(f"{name}: is missing")
        elif not file.is_file():
            problems.append(f"{name}: is not a file")
        else:
            with file.open("rb") as stream:
                if hashlib.file_digest(stream, "sha256").hexdigest() != digest:
                    problems.append(f"{name}: was changed")
    return problems
