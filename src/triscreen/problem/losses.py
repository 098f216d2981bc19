"""Losses of the margin m = <M, H>: zero beyond 1, linear below, with or without a smooth corner.

    SmoothedHinge(g)   l(m) = a (1 - m) - (g/2) a^2,  a = clip((1 - m)/g, 0, 1)
    Hinge()            l(m) = max(0, 1 - m)                                          (g = 0)

Their dual term is a - (g/2) a^2 for 0 <= a <= 1, and l(m) - a (1 - m) + (g/2) a^2 >= 0 is what choosing another a
than the best costs (the *slack*; zero for a = -l'(m)). All alphas the engine makes are clip((1 - m)/s, 0, 1) for some
smoothing s; the sums of such a sweep tell the loss, the dual term and the slack of either loss.
"""

from __future__ import annotations

from dataclasses import dataclass

from triscreen._utils.validation import as_positive
from triscreen.errors import InputError
from triscreen.triplets import Sums


@dataclass(frozen=True)
class SmoothedHinge:
    """The hinge with its corner replaced by a parabola of width gamma.

    Parameters
    ----------
    gamma : float
        Width of the quadratic part, 1 - gamma <= m <= 1; positive (`Hinge` is the limit at 0).

    References
    ----------
    Yoshida, Takeuchi, Karasuyama, KDD 2018, arXiv:1802.03923, section 2.1.

    Examples
    --------
    >>> import triscreen as ts
    >>> loss = ts.SmoothedHinge(gamma=0.05)
    >>> loss(0.0)
    0.975
    """

    gamma: float = 0.05

    def __post_init__(self):
        object.__setattr__(self, "gamma", as_positive(self.gamma, "gamma"))

    def __call__(self, margin: float) -> float:
        """The loss of one margin."""
        alpha = min(max((1.0 - margin) / self.gamma, 0.0), 1.0)
        return alpha * (1.0 - margin) - 0.5 * self.gamma * alpha * alpha

    @property
    def smoothings(self) -> tuple[float, ...]:
        """The smoothings whose alphas a certificate tries: only the loss's own, whose slack is zero."""
        return (self.gamma,)

    def value(self, sums: Sums) -> float:
        """Sum of w l(m)."""
        return sums.loss

    def dual_term(self, sums: Sums) -> float:
        """Sum of w (a - (g/2) a^2)."""
        return sums.alpha - 0.5 * self.gamma * (sums.alpha - sums.spread)

    def slack(self, sums: Sums) -> float:
        """Sum of w (l(m) - a (1 - m) + (g/2) a^2)."""
        return 0.0


@dataclass(frozen=True)
class Hinge:
    """The plain hinge, max(0, 1 - m).

    Its alpha is not determined at the corner; alphas of a smoothed problem are feasible all the same, and their
    slack is s times the sum of w a (1 - a).

    References
    ----------
    Yoshida, Takeuchi, Karasuyama, KDD 2018, arXiv:1802.03923, section 2.1; the gap of smoothed alphas is ours
    (docs/maths.md).

    Examples
    --------
    >>> import triscreen as ts
    >>> ts.Hinge()(0.25)
    0.75
    """

    gamma = 0.0

    def __call__(self, margin: float) -> float:
        """The loss of one margin."""
        return max(0.0, 1.0 - margin)

    @property
    def smoothings(self) -> tuple[float, ...]:
        """The smoothings whose alphas a certificate tries: powers of 4 from 1 down to 4^-20 = 1e-12."""
        return tuple(4.0**-e for e in range(21))

    def value(self, sums: Sums) -> float:
        """Sum of w l(m)."""
        return sums.loss + 0.5 * sums.smoothing * (sums.alpha + sums.spread)

    def dual_term(self, sums: Sums) -> float:
        """Sum of w a."""
        return sums.alpha

    def slack(self, sums: Sums) -> float:
        """Sum of w (l(m) - a (1 - m))."""
        return sums.smoothing * sums.spread


def loss_of(gamma):
    """Return the loss with a corner of width gamma: the hinge for 0."""
    return SmoothedHinge(gamma) if gamma != 0 else Hinge()


def check_loss(loss):
    """Return the loss if it is one."""
    if not isinstance(loss, Hinge | SmoothedHinge):
        raise InputError(f"loss={loss!r}: loss must be ts.SmoothedHinge(gamma) or ts.Hinge()")
    return loss
