"""Reads the objects of all files and directories that a question names, and resolves duplicates.

Owns which files of a directory are read, the names of objects that have only `generateName`, and which one of two
objects of the same name counts. Whatever is left out or replaced is reported as a note, a sentence each.

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
from podium.engine.files import LocatedManifest, OnBroken, read_objects, unpack_lists
from podium.engine.generated_names import with_generated_name
from podium.engine.manifests import DEFAULT_NAMESPACE, Manifest
from podium.lib.file_tree import files_below
from podium.lib.packed_files import read_unpacked
from podium.lib.yaml_reader import YamlError, read_documents

ENDINGS: Final = (".yaml", ".yml", ".json", ".jsonl")
"""The endings of the files that are read in a directory; `.gz` may follow."""

PathLike: TypeAlias = str | os.PathLike[str]
Objects: TypeAlias = PathLike | Manifest | Iterable[PathLike | Manifest]
"""Files and directories of manifests, lists of them such as kubectl prints, or manifests one by one."""
OnNote: TypeAlias = Callable[[str], None]

_KUSTOMIZATION: Final = re.compile(r"kustomization\.ya?ml|Kustomization")
_HARMLESS_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata", "resources"})
"""The fields of a kustomization that do not change the files next to it."""
_TEMPLATE: Final = re.compile(rb"\{\{-?\s*(?:[.$(/]|(?:if|with|range|include|template|toYaml|define|end|else)\b)")
_DIRECTIVE: Final = "{{"
_INSTEAD_OF_TEMPLATE: Final = "give what it makes, such as helm template {chart} | podium COMMAND -f -"


@dataclass(frozen=True, slots=True)
class Source:
    """A file to read.

    Attributes:
        is_listed: whether it was found in a directory, not named by the caller.
    """

    name: str
    content: bytes
    is_listed: bool = False


def objects_given(objects: Objects) -> list[LocatedManifest]:
    """Read the objects of files and directories, and those that are given as manifests, for callers of the library.

    A warning names everything that is left out or replaced.

    Raises:
        ManifestError: an object cannot be read. The message says where it is.
        OSError: a file cannot be read.
    """
    parts = [objects] if isinstance(objects, (str, os.PathLike, Mapping)) else objects
    notes: list[str] = []
    items: list[LocatedManifest] = []
    for index, part in enumerate(parts):
        path = os.path.expanduser(part) if isinstance(part, (str, os.PathLike)) else ""
        # In a list, a string that names no file is reported with its index there.
        if path and (parts is not objects or isinstance(part, os.PathLike) or os.path.exists(path)):
            items += objects_of(sources_of([path], read_file, notes.append), notes.append)
        else:
            items += unpack_lists(part, f"objects[{index}]")
    items = unique(items, notes.append)
    for note in notes:
        from podium.lib.printable import printable

        warnings.warn(printable(note), stacklevel=4)
    return items


def read_file(name: str) -> bytes:
    """Read a file that may be compressed. Raises: OSError, and ManifestError if it cannot be unpacked."""
    try:
        return read_unpacked(name)
    except (EOFError, zlib.error) as error:
        raise ManifestError(f"{name}: {error}") from None


def sources_of(names: Iterable[str], read: Callable[[str], bytes], on_note: OnNote) -> Iterator[Source]:
    """Yield the files of these names; for a directory, all files below it.

    Raises:
        ManifestError: a directory has no files to read.
        OSError: a directory cannot be read.
    """
    for name in names:
        if not os.path.isdir(name):
            yield Source(name, read(name))
            continue
        tree = files_below(name, _is_wanted)
        # Hidden directories hold the likes of .git and .terraform, whose YAML is not the cluster's.
        for hidden in tree.hidden:
            on_note(f"{hidden}: left out, because it is hidden; name it to have it read")
        if not tree.files:
            raise ManifestError(f"{name}: no file below this directory ends with {', '.join(ENDINGS)}")
        for path in tree.files:
            yield Source(path, read(path), is_listed=True)


def objects_of(sources: Iterable[Source], on_note: OnNote, on_broken: OnBroken | None = None) -> list[LocatedManifest]:
    """Read the objects of all files together.

    An object that has only `generateName` gets a name. Of several with the same kind and name the last one counts.

    Args:
        on_broken: receives the errors of a listed file, and those of single objects in a named one; by default they
            are raised.

    Raises:
        ManifestError: an object cannot be read. The message says where it is.
    """
    items: list[LocatedManifest] = []
    for source in sources:
        try:
            items += _objects_in(source, on_note, on_broken)
        except ManifestError as error:
            # A file that the user named must be readable; one that only lies in a directory may be something else.
            if on_broken is None or not source.is_listed:
                raise
            on_broken(error)
    return unique(items, on_note)


def unique(items: Iterable[LocatedManifest], on_note: OnNote) -> list[LocatedManifest]:
    """Name the objects, and drop duplicates: of several with the same kind and name the last one counts."""
    by_identity: dict[tuple[str, ...], LocatedManifest] = {}
    nameless: list[LocatedManifest] = []
    for item in items:
        identity = _identity(item.manifest)
        if identity is None:
            nameless.append(item)
            continue
        namesake = by_identity.get(identity)
        if namesake is not None and namesake.manifest != item.manifest:
            subject = f"{item.location}: {_text(identity)}"
            # The later one wins, as with kubectl apply of the files in this order.
            on_note(
                f"{subject}: is there with other contents in {namesake.location}; "
                "the last one counts, which is this one"
            )
        by_identity[identity] = item
    for number, item in enumerate(nameless):
        manifest = with_generated_name(item.manifest, lambda candidate: _identity(candidate) in by_identity, number)
        named_item = LocatedManifest(manifest, item.location)
        identity = _identity(named_item.manifest)
        # An object without both names is refused when it is decoded.
        by_identity[(item.location,) if identity is None else identity] = named_item
    return list(by_identity.values())


def _is_wanted(name: str) -> bool:
    return name.removesuffix(".gz").endswith(ENDINGS) or _KUSTOMIZATION.fullmatch(name) is not None


def _objects_in(source: Source, on_note: OnNote, on_broken: OnBroken | None) -> list[LocatedManifest]:
    """Read the objects of one file.

    Raises:
        ManifestError: the file holds no objects, or a template from which another tool makes them.
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
        items = list(read_objects(source.content, name, on_broken, note_other if source.is_listed else None))
    except ManifestError as error:
        # Only a file that cannot be read is searched: braces are no fault where they parse, such as in a ConfigMap.
        if isinstance(error, NoObjectError) or _TEMPLATE.search(source.content) is None:
            raise
        advice = _INSTEAD_OF_TEMPLATE.format(chart="CHART")
        raise ManifestError(f"{error}; this looks like a template, such as those of Helm: {advice}") from None
    for item in items:
        if _is_template(item.manifest):
            raise ManifestError(
                f"{item.location}: its name is a template, such as those of Helm: "
                f"{_INSTEAD_OF_TEMPLATE.format(chart='CHART')}"
            )
    return items


def _is_template(manifest: Manifest) -> bool:
    metadata = manifest.get("metadata")
    names = (metadata.get("name"), metadata.get("namespace")) if isinstance(metadata, dict) else ()
    return any(isinstance(text, str) and _DIRECTIVE in text for text in (manifest["kind"], *names))


def _is_harmless(source: Source) -> bool:
    """Return whether a kustomization only lists files that are below its own directory."""
    try:
        (content,) = [document for document in read_documents(source.content) if document is not None]
    except (YamlError, ValueError):
        return False
    # Any other field, such as a patch or a name prefix, would make other objects than those in the files.
    if not isinstance(content, dict) or not content.keys() <= _HARMLESS_FIELDS:
        return False
    folder, resources = os.path.dirname(source.name), content.get("resources")
    return isinstance(resources, list) and all(
        isinstance(path, str) and ".." not in path and os.path.exists(os.path.join(folder, path)) for path in resources
    )


def _identity(manifest: Manifest) -> tuple[str, ...] | None:
    """Return the group, kind, namespace and name of the object; None if it has no name."""
    metadata = manifest.get("metadata")
    name: Any = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(metadata, dict) or not isinstance(name, str) or not name:
        return None
    group = str(manifest.get("apiVersion", "")).rpartition("/")[0]
    return group, str(manifest.get("kind", "")), str(metadata.get("namespace") or DEFAULT_NAMESPACE), name


def _text(identity: tuple[str, ...]) -> str:
    _, kind, namespace, name = identity
    return f"{kind} {name}" if namespace == DEFAULT_NAMESPACE else f"{kind} {namespace}/{name}"
