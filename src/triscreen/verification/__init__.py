"""Proofs in ball arithmetic that share no code with what they are about: read this folder, and trust nothing else."""

from triscreen.verification.gaps import Verification, Verifier, verify
from triscreen.verification.neighbours import check_neighbours
from triscreen.verification.regions import margins_in, nearer_between

__all__ = ["Verification", "Verifier", "check_neighbours", "margins_in", "nearer_between", "verify"]
