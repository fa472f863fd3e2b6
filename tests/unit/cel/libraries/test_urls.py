import pytest

from podium.cel import CompileError, EvaluationError
from tests.unit.cel.devices import holds


@pytest.mark.parametrize(
    "expression",
    [
        'url("https://user@example.com:80/p%20a?x=1&y=2&x=3#f").getScheme() == "https"',
        'url("https://example.com:80/").getHost() == "example.com:80"',
        'url("https://example.com:80/").getHostname() == "example.com"',
        'url("https://example.com:80/").getPort() == "80"',
        'url("https://a/").getPort() == ""',
        'url("https://a/p%20a?x=1").getEscapedPath() == "/p%20a"',
        'url("https://a?x=1&y=2&x=3").getQuery() == {"x": ["1", "3"], "y": ["2"]}',
        'url("http://[::1]:80/").getHostname() == "::1"',
        'url("/path").getHost() == ""',
        'url("http://a/b c").getEscapedPath() == "/b%20c"',
        'isURL("https://example.com")',
        'isURL("/path")',
        '!isURL("path")',
        '!isURL("")',
        '!isURL("http://a:x/")',
        '!isURL("://a")',
        '!isURL("http://a/%zz")',
        'url("https://a/") == url("https://a/")',
        'url("https://a/") != url("https://b/")',
        'url("https://a/?a+b=%20").getQuery() == {"a b": [" "]}',
    ],
)
def test_urls_have_parts(expression):
    assert holds(expression)


@pytest.mark.parametrize(
    "expression",
    [
        'url("path") == url("/")',
        'url("http://[::1") == url("/")',
        'url("http://a b/") == url("/")',
    ],
)
def test_value_that_is_refused_is_an_error(expression):
    with pytest.raises((CompileError, EvaluationError)):
        holds(expression)
