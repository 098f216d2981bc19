"""After a build: every link inside the site leads to a page, and to a place on it; every example has run."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).parents[2]


class Page(HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors = set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        """Collect."""
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.add(value)
            elif name in ("id", "name") and value:
                self.anchors.add(value)


def html_of(site):
    """Return the pages; what a theme keeps among its own files is none."""
    return [file for file in sorted(site.rglob("*.html")) if "_static" not in file.relative_to(site).parts]


def broken(site):
    """Yield (page, link) of what leads nowhere."""
    pages = {file: Page(file.read_text(encoding="utf-8")) for file in html_of(site)}
    for file, page in pages.items():
        for link in sorted(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            target = target / "index.html" if target.is_dir() else target
            there = target in pages or target.exists()
            if not there or (parts.fragment and target in pages and not at(pages[target], parts.fragment)):
                yield file.relative_to(site), link


def at(page, fragment):
    """Is this place on the page?"""
    return unquote(fragment) in page.anchors or not fragment


def not_run(site):
    """Yield the examples without a page, or without a picture."""
    for file in sorted((ROOT / "examples").glob("plot_*.py")):
        page = site / "gallery" / f"{file.stem}.html"
        if not page.exists() or "sphx-glr-single-img" not in page.read_text(encoding="utf-8"):
            yield file.name


if __name__ == "__main__":
    site = Path(sys.argv[1]).resolve()
    wrong = [f"{page}: {link} leads nowhere" for page, link in broken(site)]
    wrong += [f"{name}: it has not run" for name in not_run(site)]
    if not (site / "llms.txt").exists():
        wrong.append("llms.txt is missing")
    sys.stdout.write("\n".join(wrong) + "\n" if wrong else f"{len(html_of(site))} pages, every link leads somewhere\n")
    sys.exit(bool(wrong))
