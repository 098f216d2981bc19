"""What sets whose triplets have no numbers refuse, and what they can do in its place."""

from __future__ import annotations

from triscreen.errors import InputError


def _one_by_one(name):
    def refuse(self, *_, **__):
        raise InputError(
            f"{name} looks at triplets one by one, and {self.unlisted}; a solver that needs it says so: "
            "needs = ('triplets',)"
        )

    return refuse


class NeverListed:
    """For sets whose triplets have no numbers: what would look at them one by one is refused, with a sentence.

    In its place they can let go whole pairs, with `reduce`.
    """

    lists_triplets = False
    unlisted = "all triplets are never listed"  # why they have no numbers
    sweep_alpha = _one_by_one("sweep_alpha")
    ascend = _one_by_one("ascend")
    pair_numbers = _one_by_one("pair_numbers")
    decide = _one_by_one("decide")
    undecided_in = _one_by_one("undecided_in")
    quadratic = _one_by_one("quadratic")
    let_go = _one_by_one("let_go")
    cross_slack = _one_by_one("cross_slack")
    corner_change = _one_by_one("corner_change")

    def reduce(self, ends, radii, error, offset, low, both, smoothing, threads, most=1.0):
        """Let go what is decided in two balls at once.

        Parameters
        ----------
        ends : pair of distances
            At the two centres (twice the same: one ball). At the first, every decided triplet has the alpha of its
            zone.
        radii : pair of float
        error : float
            Bound of the error of a margin at either centre.
        offset : float
            Bound of the error of |delta|^2 from a product of matrices.
        low : float
            Margins below it are linear, with the smoothing given.
        both : bool
            Fix linear triplets too; False: only those of zero loss.
        smoothing : float
            Of the alphas that the pair weights of what goes are made of.
        threads : Threads
        most : float
            Nothing goes if more than this share of the pairs would have to stay.

        Returns
        -------
        Reduction
        """
        raise NotImplementedError
