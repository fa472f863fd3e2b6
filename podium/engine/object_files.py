"""The objects of all files that a question names: files, directories, and what is given twice.

Owns which files of a directory are read, the names of objects that have only `generateName`, and which one of two
objects of the same name counts. What a caller should hear of beside errors are notes, each a sentence.

Source: kubectl apply -f, which reads the same files of a directory; of two objects the last one counts there, too.
Differs: hidden files of a directory, and files in it that hold no objects, are left out with a note.
"""

from __future__ import annotations

import os
import re
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from podium.engine.errors import ManifestError, NoObjectError
from podium.engine.files import Found, OnBroken, read_objects, unpack_lists
from podium.engine.generated_names import with_generated_name
from podium.engine.manifests import DEFAULT_NAMESPACE, Manifest
from podium.lib.file_tree import files_below
from podium.lib.packed_files import read_unpacked
from podium.lib.yaml_reader import YamlError, read_documents

ENDINGS: Final = (".yaml", ".yml", ".json", ".jsonl")
"""How the names of files of a directory end that are read; `.gz` may follow."""

PathLike: TypeAlias = str | os.PathLike[str]
Objects: TypeAlias = PathLike | Manifest | Iterable[PathLike | Manifest]
"""Files and directories of manifests, lists of them such as kubectl prints, or manifests one by one."""
OnNote: TypeAlias = Callable[[str], None]

_KUSTOMIZATION: Final = re.compile(r"kustomization\.ya?ml|Kustomization")
_HARMLESS_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata", "resources"})
"""The fields of a kustomization that leave the files beside it as they are."""
_TEMPLATE: Final = re.compile(rb"\{\{-?\s*(?:[.$(/]|(?:if|with|range|include|template|toYaml|define|end|else)\b)")
_DIRECTIVE: Final = "{{"
_INSTEAD_OF_TEMPLATE: Final = "give what it makes, such as helm template {chart} | podium COMMAND -f -"


@dataclass(frozen=True, slots=True)
class Source:
    """A file to read.

    Attributes:
        is_listed: whether it was found in a directory, and not named by anyone.
    """

    name: str
    content: bytes
    is_listed: bool = False


def objects_given(objects: Objects) -> list[Found]:
    """Read the objects of files and directories, and those that are given as manifests, for callers of the library.

    What is left out or replaced is warned about.

    Raises:
        ManifestError: an object cannot be read. The message says where it is.
        OSError: a file cannot be read.
    """
    parts = [objects] if isinstance(objects, (str, os.PathLike, Mapping)) else objects
    notes: list[str] = []
    found: list[Found] = []
    for index, part in enumerate(parts):
        path = os.path.expanduser(part) if isinstance(part, (str, os.PathLike)) else ""
        if path and (parts is not objects or isinstance(part, os.PathLike) or os.path.exists(path)):
            found += objects_of(sources_of([path], read_file, notes.append), notes.append)
        else:
            found += unpack_lists(part, f"objects[{index}]")
    found = unique(found, notes.append)
    for note in notes:
        from podium.lib.printable import printable

        warnings.warn(printable(note), stacklevel=4)
    return found


def read_file(name: str) -> bytes:
    """Read a file that may be compressed. Raises: OSError, and ManifestError if it cannot be unpacked."""
    try:
        return read_unpacked(name)
    except (EOFError, zlib.error) as error:
        raise ManifestError(f"{name}: {error}") from None


def sources_of(names: Iterable[str], read: Callable[[str], bytes], on_note: OnNote) -> Iterator[Source]:
    """Find the files that the names stand for. A directory stands for the files below it.

    Raises:
        ManifestError: a directory has no files to read.
        OSError: a directory cannot be read.
    """
    for name in names:
        if not os.path.isdir(name):
            yield Source(name, read(name))
            continue
        tree = files_below(name, _is_wanted)
        for hidden in tree.hidden:
            on_note(f"{hidden}: left out, because it is hidden; name it to have it read")
        if not tree.files:
            raise ManifestError(f"{name}: no file below this directory ends with {', '.join(ENDINGS)}")
        for path in tree.files:
            yield Source(path, read(path), is_listed=True)


def objects_of(sources: Iterable[Source], on_note: OnNote, on_broken: OnBroken | None = None) -> list[Found]:
    """Read the objects of all files together.

    An object that has only `generateName` gets a name. Of several with the same kind and name the last one counts.

    Args:
        on_broken: receives what cannot be read instead of the caller, for a file that was named only what is no object.

    Raises:
        ManifestError: an object cannot be read. The message says where it is.
    """
    found: list[Found] = []
    for source in sources:
        try:
            found += _objects_in(source, on_note, on_broken)
        except ManifestError as error:
            if on_broken is None or not source.is_listed:
                raise
            on_broken(error)
    return unique(found, on_note)


def unique(found: Iterable[Found], on_note: OnNote) -> list[Found]:
    """The objects with names. Of several with the same kind and name the last one counts."""
    by_identity: dict[tuple[str, ...], Found] = {}
    nameless: list[Found] = []
    for each in found:
        identity = _identity(each.manifest)
        if identity is None:
            nameless.append(each)
            continue
        before = by_identity.get(identity)
        if before is not None and before.manifest != each.manifest:
            what = f"{each.where}: {_text(identity)}"
            on_note(f"{what}: is there with other contents in {before.where}; the last one counts, which is this one")
        by_identity[identity] = each
    for number, each in enumerate(nameless):
        manifest = with_generated_name(each.manifest, lambda named: _identity(named) in by_identity, number)
        named = Found(manifest, each.where)
        identity = _identity(named.manifest)
        # What has neither name is left to whoever reads the object.
        by_identity[(each.where,) if identity is None else identity] = named
    return list(by_identity.values())


def _is_wanted(name: str) -> bool:
    return name.removesuffix(".gz").endswith(ENDINGS) or _KUSTOMIZATION.fullmatch(name) is not None


def _objects_in(source: Source, on_note: OnNote, on_broken: OnBroken | None) -> list[Found]:
    """The objects of one file.

    Raises:
        ManifestError: it is not a file of objects, or one that is only made into objects by another tool.
    """
    name, folder = source.name, os.path.dirname(source.name) or "."
    is_kustomization = _KUSTOMIZATION.fullmatch(os.path.basename(name)) is not None
    if is_kustomization and source.is_listed and _is_harmless(source):
        on_note(f"{name}: left out: this kustomization changes no object, so the files beside it are read as they are")
        return []
    if is_kustomization:
        raise ManifestError(
            f"{name}: this is a kustomization, which says how objects are made from other files: give what it makes, "
            f"such as kubectl kustomize {folder} | podium COMMAND -f -"
        )
    if os.path.basename(name) == "Chart.yaml":
        raise ManifestError(f"{name}: this describes a chart of Helm: {_INSTEAD_OF_TEMPLATE.format(chart=folder)}")

    def note_other(error: ManifestError) -> None:
        on_note(f"{error}: left out, because it is not an object of a cluster")

    try:
        found = list(read_objects(source.content, name, on_broken, note_other if source.is_listed else None))
    except ManifestError as error:
        if isinstance(error, NoObjectError) or _TEMPLATE.search(source.content) is None:
            raise
        advice = _INSTEAD_OF_TEMPLATE.format(chart="CHART")
        raise ManifestError(f"{error}; this looks like a template, such as those of Helm: {advice}") from None
    for each in found:
        if _is_template(each.manifest):
            raise ManifestError(
                f"{each.where}: its name is a template, such as those of Helm: "
                f"{_INSTEAD_OF_TEMPLATE.format(chart='CHART')}"
            )
    return found


def _is_template(manifest: Manifest) -> bool:
    metadata = manifest.get("metadata")
    names = (metadata.get("name"), metadata.get("namespace")) if isinstance(metadata, dict) else ()
    return any(isinstance(each, str) and _DIRECTIVE in each for each in (manifest["kind"], *names))


def _is_harmless(source: Source) -> bool:
    """Whether a kustomization only lists files that are below its own directory."""
    try:
        (content,) = [each for each in read_documents(source.content) if each is not None]
    except (YamlError, ValueError):
        return False
    if not isinstance(content, dict) or not content.keys() <= _HARMLESS_FIELDS:
        return False
    folder, resources = os.path.dirname(source.name), content.get("resources")
    return isinstance(resources, list) and all(
        isinstance(each, str) and ".." not in each and os.path.exists(os.path.join(folder, each)) for each in resources
    )


def _identity(manifest: Manifest) -> tuple[str, ...] | None:
    """Group, kind, namespace and name of the object; None if it has no name."""
    metadata = manifest.get("metadata")
    name: Any = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(metadata, dict) or not isinstance(name, str) or not name:
        return None
    group = str(manifest.get("apiVersion", "")).rpartition("/")[0]
    return group, str(manifest.get("kind", "")), str(metadata.get("namespace") or DEFAULT_NAMESPACE), name


def _text(identity: tuple[str, ...]) -> str:
    _, kind, namespace, name = identity
    return f"{kind} {name}" if namespace == DEFAULT_NAMESPACE else f"{kind} {namespace}/{name}"
