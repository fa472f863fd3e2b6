import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.objects.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PreferredSchedulingTerm
from podium.objects.errors import FieldError
from podium.objects.meta import LabelSelector, LabelSelectorRequirement
from podium.objects.selectors import (
    EVERYTHING,
    NOTHING,
    NodeMatcher,
    Selector,
    compile_node_selector,
    compile_preferred_terms,
    compile_selector,
    is_label_value,
    is_qualified_name,
    join_selectors,
    node_names,
    parse_int64,
    selector_of_labels,
)


def label_selector(*expressions: tuple[str, str, list[str]], **labels: str) -> LabelSelector:
    return LabelSelector(
        match_labels=labels,
        match_expressions=tuple(
            LabelSelectorRequirement(key=key, operator=operator, values=tuple(values))
            for key, operator, values in expressions
        ),
    )


def requirement(key: str, operator: str, *values: str) -> NodeSelectorRequirement:
    return NodeSelectorRequirement(key=key, operator=operator, values=values)


def term(*labels: NodeSelectorRequirement, fields: list[NodeSelectorRequirement] | None = None) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_expressions=labels, match_fields=tuple(fields or ()))


def name_requirement(*names: str, operator: str = "In") -> NodeSelectorRequirement:
    return requirement("metadata.name", operator, *names)


def matcher(*terms: NodeSelectorTerm) -> NodeMatcher:
    return compile_node_selector(NodeSelector(node_selector_terms=terms))


def test_an_absent_selector_matches_nothing_and_an_empty_one_everything() -> None:
    assert compile_selector(None) is NOTHING
    assert not NOTHING.matches({})
    assert not NOTHING.everything
    assert compile_selector(LabelSelector()) is EVERYTHING
    assert EVERYTHING.everything
    assert EVERYTHING.matches({"a": "b"})


@pytest.mark.parametrize(
    ("operator", "values", "absent", "first_matches", "three"),
    [
        ("In", ["1", "2"], False, True, False),
        ("NotIn", ["1", "2"], True, False, True),
        ("Exists", [], False, True, True),
        ("DoesNotExist", [], True, False, False),
    ],
)
def test_each_operator_matches_labels_as_upstream_defines_it(
    operator: str, values: list[str], absent: bool, first_matches: bool, three: bool
) -> None:
    selector = compile_selector(label_selector(("a", operator, values)))
    assert selector.matches({"b": "1"}) is absent
    assert selector.matches({"a": "1"}) is first_matches
    assert selector.matches({"a": "3"}) is three


def test_every_requirement_must_hold() -> None:
    selector = compile_selector(label_selector(("tier", "NotIn", ["db"]), app="web"))
    assert selector.matches({"app": "web"})
    assert not selector.matches({"app": "web", "tier": "db"})
    assert not selector.matches({"tier": "fe"})


def test_selectors_that_say_the_same_are_equal() -> None:
    first = compile_selector(label_selector(("b", "In", ["1", "2"]), ("a", "Exists", []), c="3"))
    second = compile_selector(label_selector(("c", "In", ["3"]), ("a", "Exists", []), ("b", "In", ["2", "1", "1"])))
    assert first == second
    assert hash(first) == hash(second)
    assert first != compile_selector(label_selector(("b", "NotIn", ["1", "2"]), ("a", "Exists", []), c="3"))
    assert NOTHING != EVERYTHING


@pytest.mark.parametrize(
    ("selector", "path"),
    [
        (label_selector(("a", "Gt", ["1"])), "matchExpressions[0].operator"),
        (label_selector(("a", "", [])), "matchExpressions[0].operator"),
        (label_selector(("a", "Exists", []), ("a", "In", [])), "matchExpressions[1].values"),
        (label_selector(("a", "NotIn", [])), "matchExpressions[0].values"),
        (label_selector(("a", "Exists", ["x"])), "matchExpressions[0].values"),
        (label_selector(("a", "DoesNotExist", ["x"])), "matchExpressions[0].values"),
        (label_selector(("-a", "Exists", [])), "matchExpressions[0].key"),
        (label_selector(("a", "In", ["x", "no space"])), "matchExpressions[0].values[1]"),
        (LabelSelector(match_labels={"a b": "x"}), "matchLabels[a b]"),
        (LabelSelector(match_labels={"a": "x/y"}), "matchLabels[a]"),
    ],
)
def test_an_invalid_selector_names_its_field(selector: LabelSelector, path: str) -> None:
    with pytest.raises(FieldError) as caught:
        compile_selector(selector)
    assert caught.value.path == path
    assert str(caught.value) == f"{path}: {caught.value.detail}"


def test_a_selector_is_narrowed_by_labels_unless_it_matches_nothing() -> None:
    assert EVERYTHING.narrow({"v": "1"}) == selector_of_labels({"v": "1"})
    assert NOTHING.narrow({"v": "1"}) is NOTHING
    web = selector_of_labels({"app": "web"})
    assert web.narrow({}) is web
    assert web.narrow({"v": "1"}).matches({"app": "web", "v": "1"})
    assert not web.narrow({"v": "1"}).matches({"app": "web", "v": "2"})


def test_joined_selectors_match_where_all_of_them_do() -> None:
    web, new = selector_of_labels({"app": "web"}), selector_of_labels({"v": "2"})
    assert (
        join_selectors([web, new])
        == join_selectors([new, web, EVERYTHING])
        == selector_of_labels({"app": "web", "v": "2"})
    )
    assert join_selectors([web, EVERYTHING]) == web
    assert join_selectors([web, NOTHING]) is join_selectors([NOTHING, web]) is NOTHING


def test_a_selector_of_ten_thousand_requirements_and_one_is_not_read() -> None:
    with pytest.raises(FieldError, match="10001 requirements, at most 10000 are read"):
        compile_selector(LabelSelector(match_labels={f"k{number}": "v" for number in range(10_001)}))


keys = st.sampled_from(["a", "b", "c"])
values = st.sampled_from(["", "1", "2", "x"])
expressions: st.SearchStrategy[tuple[str, str, list[str]]] = st.one_of(
    st.tuples(keys, st.sampled_from(["In", "NotIn"]), st.lists(values, min_size=1, max_size=3)),
    st.tuples(keys, st.sampled_from(["Exists", "DoesNotExist"]), st.just([])),
)


def holds(expression: tuple[str, str, list[str]], labels: dict[str, str]) -> bool:
    key, operator, operands = expression
    return {
        "In": key in labels and labels[key] in operands,
        "NotIn": not (key in labels and labels[key] in operands),
        "Exists": key in labels,
        "DoesNotExist": key not in labels,
    }[operator]


@given(st.lists(expressions, max_size=4), st.dictionaries(keys, values), st.dictionaries(keys, values))
def test_a_compiled_selector_agrees_with_its_definition(
    parts: list[tuple[str, str, list[str]]], labels_demanded: dict[str, str], labels: dict[str, str]
) -> None:
    selector: Selector = compile_selector(label_selector(*parts, **labels_demanded))
    is_match = labels_demanded.items() <= labels.items() and all(holds(part, labels) for part in parts)
    assert selector.matches(labels) is is_match


@pytest.mark.parametrize("name", ["a", "A-b_c.9", "example.com/a", "a" * 63, "x." * 126 + "x/n"])
def test_qualified_names_are_accepted_as_label_keys(name: str) -> None:
    assert is_qualified_name(name)


@pytest.mark.parametrize(
    "name", ["", "/a", "a/", "a/b/c", "-a", "a-", "Example.com/a", "a" * 64, "x." * 127 + "x/n", "é", "a\n"]
)
def test_what_is_no_label_key(name: str) -> None:
    assert not is_qualified_name(name)


def test_a_label_value_may_be_empty_but_not_long_or_odd() -> None:
    assert is_label_value("")
    assert is_label_value("v1.2_3-x")
    assert not is_label_value("a" * 64)
    assert not is_label_value("a/b")


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("12", 12),
        ("+12", 12),
        ("-012", -12),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("9223372036854775808", None),
        ("1_000", None),
        (" 1", None),
        ("0x1", None),
        ("٣", None),
        ("", None),
    ],
)
def test_decimal_text_within_64_bits_is_parsed_and_no_other(text: str, number: int | None) -> None:
    assert parse_int64(text) == number


def test_terms_are_alternatives_and_requirements_add_up() -> None:
    selector = matcher(
        term(requirement("zone", "In", "z1"), requirement("disk", "Exists")), term(requirement("gpu", "Exists"))
    )
    assert selector.matches({"zone": "z1", "disk": "ssd"}, "n")
    assert selector.matches({"gpu": ""}, "n")
    assert not selector.matches({"zone": "z1"}, "n")


def test_without_terms_or_with_only_empty_terms_nothing_matches() -> None:
    assert not matcher().matches({}, "n")
    assert not matcher(term()).matches({}, "n")
    assert matcher(term()).terms == ()


@pytest.mark.parametrize(
    ("operator", "label", "is_match"),
    [
        ("Gt", "11", True),
        ("Gt", "10", False),
        ("Lt", "9", True),
        ("Lt", "-1", True),
        ("Lt", "10", False),
        ("Gt", "many", False),
        ("Gt", "9223372036854775808", False),
        ("Lt", None, False),
        ("Gt", None, False),
    ],
)
def test_gt_and_lt_compare_integers(operator: str, label: str | None, is_match: bool) -> None:
    labels = {} if label is None else {"cores": label}
    assert matcher(term(requirement("cores", operator, "10"))).matches(labels, "n") is is_match


@pytest.mark.parametrize(
    ("malformed_term", "path"),
    [
        (term(requirement("a", "Gt", "x")), "matchExpressions[0].values[0]"),
        (term(requirement("a", "Gt", "1", "2")), "matchExpressions[0].values"),
        (term(requirement("a", "in", "1")), "matchExpressions[0].operator"),
        (term(requirement("b", "Exists"), requirement("a", "In")), "matchExpressions[1].values"),
        (term(fields=[name_requirement("n", "m")]), "matchFields[0].values"),
        (term(fields=[name_requirement()]), "matchFields[0].values"),
        (term(fields=[name_requirement("n", operator="Exists")]), "matchFields[0].operator"),
    ],
)
def test_a_broken_term_matches_no_node_and_keeps_its_errors(malformed_term: NodeSelectorTerm, path: str) -> None:
    selector = matcher(malformed_term, term(requirement("good", "Exists")))
    labels = {"a": "1", "b": "1"}
    assert not selector.matches(labels, "n")
    assert selector.matches({**labels, "good": ""}, "n")
    assert [error.path for error in selector.errors] == [f"nodeSelectorTerms[0].{path}"]


def test_match_fields_compare_the_node_name() -> None:
    assert matcher(term(fields=[name_requirement("n")])).matches({}, "n")
    assert not matcher(term(fields=[name_requirement("n")])).matches({}, "m")
    assert matcher(term(fields=[name_requirement("n", operator="NotIn")])).matches({}, "m")
    assert not matcher(term(fields=[name_requirement("n", operator="NotIn")])).matches({}, "n")
    assert not matcher(term(fields=[name_requirement("n"), name_requirement("m")])).matches({}, "n")


def test_an_unknown_field_reads_as_empty() -> None:
    assert not matcher(term(fields=[requirement("spec.x", "In", "n")])).matches({}, "n")
    assert matcher(term(fields=[requirement("spec.x", "NotIn", "n")])).matches({}, "n")


@pytest.mark.parametrize(
    ("terms", "names"),
    [
        ([], None),
        ([term(fields=[name_requirement("a")])], {"a"}),
        ([term(fields=[name_requirement("a")]), term(fields=[name_requirement("b")])], {"a", "b"}),
        ([term(fields=[name_requirement("a"), name_requirement("b")])], set()),
        ([term(fields=[name_requirement("a")]), term(requirement("k", "Exists"))], None),
        ([term(fields=[name_requirement("a", operator="NotIn")])], None),
        ([term(requirement("k", "Exists"), fields=[name_requirement("a")])], {"a"}),
    ],
)
def test_node_names_that_a_selector_leaves_open(terms: list[NodeSelectorTerm], names: set[str] | None) -> None:
    assert node_names(NodeSelector(node_selector_terms=tuple(terms))) == names


def test_no_node_selector_leaves_all_names_open() -> None:
    assert node_names(None) is None


def preferred_term(weight: int, preference: NodeSelectorTerm) -> PreferredSchedulingTerm:
    return PreferredSchedulingTerm(weight=weight, preference=preference)


def test_preferred_terms_without_weight_or_content_vanish_even_when_broken() -> None:
    terms = compile_preferred_terms(
        [
            preferred_term(0, term(requirement("a", "Gt", "x"))),
            preferred_term(5, term()),
            preferred_term(7, term(requirement("a", "Exists"))),
        ]
    )
    assert [term.weight for term in terms] == [7]
    assert terms[0].term.matches({"a": ""}, "n")


def test_a_broken_preferred_term_is_an_error_that_names_all_of_them() -> None:
    malformed_term = preferred_term(1, term(requirement("a", "Gt", "x"), requirement("b", "In")))
    with pytest.raises(FieldError) as caught:
        compile_preferred_terms([malformed_term], "spec.affinity")
    assert caught.value.path == "spec.affinity[0].preference.matchExpressions[0].values[0]"
    assert [note.partition(":")[0] for note in caught.value.__notes__] == [
        "spec.affinity[0].preference.matchExpressions[1].values"
    ]
