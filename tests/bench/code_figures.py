"""Size of the product's code: lines of Rust without tests for each crate, public types, functions over 60 lines.

    python code_figures.py [CHECKOUT]

Counts `crates/` alone: no test files, no folders of tests, examples and benches, no items and modules under `#[cfg(test)]` or the
feature `testing`, no generated code.
"""

import collections
import re
import sys
from pathlib import Path

SKIPPED = {"tests", "examples", "benches", "generated", "target", "codegen"}
TEST_ITEM = re.compile(r"\s*#\[cfg\((all\(|any\()?(test|feature = \"testing\")")
MODULE = re.compile(r"\s*(?:pub(?:\([a-z]+\))? )?mod (\w+);")
ITEM = re.compile(r"\s*(pub(\([a-z]+\))? )?(mod|fn|impl|struct|enum|use|const|static|type|trait)\b")
TYPE = re.compile(r"\s*(pub(\([a-z]+\))? )?(struct|enum|trait|union) \w")
FUNCTION = re.compile(r"(\s*)(pub(\([a-z]+\))? )?(async |const |unsafe |extern \"C\" )*fn \w")


def end_of(lines, start):
    """Index behind the item that begins at `start`."""
    indent = re.match(r"\s*", lines[start]).group(0)
    for at in range(start, len(lines)):
        text = lines[at].rstrip()
        if at == start and text.endswith((";", "}")):
            return at + 1
        if at > start and text.startswith((f"{indent}}}", f"{indent});")):
            return at + 1
    return len(lines)


def split_tests(text):
    """The lines of the product, and the names of the modules in files of their own that only tests have."""
    lines, kept, modules, at = text.splitlines(), [], [], 0
    while at < len(lines):
        if TEST_ITEM.match(lines[at]):
            item = at + 1
            while item < len(lines) and re.match(r"\s*#\[", lines[item]):
                item += 1
            if item < len(lines) and ITEM.match(lines[item]):
                modules += MODULE.findall(lines[item])
                at = end_of(lines, item)
                continue
        kept.append(lines[at])
        at += 1
    return kept, modules


def product_files(crates):
    """Path and product lines of each file; modules that only tests have are left out with all below them."""
    found, tests = {}, set()
    for path in sorted(crates.rglob("*.rs")):
        if SKIPPED & set(path.relative_to(crates).parts) or path.name == "tests.rs" or path.name.endswith("_tests.rs"):
            continue
        found[path], modules = split_tests(path.read_text())
        folder = path.parent if path.name in ("mod.rs", "lib.rs", "main.rs") else path.with_suffix("")
        tests.update(folder / name for name in modules)
    return {path: lines for path, lines in found.items() if not tests & {path.with_suffix(""), *path.parents}}


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[2])
    lines, types, long = collections.Counter(), 0, 0
    for path, kept in product_files(root / "crates").items():
        parts = path.relative_to(root).parts
        lines["/".join(parts[: parts.index("src")] if "src" in parts else parts[:-1])] += len(kept)
        types += sum(bool(TYPE.match(line)) for line in kept)
        long += sum(bool(FUNCTION.match(line)) and end_of(kept, n) - n > 60 for n, line in enumerate(kept))
    for name, count in sorted(lines.items()):
        print(f"{count:7} {name}")
    print(f"{sum(lines.values()):7} lines of Rust without tests, {types} types, {long} functions over 60 lines")


if __name__ == "__main__":
    main()
