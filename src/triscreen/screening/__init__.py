"""Which triplets cannot matter: spheres that hold M*, rules that decide triplets on them, ranges of lambda."""

from triscreen.screening.config import Screening
from triscreen.screening.spheres import Sphere

__all__ = ["Screening", "Sphere"]
