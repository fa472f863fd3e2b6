import pytest

from podium.config.field_errors import ErrorList
from podium.config.node_affinity import validate_node_affinity

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def errors_of(affinity):
    errors = ErrorList()
    validate_node_affinity("at", affinity, errors)
    return [error.text for error in errors.errors]


def required_terms(**term):
    return {REQUIRED: {"nodeSelectorTerms": [term]}}


def expression(operator, *values, key="a"):
    return required_terms(matchExpressions=[{"key": key, "operator": operator, "values": list(values)}])


@pytest.mark.parametrize(
    "affinity",
    [
        {},
        {REQUIRED: {"nodeSelectorTerms": []}},
        required_terms(),
        expression("In", "x", "y"),
        expression("Exists"),
        expression("Gt", "5"),
        required_terms(matchFields=[{"key": "metadata.name", "operator": "In", "values": ["n1"]}]),
        {PREFERRED: [{"weight": 1, "preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}]},
        {PREFERRED: [{"weight": 1, "preference": {}}]},
    ],
)
def test_selectors_that_parse_are_good(affinity):
    assert errors_of(affinity) == []


@pytest.mark.parametrize(
    ("affinity", "error"),
    [
        (
            expression("Nope"),
            (
                'operator: Unsupported value: "Nope": '
                'supported values: "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"'
            ),
        ),
        (expression("In"), "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"),
        (
            expression("DoesNotExist", "1"),
            'values: Invalid value: ["1"]: values set must be empty for exists and does not exist',
        ),
        (expression("Lt"), "values: Invalid value: []: for 'Gt', 'Lt' operators, exactly one value is required"),
        (
            expression("Gt", "x"),
            "values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer",
        ),
        (
            expression("Gt", "9223372036854775808"),
            "values[0]: Invalid value: \"9223372036854775808\": for 'Gt', 'Lt' operators, the value must be an integer",
        ),
    ],
)
def test_expression_that_does_not_parse(affinity, error):
    assert errors_of(affinity) == [f"at.{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0].{error}"]


def test_key_and_values_must_be_a_labels():
    errors = errors_of(expression("In", "-", key="b@d"))
    assert errors[0].startswith(f'at.{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0].key: Invalid value: "b@d"')
    assert errors[1].startswith(f"at.{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0].values[0][b@d]: Invalid value")


def test_fields_know_two_operators_and_one_value():
    terms = [{"key": "metadata.name", "operator": "Exists"}, {"key": "metadata.name", "operator": "In", "values": []}]
    path = f"at.{REQUIRED}.nodeSelectorTerms[0].matchFields"
    assert errors_of(required_terms(matchFields=terms)) == [
        f'{path}[0].operator: Unsupported value: "Exists": supported values: "In", "NotIn"',
        f"{path}[1].values: Invalid value: []: must have one element",
    ]


@pytest.mark.parametrize(("weight", "count"), [(0, 0), (1, 1), (101, 1)])
def test_preference_is_checked_unless_its_weight_is_zero(weight, count):
    preference = {"matchExpressions": [{"key": "a", "operator": "In"}]}
    errors = errors_of({PREFERRED: [{"weight": weight, "preference": preference}]})
    assert len(errors) == count
    assert all(error.startswith(f"at.{PREFERRED}[0].matchExpressions[0].values") for error in errors)


def test_null_terms_are_empty_terms():
    assert errors_of({REQUIRED: {"nodeSelectorTerms": [None]}, PREFERRED: [None]}) == []
