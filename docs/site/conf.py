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

html_theme = "alabaster"
html_theme_options = {"description": "An inference server for model repositories", "page_width": "72rem", "sidebar_width": "15rem"}
html_sidebars = {"**": ["about.html", "searchbox.html", "navigation.html"]}
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


def add_navigation(app, name, source):
    if name == root_doc:
        source[0] += "".join(navigation())


def setup(app):
    app.connect("source-read", add_navigation)
