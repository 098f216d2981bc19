"""Packages that only some features need: imported when these are used; where one is missing, its extra is named."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from triscreen.errors import MissingPackage


def wanted(module: str, what: str, extra: str) -> Any:
    """Return a module, or refuse with how to get it.

    Examples
    --------
    >>> wanted("json", "settings", "cli").dumps(1)
    '1'
    """
    package = module.split(".")[0]
    try:
        import_module(package)
        return import_module(module)
    except ModuleNotFoundError as err:
        if err.name is None or err.name.split(".")[0] != package:
            raise
        sentence = f"{package} is not installed: {what} need it (pip install 'triscreen[{extra}]')"
        raise MissingPackage(sentence) from None
