"""Words for messages; nothing is imported for them."""

from __future__ import annotations


def shortened(value):
    """What an argument was, in a few words."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else text[:57] + "..."
