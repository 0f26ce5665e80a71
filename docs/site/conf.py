"""The documentation as a site: `cargo xtask docs` builds it with Sphinx. The pages are those of the checkout, as they lie
there, so that their links work in both; sections and order are those of docs/index.md."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

project = "Galatea"
copyright = "the authors of Galatea, Apache-2.0"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "README"
include_patterns = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "docs/*.md", "docs/adr/*.md", "examples/*.md", "examples/*/README.md", "examples/seeds/*/README.md"]
exclude_patterns = ["target", "crates", "fuzz", "tests", "xtask", "container", "docs/site", ".git", ".github", "examples/models"]

# Links to headings are checked as GitHub makes them.
myst_heading_anchors = 4
highlight_language = "none"
# The blocks of some pages are forms of a text, and not whole ones.
suppress_warnings = ["misc.highlighting_failure"]

# Light and dark as the system has them, or by a button; works without scripts but for the search.
html_theme = "furo"
# Colours of code that can be read by everybody, on both grounds.
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
html_static_path = []
html_extra_path = ["index.html"]
html_copy_source = False
html_show_sphinx = False
html_title = "Galatea"

SECTION = re.compile(r"^## (.+)$", re.M)
LINK = re.compile(r"^\| \[[^\]]+\]\(([^)#]+)\.md\)", re.M)


def sections():
    """The headings of docs/index.md, each with its pages, from the root of the checkout on."""
    _, *parts = SECTION.split((ROOT / "docs/index.md").read_text())
    for title, text in zip(parts[::2], parts[1::2]):
        pages = ((ROOT / "docs" / f"{page}.md").resolve().relative_to(ROOT) for page in LINK.findall(text))
        yield title, [str(page.with_suffix("")) for page in pages if page != Path("README.md")]


def navigation():
    """A table of contents for each section, which the site shows at the side."""
    for title, pages in sections():
        listed = "\n".join(f"/{page}" for page in pages)
        yield f"\n```{{toctree}}\n:hidden:\n:caption: {title}\n:maxdepth: 1\n\n{listed}\n```\n"


# Pages that list the pages of a folder.
FOLDERS = {"docs/adr/index": "0*", "examples/seeds/README": "*/README"}


def add_navigation(app, name, source):
    if name == root_doc:
        source[0] += "".join(navigation())
    if name in FOLDERS:
        source[0] += f"\n```{{toctree}}\n:hidden:\n:glob:\n\n{FOLDERS[name]}\n```\n"


# What the generator and its theme leave out for people who use a keyboard or a screen reader.
ACCESSIBLE = {
    '<p class="caption" role="heading">': '<p class="caption" role="heading" aria-level="2">',
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="All pages">',
    '<aside class="toc-drawer': '<aside aria-label="This page" class="toc-drawer',
    '<th class="head"><p></p></th>': "<td></td>",
    '<div class="table-wrapper': '<div tabindex="0" class="table-wrapper',
    "<pre>": '<pre tabindex="0">',
}
ARTICLE = '<article role="main" id="furo-main-content">'


def make_accessible(app, error):
    if error:
        return
    for page in Path(app.outdir).rglob("*.html"):
        text = page.read_text()
        for before, after in ACCESSIBLE.items():
            text = text.replace(before, after)
        if "<h1" not in text:
            text = text.replace(ARTICLE, f"{ARTICLE}<h1>{page.stem.capitalize()}</h1>")
        page.write_text(text)


def setup(app):
    app.connect("source-read", add_navigation)
    app.connect("build-finished", make_accessible)
