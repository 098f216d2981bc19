"""The part of a cross-validation that proves its choice of lam / lambda_max."""

from __future__ import annotations

import logging
import warnings

import numpy as np

from triscreen._utils.checkpoint import look
from triscreen._utils.validation import as_positive, shortened
from triscreen.errors import ConvergenceWarning, InputError
from triscreen.estimators.base import scale_of_lambda
from triscreen.estimators.candidates import improvement
from triscreen.estimators.certified import TOL, certified_choice, dense
from triscreen.estimators.folds import named
from triscreen.estimators.ratios import LARGEST_WITH_PRIOR, without_leaps
from triscreen.estimators.starts import make_start
from triscreen.path import solve_path

_log = logging.getLogger(__name__)


class Certifying:
    """What `TripletMetricCV` does where ``certify`` is given."""

    def _check_certify(self):
        """Return eps, or None."""
        eps = as_positive(self.certify, "certify", none="no proof")
        if eps is not None and not (self.scoring is None or self.scoring == "accuracy"):
            raise InputError(f"scoring={shortened(self.scoring)}: certify proves the error of neighbours, which is "
                             "scoring=None or 'accuracy'")  # fmt: skip
        if eps is not None and self.n_components is not None:
            raise InputError(f"n_components={self.n_components!r}: certify proves the error of the whole metric, so it "
                             "must be None")  # fmt: skip
        return eps

    def _certify(self, eps, starts, chosen, euclid, parts, X, y, weights, begin, tell):
        """Search the whole range of ratios of the chosen start; return (the candidate, the ratios to walk).

        None of these: a start alone. Of Euclid the range is that of the start "identity", or of the first.
        """
        candidate = chosen or next((c for c in starts if c.name == "identity"), starts[0])
        ratios, n_folds = dense(candidate.ratios), len(parts) - 1
        walked, places = without_leaps(ratios, 1.0 if candidate.prior is None else LARGEST_WITH_PRIOR)
        paths, scales, data = [], [], []
        for k, (train, test) in enumerate(parts[:-1]):
            with named(k, train):
                N, left = make_start(candidate.prior, X[train], y[train], self.cone), 2 * n_folds - k + 1
                problem, _ = self._problem_after_rounds(candidate, N, k, train, X, y, weights, begin, left, tell, None)
                scale = scale_of_lambda(problem)
                arguments = {**self._arguments(begin, left), "tol": min(TOL, self.tol)}
                if self.checkpoint is not None:
                    arguments["checkpoint"] = self._folder(candidate, candidate.before, k, True).with_suffix(".certify")
                path = solve_path(problem, lambdas=walked * scale, callback=tell, **arguments)
            paths.append((path.take(places[places < len(path)]), problem))
            scales.append(scale)
            data.append((X[train], y[train], X[test], y[test]))
            _log.info("certify, fold %d of %d: %d lambdas", k + 1, n_folds, len(path))
        alone = euclid if chosen is None or chosen.prior is None or chosen.before else candidate.alone
        seconds = self._arguments(begin, 1.0)["max_seconds"]
        folder = None if self.checkpoint is None else self._folder_of_search(candidate)
        found = certified_choice(
            eps, ratios, paths, data, self.score_neighbors, scales, 1 - alone[:, 1], seconds, folder
        )
        self._keep_certified(found, candidate, chosen, euclid)
        if found.ratio == np.inf:
            return (None if alone is euclid else chosen), None
        return candidate, np.append(candidate.ratios[candidate.ratios > found.ratio], found.ratio)

    def _folder_of_search(self, candidate):
        """Return the folder of the checkpoint of a search: another one for each number of neighbours that vote."""
        folder = self._folder(candidate, candidate.before, 0, False)
        return folder.with_name(f"search-{self.score_neighbors}-{folder.name}")

    def _look_at_searches(self, whole):
        """Refuse a checkpoint with a search that is damaged."""
        for folder in whole.glob("search-*"):
            look(folder)

    def _folder_to_the_end(self, folder):
        """Return the folder of the path over all points, which ends at the ratio of a proof."""
        return folder if self.certify is None else folder.with_name(f"{folder.name}-at-{self.lam_ratio_:.17g}")

    def _keep_certified(self, found, candidate, chosen, euclid):
        """Say what was proven, and chosen by that."""
        self.selection_gap_, self.possible_ratios_ = found.gap, found.possible
        self.certified_ratios_, self.error_lower_, self.error_upper_ = found.ratios, found.lower, found.upper
        self.lam_ratio_, self.best_score_ = found.ratio, 1 - found.error
        self.improvement_ = improvement(1 - found.errors, euclid[:, 1])
        if found.ratio < np.inf:
            self.chosen_, self.ratios_, self.cv_scores_ = candidate.name, candidate.ratios, candidate.scores[:, :, 0]
            self.best_index_ = int(np.argmin(np.abs(np.log(candidate.ratios / found.ratio))))
        else:
            self.best_index_ = -1
            self.chosen_ = "euclid" if chosen is None or chosen.prior is None or chosen.before else chosen.name
        _log.info("certified: error %.4f at lam/lambda_max %.3g, no other ratio from %.3g to %.3g is better by more "
                  "than %.4f (%d lambdas solved)", found.error, found.ratio, found.ratios[0], found.ratios[-1],
                  found.gap, found.n_solved)  # fmt: skip
        if found.stopped_by != "eps":
            warnings.warn(
                f"certify={self.certify!r}: it ended by {found.stopped_by} with a gap of {found.gap:.4g}; ratios that "
                "may still be better by more than that are in possible_ratios_",
                ConvergenceWarning, stacklevel=2,
            )  # fmt: skip
