"""A property that is computed once, without a lock."""

from __future__ import annotations


class cached_property:
    """Like functools', which before Python 3.12 holds one lock for all instances while it computes.

    Two threads with a problem each would wait for each other, and a child that is forked meanwhile for ever. Without a
    lock two threads may compute the same value of the same object at the same time: the same value, twice.
    """

    def __init__(self, compute):
        self.compute, self.__doc__ = compute, compute.__doc__

    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        value = instance.__dict__[self.name] = self.compute(instance)  # looked up before this the next time
        return value
