"""What README, CONTRIBUTING and the pages show works as shown, and what they name is there."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

from test_imports import STAGES
from test_theorem_index import found

ROOT = Path(__file__).parents[1]
PAGES = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "CONTRIBUTING.md"]
TEXTS = [*PAGES, ROOT / "README.md", ROOT / "AGENTS.md"]


def python_blocks(file):
    return re.findall(r"```python\n(.*?)```", (ROOT / file).read_text(), flags=re.DOTALL)


BLOCKS = [(page, number) for page in TEXTS for number in range(len(python_blocks(page)))]


@pytest.mark.parametrize(("page", "number"), BLOCKS, ids=[f"{page.name}-{number}" for page, number in BLOCKS])
def test_a_block_of_code_runs_on_its_own(page, number, tmp_path, monkeypatch):
    """As somebody would paste it: in an empty folder, with nothing before it."""
    monkeypatch.chdir(tmp_path)
    code = python_blocks(page)[number]
    before = logging.getLogger().handlers[:], logging.getLogger("triscreen").level
    try:
        exec(compile(code, f"{page.name}, block {number}", "exec"), {"__name__": "pasted"})
    finally:
        logging.getLogger().handlers[:] = before[0]
        logging.getLogger("triscreen").setLevel(before[1])


def anchors(text):
    """The anchors of a page's headings, as they are made of their words."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if "://" in link:
            continue
        file, _, anchor = link.partition("#")
        target = (page.parent / file) if file else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target.read_text(encoding="utf-8")), link


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_and_modules_that_are_named_exist(page):
    text = page.read_text(encoding="utf-8")
    for name in re.findall(r"`((?:triscreen|tests|benchmarks|examples|docs)/[\w/.-]+)`", text):
        assert (ROOT / name).exists() or (ROOT / "src" / name).exists(), name
    for name in re.findall(r"`(triscreen(?:\.\w+)+)`", text):
        assert found(name) is not None, name


def test_the_architecture_has_the_stages_and_the_folders_that_there_are():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = text.split("## The stages", 1)[1].split("\n## ", 1)[0]
    assert re.findall(r"^\| `(\w+)` \|", table, flags=re.MULTILINE) == STAGES
    package = ROOT / "src" / "triscreen"
    there = {item.stem for item in package.iterdir() if item.suffix == ".py" or (item / "__init__.py").exists()}
    beside = {name.removesuffix(".py") for name in re.findall(r"`(\w+\.py)`", table)}
    assert there == {*STAGES, *beside}


def test_every_page_is_in_the_list_of_pages():
    text = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    for page in (ROOT / "docs").glob("*.md"):
        assert page.name == "README.md" or f"({page.name})" in text, page.name
