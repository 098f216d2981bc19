"""What `triscreen fit` tells of a fit: numbers for machines, sentences for people."""

from __future__ import annotations


def numbers_of(metric, n_points, scale, seconds):
    """Return what is told of a fitted metric."""
    told = {
        "n_points": n_points,
        "n_features": metric.n_features_in_,
        "n_triplets": metric.n_triplets_,
        "scale": scale,
        **begun(metric),
        "lam": metric.lam_,
        "rel_gap": metric.rel_gap_,
        "converged": bool(metric.converged_),
        "rank": len(metric.components_),
        "seconds": seconds,
    }
    if hasattr(metric, "best_score_"):
        told.update(lam_ratio=metric.lam_ratio_, right_votes=metric.best_score_)
    if hasattr(metric, "n_held_out_"):
        told.update(lam_ratio=metric.lam_ratio_, n_held_out=metric.n_held_out_)
    if getattr(metric, "error_before_", None) is not None:
        for name, (error, low, high) in (("before", metric.error_before_), ("after", metric.error_after_)):
            told.update({f"error_{name}": error, f"error_{name}_interval": [low, high]})
    if hasattr(metric, "vote_neighbors_"):
        told.update(vote_neighbors=metric.vote_neighbors_, vote_weights=metric.vote_weights_)
    if metric.truncation_ is not None:
        told["truncation"] = metric.truncation_
    if hasattr(metric, "selection_gap_"):
        told.pop("right_votes")
        told.update(error=1 - metric.best_score_, selection_gap=metric.selection_gap_,
                    possible_ratios=metric.possible_ratios_)  # fmt: skip
    return told


def begun(metric):
    """Return where a fitted metric began, and of a cross-validated one what that gained over Euclid."""
    from triscreen.estimators.starts import name_of

    if not hasattr(metric, "chosen_"):
        return {"start": "none" if getattr(metric, "prior_", None) is None else name_of(metric.prior)}
    gain, error = metric.improvement_
    known = gain == gain and error == error
    return {
        "start": metric.chosen_,
        "learned": metric.path_ is not None,
        "gain": gain,
        "gain_error": error,
        "gain_above_noise": bool(gain > error) if known else None,
    }


def verdict(numbers):
    """Return in a sentence what cross-validation chose, and whether metric learning helps."""
    start = "no prior" if numbers["start"] == "none" else numbers["start"]
    what = f"chosen: a path from {start}" if numbers["learned"] else f"chosen: {start}, without learning"
    if numbers["gain_above_noise"] is None:
        return f"{what}; the folds do not say how much better than Euclid that is"
    text = f"{what}; accuracy {numbers['gain']:+.2%} over Euclid on the same folds (standard error "
    text += f"{numbers['gain_error']:.2%})"
    return text if numbers["gain_above_noise"] else f"{text}, not above noise: metric learning does not help here"


def errors(numbers):
    """Return the errors before and after in a sentence, with counts and intervals."""
    n, said = numbers.get("n_held_out", numbers["n_points"]), []
    things = "comparisons" if "n_held_out" in numbers else "points"
    for name in ("before", "after"):
        error, (low, high) = numbers[f"error_{name}"], numbers[f"error_{name}_interval"]
        if error != error:
            return "the folds do not say what the error is"
        said.append(f"{error:.1%} ({error * n:.0f} of {n:,} {things}, 95 % interval {low:.1%} to {high:.1%})")
    if things == "comparisons":
        return f"held-out comparisons in the wrong order: {said[0]} -> {said[1]}; chosen on these, so it flatters"
    how = "of 3 neighbours"
    if "vote_neighbors" in numbers:
        k = numbers["vote_neighbors"]
        how = f"of {k} neighbour{'s' * (k > 1)} (weights: {numbers['vote_weights']})"
    return f"error {how} on held-out points: {said[0]} -> {said[1]}; chosen on these points, so it flatters"


def cut(cost, left):
    """Return in a sentence what fewer directions cost."""
    return (
        f"{left} of {cost['rank']} directions are kept, {cost['kept']:.1%} of the metric's trace: its objective is "
        f"above the optimum by at most {cost['rel_cost']:.2%} (certificate)"
    )
