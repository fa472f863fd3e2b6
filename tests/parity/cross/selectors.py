"""New device selectors: random expressions, mostly well typed, about recorded devices.

Lists of a random range are left out: cel-go makes one of any length before it looks at the cost.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Final

from tests.parity.cross.drawing import Json, chance, copy_of

_DEPTH_MAX: Final = 4
_MISTYPED: Final = 0.01
_MANGLED: Final = 0.02
_PLACE: Final = re.compile(r"<(\w+)>")
_MARKS: Final = "()[]{}.?\"'\\,:!&|<>=+-*/%_0123aeux \n"

_LEAVES: Final[Mapping[str, Sequence[str]]] = {
    "bool": ("true", "false", "device.allowMultipleAllocations", "<own>.healthy", "has(<own>.numa)"),
    "int": (
        *("0", "1", "-1", "2", "7", "0x1F", "-0x8000000000000000", "9223372036854775807", "9223372036854775808"),
        *("<own>.index", "<own>.?numa.orValue(-1)", "<own>.?index.orValue(3)"),
    ),
    "uint": ("0u", "1u", "18446744073709551615u", "0xFFu", "18446744073709551616u"),
    "double": ("0.0", "-0.0", "1.5", "1e308", "-1e-320", "1e400", "0.1", "2.5", "1e18", "9223372036854775807.0"),
    "string": (
        *('""', '"a"', '"h100"', '"1.2.3"', '"1Gi"', '"90m"', '"é"', '"日本"', '"😀"', "r'\\d+'", "'''a\nb'''"),
        *("'\\u00e9'", "device.driver", "<own>.model", '<own>.?model.orValue("l4")', '"2026-01-01T00:00:00Z"'),
        *('"10.0.0.1"', '"ß"', '"a,b,c"', '"  x "', '"12"', '"-7"', '"true"', '"1e3"', '"https://a.b:80/c?d=e"'),
        *('"İ"', "'\\x41\\101\\0'"),
    ),
    "bytes": ('b"ab"', 'b"\\xff"', 'b"é"', 'b""', "b'\\303\\277'"),
    "quantity": (
        *('quantity("1Gi")', 'quantity("100m")', 'quantity("-1.5")', 'quantity("9223372036854775807")'),
        *('quantity("1e3")', 'quantity("0.1n")', 'quantity("12E")', "<held>.memory"),
        *('quantity("99999999999999999999")',),
    ),
    "semver": (
        *('semver("1.2.3")', "<own>.driverVersion", 'semver("v1.2", true)', 'semver("1.0.0-rc.1+b")'),
        *('semver("01.2.3", true)',),
    ),
    "duration": (
        *('duration("1h")', 'duration("-1.5s")', 'duration("1ms2us")', 'duration("2562047h47m16.854775807s")'),
        *('duration("0")',),
    ),
    "timestamp": (
        *('timestamp("2026-01-01T00:00:00Z")', 'timestamp("0001-01-01T00:00:00Z")'),
        *('timestamp("9999-12-31T23:59:59.999999999Z")',),
    ),
    "ints": ("[]", "[1]", "[3, 1, 2]", "[1, 1, 2]", "lists.range(4)"),
    "strings": ('["a"]', '["b", "a", "é"]', '[""]', '["l4", "h100"]'),
    "map": ("{}", '{"a": 1}', '{"a": 1, "b": 2}', "{1: 2}", "{true: 1, 1u: 2}", '{"a": 1, "a": 2}'),
    "optional": ("optional.none()", "optional.of(1)", "<own>.?index", "<own>.?nope", "optional.ofNonZeroValue(0)"),
    "own": (
        *('device.attributes["gpu.example.com"]', 'device.attributes["vendor.example.com"]'),
        *("device.attributes[device.driver]",),
    ),
    "held": ('device.capacity["gpu.example.com"]', 'device.capacity["none"]'),
    "regex": (
        *('"a+"', '"(a|b)*c"', '"^h[0-9]{2,3}$"', '"(?i)H1"', '"[^\\\\W]"', '"\\\\pL"', '"(?P<x>.)"', '"(a*)*b"'),
        *('"["', '"\\\\1"', '"a{1001}"', '"(?s).+"', '"\\\\b.\\\\B"', '"[[:alpha:]]+"', '"x*?"', '"(?=a)"', '"^$"'),
        *('"\\\\z"', '"."', '"(?U)a+"', '"é"'),
    ),
}  # fmt: skip

_GROWN: Final[Mapping[str, Sequence[str]]] = {
    "bool": (
        *("<bool> && <bool>", "<bool> || <bool>", "!<bool>", "<bool> ? <bool> : <bool>", "(<bool>)"),
        *("<bool> == <bool>", "<int> <order> <int>", "<int> <order> <double>", "<uint> <order> <int>"),
        *("<double> <order> <double>", "<string> <order> <string>", "<bytes> <order> <bytes>"),
        *("<duration> <order> <duration>", "<timestamp> <order> <timestamp>", "<quantity> == <quantity>"),
        *("<semver> == <semver>", "<map> == <map>", "<ints> == <ints>", "<strings> == <strings>"),
        *("<optional> == <optional>", "dyn(<int>) == dyn(<double>)", "<int> in <ints>", "<string> in <strings>"),
        *("<string> in <map>", "<string> in <own>", "<double> in [<int>]", "<string>.matches(<regex>)"),
        *("<string>.startsWith(<string>)", "<string>.endsWith(<string>)", "<string>.contains(<string>)"),
        *("<quantity>.isLessThan(<quantity>)", "<quantity>.isGreaterThan(<quantity>)", "<quantity>.isInteger()"),
        *("isQuantity(<string>)", "isSemver(<string>)", "isSemver(<string>, true)", "<semver>.isLessThan(<semver>)"),
        *("<semver>.isGreaterThan(<semver>)", "<optional>.hasValue()", "isIP(<string>)", "<ints>.all(x, x > <int>)"),
        *("<ints>.exists(x, x / <int> == <int>)", "<ints>.exists_one(x, x == <int>)"),
        *("<strings>.exists(x, x.matches(<regex>))", "<map>.all(k, <bool>)", "<map>.exists(k, v, v == <int>)"),
        *("<own>.all(k, <bool>)", "<own>.exists(k, v, type(v) == string)", "<ints>.isSorted()", "has(<own>.model)"),
        *("sets.contains(<ints>, <ints>)", "sets.equivalent(<ints>, <ints>)"),
        *("sets.intersects(<strings>, <strings>)", "cel.bind(x, <int>, x * x > <int>)"),
        *("type(<int>) == type(<double>)", "isURL(<string>)", "bool(<string>)", "<double> == dyn(<uint>)"),
        *("<own> == {}", "math.isNaN(<double>)", "format.dns1123Label().validate(<string>).hasValue()"),
    ),
    "int": (
        *("<int> + <int>", "<int> - <int>", "<int> * <int>", "<int> / <int>", "<int> % <int>", "-(<int>)", "(<int>)"),
        *("<bool> ? <int> : <int>", "size(<string>)", "<strings>.size()", "size(<map>)", "size(<bytes>)"),
        *("size(<own>)", "int(<double>)", "int(<string>)", "int(<uint>)", "int(<timestamp>)"),
        *("<quantity>.asInteger()", "sign(<quantity>)", "<quantity>.compareTo(<quantity>)"),
        *("<semver>.compareTo(<semver>)", "<semver>.major()", "<semver>.patch()", "<ints>.sum()", "<ints>.min()"),
        *("<ints>.max()", "<ints>.indexOf(<int>)", "<ints>.lastIndexOf(<int>)", "<ints>[<int>]"),
        *("<string>.indexOf(<string>)", "<string>.lastIndexOf(<string>)", "<string>.indexOf(<string>, <int>)"),
        *("<optional>.orValue(<int>)", "<optional>.value()", "<map>[<string>]", "<map>.?a.orValue(<int>)"),
        *("<ints>[?<int>].orValue(<int>)", "<duration>.getSeconds()", "<duration>.getMilliseconds()"),
        *("<duration>.getHours()", "<timestamp>.getFullYear()", "<timestamp>.getDayOfWeek()"),
        *('<timestamp>.getHours("-03:30")', '<timestamp>.getDate("Europe/Berlin")', "math.greatest(<int>, <int>)"),
        *("math.least(<ints>)", "math.abs(<int>)", "math.bitShiftLeft(<int>, <int>)", "math.sign(<int>)"),
        *("cel.bind(y, <int>, y + <int>)", "<optional>.optMap(x, x + <int>).orValue(<int>)"),
        *("math.bitXor(<int>, <int>)",),
    ),
    "uint": (
        *("<uint> + <uint>", "<uint> - <uint>", "<uint> * <uint>", "<uint> / <uint>", "<uint> % <uint>"),
        *("uint(<int>)", "uint(<double>)", "uint(<string>)"),
    ),
    "double": (
        *("<double> + <double>", "<double> - <double>", "<double> * <double>", "<double> / <double>", "-(<double>)"),
        *("double(<int>)", "double(<uint>)", "double(<string>)", "<quantity>.asApproximateFloat()"),
        *("math.ceil(<double>)", "math.round(<double>)", "math.trunc(<double>)", "math.sqrt(<double>)"),
    ),
    "string": (
        *("<string> + <string>", "<bool> ? <string> : <string>", "string(<int>)", "string(<double>)"),
        *("string(<uint>)", "string(<bytes>)", "string(<duration>)", "string(<timestamp>)", "<string>.lowerAscii()"),
        *("<string>.upperAscii()", "<string>.trim()", "<string>.charAt(<int>)", "<string>.substring(<int>)"),
        *("<string>.substring(<int>, <int>)", "<string>.replace(<string>, <string>)"),
        *("<string>.replace(<string>, <string>, <int>)", "<strings>.join(<string>)", "<string>.reverse()"),
        *("strings.quote(<string>)", "<string>.find(<regex>)", "<strings>[<int>]", "<strings>.max()"),
        *('"%s|%d".format([<string>, <int>])', '"%.2f %e".format([<double>, <double>])'),
        *('"%x %b %o".format([<int>, <int>, <uint>])', '"%s".format([<ints>])', '"%s".format([<map>])'),
        *('"%s %s".format([<duration>, <timestamp>])', '"%s".format([<bytes>])', '"%X".format([<string>])'),
        *('"%d".format([<string>])', '"%s".format([<double>])', "<strings>.join()", '"%s".format([<optional>])'),
    ),
    "bytes": ("bytes(<string>)", "<bytes> + <bytes>"),
    "quantity": (
        *("quantity(<string>)", "<quantity>.add(<quantity>)", "<quantity>.sub(<quantity>)", "<quantity>.add(<int>)"),
        *("<quantity>.sub(<int>)", "<bool> ? <quantity> : <quantity>"),
    ),
    "semver": ("semver(<string>)", "semver(<string>, <bool>)"),
    "duration": (
        *("<duration> + <duration>", "<duration> - <duration>", "<timestamp> - <timestamp>", "duration(<string>)"),
    ),
    "timestamp": ("<timestamp> + <duration>", "<timestamp> - <duration>", "timestamp(<string>)", "timestamp(<int>)"),
    "ints": (
        *("[<int>, <int>]", "<ints> + <ints>", "<ints>.map(x, x + <int>)", "<ints>.filter(x, <bool>)"),
        *("<ints>.sort()", "<ints>.map(x, <bool>, x * <int>)", "<ints>.distinct()", "<ints>.reverse()"),
        *("<ints>.slice(<int>, <int>)", "[<ints>, <ints>].flatten()", "[?<optional>, <int>]"),
        *("<ints>.transformList(i, v, i * v)", "[<int>, <double>]", "lists.range(20)", "<ints>.sortBy(x, -x)"),
        *("<strings>.map(x, size(x))", "[<ints>].flatten(<int>)"),
    ),
    "strings": (
        *("[<string>, <string>]", "<string>.split(<string>)", "<string>.split(<string>, <int>)"),
        *("<string>.findAll(<regex>)", "<string>.findAll(<regex>, <int>)", "<strings> + <strings>"),
        *("<strings>.map(x, x + <string>)", "<strings>.sort()", "<own>.map(k, k).sort()"),
        *("<strings>.filter(x, x <order> <string>)",),
    ),
    "map": (
        *('{<string>: <int>, "b": <int>}', "{?<string>: <optional>}", "<map>.transformMap(k, v, v)"),
        *("{<int>: <int>}", "<ints>.transformMap(k, v, v)"),
    ),
    "optional": (
        *("optional.of(<int>)", "optional.ofNonZeroValue(<int>)", "<map>.?a", "<ints>[?<int>]"),
        *("<optional>.or(<optional>)", "<optional>.optFlatMap(x, <optional>)", "<ints>.first()", "<own>[?<string>]"),
    ),
}  # fmt: skip

_ORDERS: Final = ("==", "!=", "<", "<=", ">", ">=")


def crossed_selectors(recordings: Sequence[Json], seed: int, count: int) -> Iterator[Json]:
    """As many expressions, each with the device of a recorded one; a few are mistyped or no expressions."""
    for number in range(count):
        random = chance(seed, number)
        donor = random.choice(recordings)
        expression = _draw(random, "bool", _DEPTH_MAX)
        if random.random() < _MANGLED:
            expression = _mangle(random, expression)
        yield {
            "id": f"cel-{seed}x{number}",
            "expression": expression,
            "driver": donor["driver"],
            "device": copy_of(donor["device"]),
        }


def _draw(random: Random, kind: str, depth: int) -> str:
    """An expression of the kind; operands that are operators themselves may or may not have parentheses."""
    if kind == "order":
        return random.choice(_ORDERS)
    if random.random() < _MISTYPED:
        kind = random.choice(list(_LEAVES))
    grown = _GROWN.get(kind, ())
    template = random.choice(grown if grown and depth > 0 and random.random() < 0.8 else _LEAVES[kind])
    return _PLACE.sub(lambda place: _operand(random, place[1], depth - 1), template)


def _operand(random: Random, kind: str, depth: int) -> str:
    if kind not in _LEAVES and kind != "order":
        return f"<{kind}>"
    operand = _draw(random, kind, depth)
    return f"({operand})" if " " in operand and random.random() < 0.8 else operand


def _mangle(random: Random, text: str) -> str:
    start = random.randrange(len(text))
    return text[:start] + random.choice(("", random.choice(_MARKS))) + text[start + random.randint(0, 2) :]
