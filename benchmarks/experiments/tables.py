"""Our estimators next to the published figures of 12 metric learners, on the same folds."""

from __future__ import annotations

from collections import Counter

import numpy as np
from scipy.stats import rankdata

from benchmarks.cells.tables import NCA_STEPS
from benchmarks.experiments import common
from benchmarks.experiments.common import sig
from benchmarks.experiments.verdicts import HOLDS, MISSED, OPEN
from benchmarks.experiments.verdicts import above as verdict

TITLE = "A published comparison of metric learners"
SETS = (
    "appendicitis", "banana", "cleveland", "glass", "ionosphere", "letter", "monk-2", "newthyroid", "page-blocks",
    "pima", "satimage", "sonar", "texture", "titanic", "vehicle", "wdbc", "winequality-red",
)  # fmt: skip
QUICK = ("appendicitis", "newthyroid")
OURS = ("triscreen-cv", "triscreen", "triscreen-within")
RUN = (*OURS, "euclid", "nca")
LABELS = {
    "euclid": "Euclid", "nca": "NCA", "triscreen-cv": "TripletMetricCV()", "triscreen": "TripletMetric()",
    "triscreen-within": 'TripletMetric(prior="within")',
}  # fmt: skip
# A set counts as worse than Euclid from so many paired standard errors and so many points on.
ERRORS, POINTS = 2.0, 1.0


def cells(quick, seeds):
    return [{"kind": "table", "table": name, **({"folds": 2} if quick else {})} for name in (QUICK if quick else SETS)]


def show(results):
    got = {cell["table"]: results.get(cell) for cell in cells(results.quick, results.seeds)}
    got = {name: found for name, found in got.items() if found and found["starts"]}
    if not got:
        return "Not run.\n", {}
    text = [
        f"{len(got)} small data sets, folds and published figures of jlsuarezdiaz/pyDML-Stats (2020). Features scaled "
        "to [0, 1] by the training rows, accuracy of 3 nearest neighbours on the test rows, mean of the folds. Ours "
        f"with their defaults, one thread; Euclid and scikit-learn's NCA (defaults, at most {NCA_STEPS} iterations) "
        "ran on the same folds in the same run. Rank: of each of ours among the 12 published methods and itself, by "
        "four digits, ties half; a method that failed is last. Less Euclid: TripletMetricCV() less Euclid in points, "
        "with the standard error of the difference, paired over the folds.",
        "",
        accuracies(got),
        "",
        "Average over the data sets, the 12 published methods with TripletMetricCV() as the 13th:",
        "",
        averages(got),
        "",
        *sentences(got),
        "",
        "Where TripletMetricCV() began, in how many folds, and seconds of one fit (mean of the folds):",
        "",
        choices(got),
    ]
    return "\n".join(text) + "\n", {"tables": draw(got)}


def mean(found, method):
    return round(float(np.mean(found["accuracy"][method])), 4)


def rank(found, ours):
    """Return {method: rank}, ours and the published ones; who failed is last."""
    scores = {**found["published"], ours: mean(found, ours)}
    ranks = rankdata([np.inf if score is None else -score for score in scores.values()])
    return dict(zip(scores, ranks.tolist(), strict=True))


def gain(found, method="triscreen-cv"):
    """Return (accuracy less Euclid's, its standard error paired over the folds), in points."""
    rest = 100 * np.subtract(found["accuracy"][method], found["accuracy"]["euclid"])
    return float(rest.mean()), float(rest.std(ddof=1) / np.sqrt(len(rest))) if len(rest) > 1 else 0.0


def best(found):
    """Return (accuracy, name) of the best published method."""
    return max((score, name) for name, score in found["published"].items() if score is not None)


def accuracies(got):
    header = ["", "points", *(f"{LABELS[name]} (rank)" for name in OURS), "Euclid", "NCA", "best published",
              "less Euclid"]  # fmt: skip
    rows = []
    for name, found in got.items():
        cut = f", {len(found['starts'])} of {found['folds']} folds" if found["cut"] else ""
        ours = [f"{mean(found, method):.4f} ({rank(found, method)[method]:g})" for method in OURS]
        others = [f"{mean(found, method):.4f}" for method in ("euclid", "nca")]
        rows.append([name + cut, f"{found['n']:,} x {found['d']}", *ours, *others, "{:.4f} ({})".format(*best(found)),
                     "{:+.1f} ± {:.1f}".format(*gain(found))])  # fmt: skip
    return common.table(header, rows)


def averages(got):
    """Every method's average accuracy and rank, the best rank first; then those that are not among the 13."""
    ranks = [rank(found, OURS[0]) for found in got.values()]
    rows = []
    for method in sorted(ranks[0], key=lambda method: average_rank(ranks, method)):
        name = f"**{LABELS[method]}**" if method in OURS else f"{method}, published"
        rows.append([name, average(got, method), f"{average_rank(ranks, method):.2f}"])
    for method in OURS[1:]:
        ranks = [rank(found, method) for found in got.values()]
        rows.append([f"{LABELS[method]}, in its place", average(got, method), f"{average_rank(ranks, method):.2f}"])
    rows += [[f"{LABELS[method]}, run here", average(got, method), ""] for method in ("euclid", "nca")]
    return common.table(["", "accuracy", "rank"], rows)


def average(got, method):
    """Return the mean accuracy as text; of a method that failed somewhere, that on the other sets."""
    scores = [mean(found, method) if method in RUN else found["published"][method] for found in got.values()]
    there = [score for score in scores if score is not None]
    texts = [f"{np.mean(there):.4f}"] if there else []
    if len(there) < len(scores):
        texts.append(f"failed on {len(scores) - len(there)}")
    return ", ".join(texts)


def average_rank(ranks, method):
    return np.mean([one[method] for one in ranks])


def sentences(got):
    gains = {name: gain(found) for name, found in got.items()}
    worse = [name for name, (points, error) in gains.items() if points < -max(ERRORS * error, POINTS)]
    above, level = (sum(np.sign(points) == sign for points, _ in gains.values()) for sign in (1, 0))
    lowest = min(gains, key=lambda name: gains[name][0])
    decided = [verdict(np.subtract(found["accuracy"][OURS[0]], found["accuracy"]["euclid"])) for found in got.values()]
    first = sum(mean(found, OURS[0]) >= best(found)[0] for found in got.values())
    return [
        f"- TripletMetricCV() is above Euclid on {above} of {len(got)} data sets and level on {level}; by more than "
        f"{ERRORS:g} standard errors and {POINTS:g} point below it on {len(worse)}"
        + (f" ({', '.join(worse)})" if worse else "")
        + ". Its lowest: {:+.1f} ± {:.1f} points, {}.".format(*gains[lowest], lowest),
        f"- By the criterion at the top of this page, with the folds as subsamples: above Euclid on "
        f"{decided.count(HOLDS)}, below it on {decided.count(MISSED)}, undecided on {decided.count(OPEN)}.",
        f"- It is as good as the best published method or better on {first} of {len(got)}.",
    ]


def choices(got):
    rows = []
    for name, found in got.items():
        chosen = ", ".join(f"{start} {count}" for start, count in Counter(found["starts"]).most_common())
        rows.append([name, chosen, *(sig(np.mean(found["seconds"][m])) for m in (*OURS, "nca"))])
    total = [sig(sum(sum(found["seconds"][m]) for found in got.values())) for m in (*OURS, "nca")]
    rows.append(["all folds together", "", *total])
    return common.table(["", "start", *(LABELS[m] for m in (*OURS, "nca"))], rows)


def draw(got):
    """Points above Euclid, data set by data set: ours with two standard errors, NCA, the best published method."""
    fig, ax = common.new_figure(width=7.2, height=3.4)
    order = sorted(got, key=lambda name: gain(got[name])[0])
    places = np.arange(len(order))
    values, errors = zip(*(gain(got[name]) for name in order), strict=True)
    tops = [100 * (best(got[name])[0] - mean(got[name], "euclid")) for name in order]
    ax.axhline(0, color="#999999", linewidth=1)
    ax.plot(places, tops, "_", color="#d55e00", markersize=11, label="best of the 12 published")
    ax.plot(places + 0.2, [gain(got[name], "nca")[0] for name in order], "v", color="#e69f00", markersize=4,
            label="scikit-learn NCA")  # fmt: skip
    ax.errorbar(places, values, 2 * np.array(errors), fmt="o", color="#0072b2", markersize=5, linewidth=1,
                label="TripletMetricCV(), two standard errors")  # fmt: skip
    ax.set_xticks(places, order, rotation=60, ha="right")
    ax.set_ylabel("points above Euclid")
    ax.grid(visible=True, axis="y", alpha=0.25)
    ax.legend(loc="upper left")
    return fig
