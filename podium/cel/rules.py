"""What differs between the environments in which versions of Kubernetes evaluate device selectors."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SelectorRules:
    """The rules of one environment. The defaults are those of the oldest, with cel-go 0.26.0.

    Attributes:
        has_list_attributes: an attribute of a device may be a list, so its static type is dyn instead of any.
        has_quoted_fields: backquotes quote the name of a field.
        resolves_leading_dots: a name with a leading dot is never that of a loop variable.
        keeps_optionals: an optional that is read from a name or a conditional stays what it was; only an optional has
            `or` and `orValue`.
        checks_arguments: the size of `lists.range` and the offset of `indexOf` are checked; a duration is made of text
            only.
        charges_arguments: `startsWith`, `endsWith`, the function `matches` and `includes` cost as much as they read.
    """

    has_list_attributes: bool = False
    has_quoted_fields: bool = False
    resolves_leading_dots: bool = False
    keeps_optionals: bool = False
    checks_arguments: bool = False
    charges_arguments: bool = False
