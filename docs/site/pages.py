"""Pages of the site that lie elsewhere, CONTRIBUTING and the like, with their links turned; and llms.txt."""

from __future__ import annotations

import re

# From the place in the repository to the page of the site.
MOVED = {
    "CONTRIBUTING.md": "contributing",
    "CHANGELOG.md": "changelog",
    "CODE_OF_CONDUCT.md": "conduct",
    "SECURITY.md": "security",
}


def write(root, folder):
    """Write the pages to a folder below docs, with their links turned."""
    folder.mkdir(exist_ok=True)
    for source, page in MOVED.items():
        text = (root / source).read_text(encoding="utf-8")
        text = re.sub(r"\]\(docs/", "](../", text)
        for other, name in MOVED.items():
            text = text.replace(f"]({other}", f"]({name}.md")
        replace(folder / f"{page}.md", text.replace("](README.md", "](../index.md"))
    replace(folder / "llms.txt", llms(root))


def replace(file, text):
    """Write a file if it is another one: what did not change is not built again."""
    if not file.exists() or file.read_text(encoding="utf-8") != text:
        file.write_text(text, encoding="utf-8")


def links_inside(app, docname, source):
    """Turn links out of the folder of the docs to where these pages are on the site, and call pages by their titles."""
    for other, page in MOVED.items():
        source[0] = source[0].replace(f"](../{other}", f"](generated/{page}.md")
    source[0] = re.sub(r"(?<!`)\[[\w/-]+\.md\]\(", "[](", source[0])


def llms(root):
    """Return llms.txt: what triscreen is, and each page with whom it is for."""
    lines = [
        "# triscreen",
        "",
        "> Learns a Mahalanobis metric from labels or from triplets (a is closer to b than to c), to a certified",
        "> optimum, along a whole regularisation path; triplets that cannot matter are proven irrelevant on the way.",
        "",
        "## Pages",
        "",
    ]
    wants = purposes((root / "docs" / "README.md").read_text(encoding="utf-8"))
    for file in sorted((root / "docs").glob("*.md")):
        if file.name in ("README.md", "index.md"):
            continue
        title = re.search(r"^# (.*)$", file.read_text(encoding="utf-8"), flags=re.MULTILINE).group(1)
        lines.append(f"- [{title}]({file.stem}.html): to {wants[file.name]}")
    lines += ["", "## Examples", ""]
    for file in sorted((root / "examples").glob("plot_*.py")):
        title = file.read_text(encoding="utf-8").split('"""', 2)[1].strip().splitlines()[0]
        lines.append(f"- [{title}](gallery/{file.stem}.html)")
    lines += ["", "## Reference", "", "- [Every public name](generated/api.html): parameters, returns, an example"]
    return "\n".join(lines) + "\n"


def purposes(text):
    """Return {page: what one wants to do} of the table "which page for whom"."""
    rows = re.findall(r"^\| ([^|]+) \| (.+) \|$", text, flags=re.MULTILINE)
    return {page: want for want, cell in rows for page in re.findall(r"\((?:\.\./)?([\w-]+\.md)", cell)}
