"""Any file, all of it or nothing: the public part of `triscreen._utils.archive`."""

from triscreen._utils.archive import replacing

__all__ = ["replacing"]
