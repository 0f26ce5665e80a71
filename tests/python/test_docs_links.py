"""Links between the pages of the checkout lead somewhere, to headings too. What is on the network is not asked."""

import re
import subprocess
from pathlib import Path
from urllib.parse import unquote

import pytest

from doc_pages import FENCE, ROOT

LINK = re.compile(r"(?<!\\)!?\[(?:[^\]\[]|\[[^\]]*\])*\]\(([^()\s]+(?:\([^()]*\))?[^()\s]*)\)")
CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.S)


def markdown_files():
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.split() if (ROOT / name).is_file()]


def anchors(path):
    """What links to the headings of a page name them, as GitHub and the site have it."""
    found, seen = set(), {}
    for title in re.findall(r"^#{1,6} (.+?) *#*$", FENCE.sub("", path.read_text()), re.M):
        title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)
        slug = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        count = seen[slug] = seen.get(slug, -1) + 1
        found.add(f"{slug}-{count}" if count else slug)
    return found


def faults(name):
    page = ROOT / name
    for link in LINK.findall(CODE.sub("", FENCE.sub("", page.read_text()))):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = unquote(link).partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or not target.is_relative_to(ROOT):
            yield f"{name}: ({link}): there is no {path}"
        elif anchor and anchor not in anchors(target):
            yield f"{name}: ({link}): no heading #{anchor}"


@pytest.mark.parametrize("name", markdown_files())
def test_the_links_of_a_page_work(name):
    assert not list(faults(name))


def test_broken_links_are_found(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    (tmp_path / "a.md").write_text("# One `two`, three\n[x](b.md) [y](#one-two-three) [z](#none) `[c](d.md)`\n```\n[e](f.md)\n```\n")
    assert list(faults("a.md")) == ["a.md: (b.md): there is no b.md", "a.md: (#none): no heading #none"]
