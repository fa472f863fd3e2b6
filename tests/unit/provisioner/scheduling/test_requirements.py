"""The algebra of requirements, against Karpenter's facts and against its own laws."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.objects.errors import FieldError
from podium.provisioner.apis.labels import WELL_KNOWN
from podium.provisioner.scheduling.requirements import OPERATORS, Requirement, Requirements

MAX = 2**63 - 1
ZONE = "topology.kubernetes.io/zone"


def requirement(operator: str, *values: str, key: str = "k", min_values: int | None = None) -> Requirement:
    return Requirement.of(key, operator, values, min_values=min_values)


def requirements(**by_key: Requirement) -> Requirements:
    return Requirements(
        Requirement.of(key, requirement.operator, sorted(requirement.values)) for key, requirement in by_key.items()
    )


# ---------------------------------------------------------------- construction


@pytest.mark.parametrize(
    ("subject", "complement", "values", "gte", "lte", "operator"),
    [
        (requirement("In", "a", "b"), False, {"a", "b"}, None, None, "In"),
        (requirement("NotIn", "a"), True, {"a"}, None, None, "NotIn"),
        (requirement("Exists"), True, set(), None, None, "Exists"),
        (requirement("DoesNotExist"), False, set(), None, None, "DoesNotExist"),
        (requirement("Gt", "4"), True, set(), 5, None, "Exists"),
        (requirement("Lt", "4"), True, set(), None, 3, "Exists"),
        (requirement("Gte", "4"), True, set(), 4, None, "Exists"),
        (requirement("Lte", "-4"), True, set(), None, -4, "Exists"),
        (requirement("In"), False, set(), None, None, "DoesNotExist"),
        (requirement("NotIn"), True, set(), None, None, "Exists"),
        (requirement("Exists", "ignored"), True, set(), None, None, "Exists"),
        (requirement("Gt", str(MAX)), False, set(), None, None, "DoesNotExist"),
        (requirement("Lt", str(-MAX - 1)), False, set(), None, None, "DoesNotExist"),
    ],
)
def test_each_operator_has_its_form(
    subject: Requirement, complement: bool, values: set[str], gte: int | None, lte: int | None, operator: str
) -> None:
    assert (subject.complement, subject.values, subject.gte, subject.lte) == (complement, values, gte, lte)
    assert subject.operator == operator


def test_old_names_of_labels_are_replaced() -> None:
    assert requirement("In", "a", key="failure-domain.beta.kubernetes.io/zone").key == ZONE


@pytest.mark.parametrize(
    ("operator", "values", "path", "text"),
    [
        ("Near", ("1",), "requirements[0]", 'requirements[0].operator: "Near" is not one of In, NotIn, Exists,'),
        ("in", (), "", 'operator: "in" is not one of'),
        ("Gt", ("four",), "requirements[0]", 'requirements[0].values[0]: Gt takes an integer, not "four"'),
        ("Lte", ("1.5",), "", 'values[0]: Lte takes an integer, not "1.5"'),
        ("Gte", (str(MAX + 1),), "", "values[0]: Gte takes an integer"),
        ("Lt", (), "r", "r.values: Lt takes one integer, not 0 values"),
        ("Gt", ("1", "2"), "r", "r.values: Gt takes one integer, not 2 values"),
    ],
)
def test_what_has_no_meaning_is_refused_with_its_field(
    operator: str, values: tuple[str, ...], path: str, text: str
) -> None:
    with pytest.raises(FieldError) as error:
        Requirement.of("k", operator, values, path=path)
    assert str(error.value).startswith(text)


# ---------------------------------------------------------------- two requirements


@pytest.mark.parametrize(
    ("first_operand", "second_operand", "intersection"),
    [
        (requirement("NotIn", "A"), requirement("NotIn", "1", "2"), requirement("NotIn", "A", "1", "2")),
        (requirement("NotIn", "1", "2"), requirement("Gt", "1"), Requirement("k", True, frozenset({"2"}), 2)),
        (requirement("Gt", "1"), requirement("Lt", "9"), Requirement("k", True, frozenset(), 2, 8)),
        (requirement("In", "A"), requirement("Gt", "1"), requirement("DoesNotExist")),
        (requirement("In", "1", "9"), requirement("Gt", "1"), requirement("In", "9")),
        (requirement("Gt", "9"), requirement("Lt", "9"), requirement("DoesNotExist")),
        (requirement("In", "a", "b"), requirement("In", "b", "c"), requirement("In", "b")),
        (requirement("In", "a", "b"), requirement("NotIn", "b", "c"), requirement("In", "a")),
        (requirement("In", "a"), requirement("Exists"), requirement("In", "a")),
        (requirement("Exists"), requirement("DoesNotExist"), requirement("DoesNotExist")),
        (requirement("Gte", "2"), requirement("Gte", "5"), requirement("Gte", "5")),
        (requirement("Lte", "2"), requirement("Lt", "2"), requirement("Lte", "1")),
    ],
)
def test_an_intersection_allows_what_both_allow(
    first_operand: Requirement, second_operand: Requirement, intersection: Requirement
) -> None:
    assert first_operand.intersection(second_operand) == intersection
    assert second_operand.intersection(first_operand) == intersection


def test_the_larger_min_values_stays_also_where_nothing_is_left() -> None:
    above_nine, below_nine = requirement("Gt", "9", min_values=2), requirement("Lt", "9", min_values=5)
    assert above_nine.intersection(below_nine) == requirement("DoesNotExist", min_values=5)
    assert above_nine.intersection(requirement("Exists")).min_values == 2


def test_a_bound_beyond_all_integers_loses_its_min_values() -> None:
    assert requirement("Gt", str(MAX), min_values=3).min_values is None


def test_bounds_refuse_what_is_no_integer() -> None:
    assert not requirement("Gt", "1").has("two")
    assert requirement("Gt", "1").has("+2")
    assert requirement("Exists").has("two")


def test_excluded_integers_do_not_exhaust_the_bounds() -> None:
    """Between 3 and 3 there is only 3, and it is excluded: upstream does not look for an integer that is left."""
    only_three = requirement("Gte", "3").intersection(requirement("Lte", "3"))
    assert only_three.has_intersection(requirement("NotIn", "3"))
    assert not only_three.intersection(requirement("NotIn", "3")).has("3")


def test_requirements_are_values() -> None:
    assert requirement("In", "a", "b") == requirement("In", "b", "a")
    assert len({requirement("In", "a"), requirement("In", "a"), requirement("NotIn", "a")}) == 2


TEXTS = ["1", "2", "3", "7", "-1", "007", "a", "b", ""]
ANY = st.one_of(
    st.builds(
        lambda operator, values: requirement(operator, *values),
        st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]),
        st.lists(st.sampled_from(TEXTS), max_size=4),
    ),
    st.builds(
        lambda operator, limit: requirement(operator, str(limit)),
        st.sampled_from(["Gt", "Lt", "Gte", "Lte"]),
        st.one_of(st.integers(-2, 8), st.sampled_from([MAX, -MAX - 1])),
    ),
)
REQUIREMENTS = st.one_of(ANY, st.builds(lambda first, second: first.intersection(second), ANY, ANY))


@given(REQUIREMENTS, REQUIREMENTS, st.one_of(st.sampled_from(TEXTS), st.integers().map(str)))
def test_an_intersection_has_a_value_if_both_have_it(first: Requirement, second: Requirement, value: str) -> None:
    assert first.intersection(second).has(value) == (first.has(value) and second.has(value))


@given(REQUIREMENTS, REQUIREMENTS)
def test_the_order_of_an_intersection_does_not_matter(first: Requirement, second: Requirement) -> None:
    assert first.intersection(second) == second.intersection(first)
    assert first.has_intersection(second) == second.has_intersection(first)


@given(REQUIREMENTS, REQUIREMENTS)
def test_has_intersection_says_whether_the_intersection_is_empty(first: Requirement, second: Requirement) -> None:
    assert first.has_intersection(second) == (first.intersection(second).operator != "DoesNotExist")


@given(REQUIREMENTS)
def test_a_requirement_is_its_own_intersection_and_that_with_exists(subject: Requirement) -> None:
    assert subject.intersection(subject) == subject
    assert subject.intersection(requirement("Exists")) == subject


@given(REQUIREMENTS)
def test_bounds_stand_only_in_a_complement(subject: Requirement) -> None:
    assert subject.complement or (subject.gte is None and subject.lte is None)


@given(REQUIREMENTS)
def test_absence_is_admitted_by_the_operators_that_exclude(subject: Requirement) -> None:
    assert subject.admits_absence == (subject.operator in {"NotIn", "DoesNotExist"})


# ---------------------------------------------------------------- texts


@pytest.mark.parametrize(
    ("subject", "text"),
    [
        (requirement("In", "b", "a"), "k In [a b]"),
        (requirement("NotIn", "a"), "k NotIn [a]"),
        (requirement("Exists"), "k Exists"),
        (requirement("DoesNotExist"), "k DoesNotExist"),
        (requirement("Gt", "4"), "k Exists >=5"),
        (requirement("Lt", "4"), "k Exists <=3"),
        (requirement("Gte", "1").intersection(requirement("Lte", "4")), "k Exists >=1 <=4"),
        (requirement("NotIn", "2", "9").intersection(requirement("Lte", "4")), "k NotIn [2] <=4"),
        (requirement("In", *"fedcba"), "k In [a b c d e and 1 others]"),
        (requirement("In", *"edcba"), "k In [a b c d e]"),
        (requirement("Gte", "4", min_values=2), "k Exists >=4 minValues 2"),
        (requirement("In", "a", min_values=1), "k In [a] minValues 1"),
    ],
)
def test_the_text_of_a_requirement(subject: Requirement, text: str) -> None:
    assert str(subject) == text


def test_the_text_of_a_set_is_sorted_and_leaves_the_hostname_out() -> None:
    requirements = Requirements(
        [
            requirement("In", "b", key=ZONE),
            requirement("In", "node-1", key="kubernetes.io/hostname"),
            requirement("Gte", "2", key="cpu"),
        ]
    )
    assert str(requirements) == f"cpu Exists >=2, {ZONE} In [b]"
    assert str(Requirements()) == ""


# ---------------------------------------------------------------- sets


def test_requirements_on_one_key_become_their_intersection() -> None:
    requirements = Requirements(
        [requirement("In", "a", "b"), requirement("NotIn", "a"), requirement("Exists", key="other")]
    )
    assert requirements.get("k") == requirement("In", "b")
    assert sorted(requirements.keys()) == ["k", "other"]
    assert {requirement.key for requirement in requirements} == {"k", "other"}
    assert len(requirements) == 2


def test_a_key_without_requirement_may_have_any_value() -> None:
    assert Requirements().get("k") == requirement("Exists")
    assert "k" not in Requirements()


def test_adding_makes_a_new_set() -> None:
    requirements = Requirements([requirement("In", "a", "b")])
    larger_set = requirements.add(requirement("In", "b"), requirement("Exists", key="other"))
    assert requirements == Requirements([requirement("In", "b", "a")])
    assert larger_set == Requirements([requirement("Exists", key="other"), requirement("In", "b")])
    assert requirements.union(larger_set) == larger_set
    assert hash(requirements.union(larger_set)) == hash(larger_set)
    assert requirements != larger_set
    assert requirements != "k In [a b]"
    assert repr(requirements) == "<Requirements k In [a b]>"


def test_labels_are_requirements_by_their_current_names() -> None:
    labels = Requirements.of_labels({"failure-domain.beta.kubernetes.io/zone": "a", "team": "x"})
    assert str(labels) == f"team In [x], {ZONE} In [a]"


EXISTS, ABSENT = requirement("Exists"), requirement("DoesNotExist")
IN_A, IN_B, NOT_IN_A = requirement("In", "a"), requirement("In", "b"), requirement("NotIn", "a")


@pytest.mark.parametrize(
    ("existing", "incoming", "is_met"),
    [
        (EXISTS, ABSENT, False),
        (ABSENT, EXISTS, False),
        (ABSENT, NOT_IN_A, True),
        (NOT_IN_A, ABSENT, True),
        (ABSENT, ABSENT, True),
        (IN_A, IN_B, False),
        (IN_A, IN_A, True),
        (IN_A, NOT_IN_A, False),
        (NOT_IN_A, IN_A, False),
        (IN_B, NOT_IN_A, True),
        (EXISTS, IN_A, True),
        (IN_A, ABSENT, False),
        (requirement("Gt", "9"), requirement("Lt", "9"), False),
        (requirement("NotIn", "9").intersection(requirement("Gte", "9")), requirement("Lt", "9"), False),
    ],
)
def test_two_sets_intersect_if_their_values_do_or_both_admit_absence(
    existing: Requirement, incoming: Requirement, is_met: bool
) -> None:
    mine, incoming_set = Requirements([existing]), Requirements([incoming])
    assert mine.intersects(incoming_set) is is_met
    assert mine.is_compatible(incoming_set) is is_met
    conflicts = () if is_met else (f"key k, {incoming} not in {existing}",)
    assert mine.conflicts(incoming_set) == mine.incompatibilities(incoming_set) == conflicts


def test_keys_of_one_set_alone_never_conflict() -> None:
    assert requirements(a=IN_A).intersects(requirements(b=IN_A))
    assert Requirements().conflicts(requirements(b=IN_A)) == ()


def test_conflicts_come_in_order() -> None:
    mine = requirements(b=IN_A, a=IN_A, c=IN_A)
    assert mine.conflicts(requirements(c=EXISTS, b=IN_B, a=IN_B)) == (
        "key a, a In [b] not in a In [a]",
        "key b, b In [b] not in b In [a]",
    )


@pytest.mark.parametrize(
    ("incoming", "is_met"), [(IN_A, False), (EXISTS, False), (NOT_IN_A, True), (ABSENT, True)], ids=str
)
def test_an_undefined_label_meets_only_requirements_that_admit_absence(incoming: Requirement, is_met: bool) -> None:
    incoming_set = Requirements([incoming])
    assert Requirements().is_compatible(incoming_set) is is_met
    assert bool(Requirements().incompatibilities(incoming_set)) is not is_met
    assert Requirements().is_compatible(incoming_set, allow_undefined={"k"})


def test_a_well_known_label_may_be_undefined_where_that_is_allowed() -> None:
    zone = Requirements([requirement("In", "a", key=ZONE)])
    assert Requirements().incompatibilities(zone) == (f'label "{ZONE}" does not have known values',)
    assert Requirements().incompatibilities(zone, WELL_KNOWN) == ()
    assert Requirements().is_compatible(zone, WELL_KNOWN)


def test_a_label_that_is_allowed_to_be_undefined_must_still_not_conflict() -> None:
    mine = Requirements([requirement("In", "b", key=ZONE)])
    zone = Requirements([requirement("In", "a", key=ZONE)])
    assert mine.incompatibilities(zone, WELL_KNOWN) == (f"key {ZONE}, {ZONE} In [a] not in {ZONE} In [b]",)


def test_one_unknown_label_comes_before_any_conflict() -> None:
    mine = requirements(team=IN_A)
    incoming = requirements(team=IN_B, rack=IN_A, cage=IN_A)
    assert mine.incompatibilities(incoming) == ('label "cage" does not have known values',)
    assert mine.conflicts(incoming) == ("key team, team In [b] not in team In [a]",)


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("zone", ZONE),
        ("example.com/zone", ZONE),
        ("topology.kubernetes.io/zon", ZONE),
        ("kubernetes.io/o", "kubernetes.io/os"),
        ("tea", "example.com/team"),
        ("corp/team", "example.com/team"),
        ("topology.kubernetes.io/zones", None),
        ("rack", None),
    ],
)
def test_a_label_that_was_meant_is_hinted_at(key: str, hint: str | None) -> None:
    mine = Requirements([requirement("In", "x", key="example.com/team")])
    incoming = Requirements([requirement("Exists", key=key)])
    answer = f' (typo of "{hint}"?)' if hint else ""
    assert mine.incompatibilities(incoming, WELL_KNOWN) == (f'label "{key}" does not have known values{answer}',)


def test_labels_that_may_be_undefined_are_hinted_at_first() -> None:
    mine = Requirements([requirement("In", "x", key="a/zone")])
    incoming = Requirements([requirement("Exists", key="zone")])
    assert mine.incompatibilities(incoming, WELL_KNOWN) == (
        f'label "zone" does not have known values (typo of "{ZONE}"?)',
    )
    assert mine.incompatibilities(incoming) == ('label "zone" does not have known values (typo of "a/zone"?)',)


SETS = st.lists(
    st.builds(
        lambda key, operator, values: Requirement.of(key, operator, values if operator in {"In", "NotIn"} else ("3",)),
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from(OPERATORS),
        st.lists(st.sampled_from(TEXTS), min_size=1, max_size=3),
    ),
    max_size=4,
).map(Requirements)


@pytest.mark.long
@given(SETS, SETS)
def test_reasons_are_given_exactly_where_two_sets_do_not_agree(mine: Requirements, incoming_set: Requirements) -> None:
    assert mine.intersects(incoming_set) == (mine.conflicts(incoming_set) == ())
    assert mine.is_compatible(incoming_set) == (mine.incompatibilities(incoming_set) == ())
    assert mine.is_compatible(incoming_set, {"a", "b", "c"}) == mine.intersects(incoming_set)
    assert mine.intersects(incoming_set) == incoming_set.intersects(mine)


@pytest.mark.long
@given(SETS, SETS)
def test_a_union_is_at_least_as_strict_as_each_set(mine: Requirements, requirements: Requirements) -> None:
    union = mine.union(requirements)
    assert union == requirements.union(mine)
    assert union.keys() == mine.keys() | requirements.keys()
    assert all(mine.get(requirement.key).has(text) for requirement in union for text in TEXTS if requirement.has(text))
