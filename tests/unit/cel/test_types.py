from podium.cel.types import DURATION, INT, STRING, TYPE, list_of, map_of, optional_of, parameter, read_type, type_of


def test_types_are_read_as_signatures_write_them():
    assert read_type("map(K, list(int))") == map_of(parameter("K"), list_of(INT))
    assert read_type("optional(duration)") == optional_of(DURATION)
    assert read_type("type(A)") == type_of(parameter("A"))


def test_types_are_written_as_in_errors():
    assert str(map_of(STRING, list_of(INT))) == "map(string, list(int))"
    assert str(optional_of(DURATION)) == "optional_type(google.protobuf.Duration)"
    assert (str(TYPE), str(type_of(INT))) == ("type", "type(int)")
