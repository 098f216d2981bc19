"""Print the lowest version of everything that pyproject.toml names, as constraints for pip: `make test-oldest`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

# Linters and builders change what they say, not what triscreen does: any version will do.
ANY = {"build", "hatchling", "mypy", "ruff"}


def constraints(text):
    """Return lines name==version; where a name occurs twice, the higher floor holds."""
    floors = {}
    for name, version in re.findall(r'"([A-Za-z0-9_.-]+)(?:\[[^\]]*\])?>=([0-9.]+)', text):
        key = tuple(int(part) for part in version.split("."))
        if name not in ANY and floors.get(name, ((), ""))[0] < key:
            floors[name] = (key, version)
    return [f"{name}=={version}" for name, (_, version) in sorted(floors.items())]


if __name__ == "__main__":
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    sys.stdout.write("\n".join(constraints(text)) + "\n")
