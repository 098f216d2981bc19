"""Ctrl-C at any call of a kernel or projection."""

from __future__ import annotations

import numpy as np
import pytest

import triscreen as ts
from triscreen._utils.threads import Threads
from triscreen.problem.cones import PSD


class Interrupter:
    """Raises KeyboardInterrupt at the n-th call of any kernel or projection (and, if told so, at all that follow)."""

    def __init__(self, monkeypatch):
        self.calls, self.at, self.again = 0, None, False
        for owner, name in ((Threads, "run"), (PSD, "project"), (PSD, "check")):
            monkeypatch.setattr(owner, name, self.watched(getattr(owner, name)))

    def watched(self, function):
        def call(*arguments, **named):
            self.calls += 1
            if self.at is not None and (self.calls == self.at or (self.again and self.calls > self.at)):
                raise KeyboardInterrupt
            return function(*arguments, **named)

        return call

    def count(self, verb):
        """How many calls a verb makes (the second time: a problem keeps some of what it computes)."""
        verb()
        self.calls, self.at = 0, None
        verb()
        return self.calls

    def result(self, verb, at, again=False):
        """What a verb gives if it is interrupted at a call."""
        self.calls, self.at, self.again = 0, at, again
        with pytest.raises(ts.Interrupted) as caught:
            verb()
        self.at = None
        return caught.value.result


def spread(total, most):
    """At most so many of 1 ... total, the first and the last among them."""
    return np.unique(np.linspace(1, total, min(total, most)).round().astype(int))
