"""What the site consists of, without building it (`make docs`): names, pages, examples, targets of make."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

import triscreen as ts
from public import MODULES, public_names

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


@pytest.fixture
def site(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS / "site"))
    import pages
    import reference

    yield pages, reference
    for name in ("pages", "reference"):
        del sys.modules[name]


def test_every_public_name_is_in_the_api_reference(site, tmp_path):
    _, reference = site
    reference.write(tmp_path)
    listed = (tmp_path / "api.rst").read_text(encoding="utf-8")
    for name in public_names():
        assert f"   {name}\n" in listed, name
        assert (tmp_path / f"{name}.rst").exists(), name
    assert {f"triscreen.{name}" for name in ts.__all__} <= set(public_names())


def shown():
    """Yield (where, code) of every block of Python in README, CONTRIBUTING and docs, and of every example."""
    for file in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.glob("*.md")):
        for code in re.findall(r"```python\n(.*?)```", file.read_text(encoding="utf-8"), flags=re.DOTALL):
            yield file.name, code
    for file in (ROOT / "examples").glob("*.py"):
        yield file.name, file.read_text(encoding="utf-8")


def test_what_is_shown_is_public():
    """What a reader is told to import, or to reach through ts, has types, a docstring and a place in the reference."""
    public = set(public_names())
    for where, code in shown():
        for node in ast.walk(ast.parse(code)):
            names = []
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "triscreen":
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Attribute):
                names = [ast.unparse(node).replace("ts.", "triscreen.", 1)]
            for name in names:
                if re.fullmatch(r"triscreen(\.[a-z_]+)*(\.\w+)", name) and name not in MODULES:
                    assert name in public or name.rpartition(".")[0] in public, f"{where}: {name}"


def test_names_stand_under_a_heading_of_the_way_of_the_data(site):
    _, reference = site
    assert set(reference.groups()) <= set(reference.HEADINGS.values()), "give the new home a heading"


def test_a_docstring_keeps_its_bars_underscores_and_code(site):
    _, reference = site
    lines = ["|M|^2 of ``|M|``, components_ and `solve_`", ">>> a * b_", "c_", "", "a * b, *every* one"]
    reference.escaped(None, None, None, None, None, lines)
    wanted = [r"\|M\|^2 of ``|M|``, components\_ and `solve_`", ">>> a * b_", "c_", "", r"a \* b, *every* one"]
    assert lines == wanted


def test_types_that_have_a_page_are_links_to_it(site):
    _, reference = site
    lines = ["path : Path or None", "    The Path.", "a_, b : int", "Returns", "-------", "Bounds", "* |M|, a"]
    reference.escaped(None, None, None, None, None, lines)
    path, bounds = (f":py:obj:`{name} <triscreen.{name}>`" for name in ("Path", "Bounds"))
    wanted = [f"path : {path} or None", "    The Path.", r"a\_, b : int", "Returns", "-------", bounds, r"* \|M\|, a"]
    assert lines == wanted


def test_names_that_are_described_together_are_one_entry(site):
    _, reference = site
    after = ["    Four numbers.", "e : int", "    For a, b,", "    c."]
    lines = ["Parameters", "----------", "a, b,", "c, d :", *after]
    reference.escaped(None, None, None, None, None, lines)
    assert lines == ["Parameters", "----------", "a, b, c, d :", *after]


def test_pages_are_called_by_their_titles_on_the_site(site):
    pages, _ = site
    source = ["See [path.md](path.md#solvers), [`x.md`](x.md) and [SECURITY.md](../SECURITY.md)."]
    pages.links_inside(None, "page", source)
    assert source == ["See [](path.md#solvers), [`x.md`](x.md) and [](generated/security.md)."]


def test_every_page_is_in_a_toctree():
    texts = "\n".join(file.read_text(encoding="utf-8") for file in DOCS.glob("*.md"))
    trees = "\n".join(re.findall(r"```\{toctree\}\n(.*?)```", texts, flags=re.DOTALL))
    listed = set(re.findall(r"[\w/-]+", trees))
    for file in DOCS.glob("*.md"):
        assert file.stem == "index" or file.stem in listed, file.name


def test_llms_txt_has_every_page_and_every_example(site):
    text = site[0].llms(ROOT)
    for file in DOCS.glob("*.md"):
        assert file.stem in ("README", "index") or f"({file.stem}.html): " in text, file.name
    for file in (ROOT / "examples").glob("plot_*.py"):
        assert f"(gallery/{file.stem}.html)" in text, file.name


def test_workflows_call_targets_of_make_that_exist():
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    for file in (ROOT / ".github" / "workflows").glob("*.yml"):
        called = re.findall(r"make ([\w\- ]+?)(?: \w+=|$)", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
        assert called, file.name
        for target in " ".join(called).split():
            assert target in targets, f"{file.name}: make {target}"


def test_what_is_ours_is_marked():
    """The paper's authors get what is theirs, and nothing else."""
    maths = (DOCS / "maths.md").read_text(encoding="utf-8")
    for idea in (
        "MID",
        "tubes",
        "the optimum with a prior",
        "balls between two solutions",
        "pairs leave, without a list",
    ):
        assert f"| ours | {idea} |" in maths, idea


def test_every_extra_is_in_the_user_guide():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    extras = text.split("[project.optional-dependencies]")[1].split("\n[")[0]
    guide = (DOCS / "user-guide.md").read_text(encoding="utf-8")
    for extra in set(re.findall(r"^(\w+) = \[", extras, flags=re.MULTILINE)) - {"bench", "docs", "test"}:
        assert f"triscreen[{extra}]" in guide, extra


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) < 90


def test_the_version_is_in_one_place():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert 'dynamic = ["version"]' in text
    for file in (ROOT / "pyproject.toml", ROOT / "CITATION.cff", DOCS / "conf.py"):
        assert ts.__version__ not in file.read_text(encoding="utf-8"), file.name
