import re
from pathlib import Path

from tests.docs_site import links


def test_no_link_of_the_site_is_dead(built_site: Path) -> None:
    pages = links.pages(built_site)
    assert len(pages) > 20
    assert list(links.dead(built_site, pages)) == []


def test_a_page_fetches_nothing_from_another_server(built_site: Path) -> None:
    fetched = {address for page in links.pages(built_site).values() for address in page.fetched}
    assert {address for address in fetched if "://" in address or address.startswith("//")} == set()
    assert {address for address in fetched if address.endswith(".js")}
    styles = "\n".join(path.read_text() for path in built_site.rglob("*.css"))
    assert "url(http" not in styles
    assert "@import" not in styles


def test_a_copy_button_copies_commands_without_prompt_and_output(built_site: Path) -> None:
    page = (built_site / "docs" / "quickstart.html").read_text()
    assert '<span class="gp">$ </span>kind' in re.sub(r"<span></span>|<a [^>]*></a>", "", page)
    assert "site.css" in page
    assert "[data-md-copying] :is(.gp, .go) { display: none; }" in (built_site / "docs" / "site.css").read_text()


def test_links_are_found_dead_where_file_or_anchor_is_missing(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<h1 id="top">a</h1><a href="b.html#here">1</a><a href="b.html#gone">2</a><a href="c.html">3</a>'
        '<a href="#top">4</a><a href="http://plain.example">5</a><img src="no.png"><a href="https://ok.example/x">6</a>'
    )
    (tmp_path / "b.html").write_text('<h2 id="here">b</h2>')
    assert list(links.dead(tmp_path, links.pages(tmp_path))) == [
        "a.html: b.html#gone: no such anchor",
        "a.html: c.html: no such file",
        "a.html: http://plain.example: not an https address",
        "a.html: no.png: no such file",
    ]
