"""Rules compared: GB and PGB, with half-space and cone (the paper's figure "Screening rule comparison on segment")."""

from __future__ import annotations

import numpy as np

from benchmarks.experiments import common
from benchmarks.experiments.common import NAMES, claim, differences, mean_of, percent, ratios, sig
from benchmarks.experiments.verdicts import above, all_of, below, shares, subsamples
from benchmarks.experiments.verdicts import show as spread

TITLE = "Rules compared (segment)"
CASES = ("none", "gb", "pgb", "gb+linear", "pgb+semidefinite")
SAMPLED = "gb+semidefinite"


def races(quick, seeds):
    return common.races(CASES, seeds, **(common.QUICK if quick else {"data": "segment"}))


def sampled(quick, seeds):
    where = {"data": "segment"} if not quick else {**common.QUICK, "stops": 5, "sample": 40}
    return [{"kind": "sampled", "bound": "gb", **where, "seed": seed} for seed in range(seeds)]


def cells(quick, seeds):
    return races(quick, seeds) + sampled(quick, seeds)


def gather(results, cases, cells):
    """Return {case: lambdas, rates and seconds along the path, totals}, means over subsamples, and the runs."""
    found = {case: results.races(cells, case) for case in cases}
    return {
        case: {
            "lambdas": min((one["lambdas"] for one in some), key=len),
            "rate": mean_of(some, "first_rate"),
            "end": mean_of(some, "last_rate"),
            "seconds": mean_of(some, "seconds"),
            "total": common.total(some),
            "passes": common.mean(some, "passes"),
            "screening": common.mean(some, "screening"),
            "far": common.how_far(some),
            "facts": some[0],
            "runs": some,
        }
        for case, some in found.items()
        if some
    }


def halves(one):
    """Mean rates of the first and of the later half of the path, one number a subsample each."""
    parts = [np.array([np.nan if v is None else v for v in run["first_rate"]], dtype=float) for run in one["runs"]]
    middle = [len(part) // 2 for part in parts]
    first = [float(np.nanmean(part[:end])) for part, end in zip(parts, middle, strict=True)]
    return first, [float(np.nanmean(part[end:])) for part, end in zip(parts, middle, strict=True)]


def whole(one, key="first_rate"):
    """Mean rate of the whole path, one number a subsample."""
    return [float(np.nanmean([np.nan if v is None else v for v in run[key]])) for run in one["runs"]]


def gains(got, case, by="seconds"):
    """How many times faster than no screening, one number a subsample; or how many times fewer passes."""
    return ratios(*([np.sum(run[by]) for run in got[name]["runs"]] for name in ("none", case)))


def rate_table(got):
    rows = []
    for case, one in got.items():
        first, later = ("", "") if case == "none" else map(shares, halves(one))
        rows.append((NAMES[case], first, later, spread(common.seconds_of(one["runs"]), None),
                     spread(gains(got, case)), spread(gains(got, case, "passes")),
                     percent(one["screening"] / one["total"], 0) if case != "none" else ""))  # fmt: skip
    header = (
        "",
        "rate, first half",
        "rate, later half",
        "seconds",
        "times faster than none",
        "times fewer passes",
        "part spent on screening",
    )
    one = next(iter(got.values()))
    far = f" Over {one['far']}: the race came no further in time." if one["far"] else ""
    return common.table(header, rows) + f"\n\nMean of {subsamples(len(one['runs']))}.{far}"


def draw(got, title, extra=None, zoom=True):
    """Rates and time ratios along the path, and the rates enlarged near their top."""
    fig, axes = common.new_figure(columns=3 if zoom else 2, width=9.6 if zoom else 7.2, height=3.3)
    rate, ratio = axes[0], axes[1]
    for case, one in got.items():
        x = common.minus_log(one["lambdas"])
        if case != "none":
            for ax in (axes[0], axes[2]) if zoom else (axes[0],):
                ax.plot(x, one["rate"], label=NAMES[case], **common.style(case))
            ratio.plot(x, common.smooth(one["seconds"] / got["none"]["seconds"]), **common.style(case))
    if extra is not None:
        for ax in (axes[0], axes[2]) if zoom else (axes[0],):
            ax.plot(common.minus_log(extra["lambdas"]), extra["rate"], "o", markersize=3.5, label=NAMES[SAMPLED],
                    color=common.COLOURS[SAMPLED], linestyle="none")  # fmt: skip
    rate.set(title="decided before the first iteration", ylabel="share of triplets", ylim=(-0.02, 1.02))
    ratio.axhline(1, color="#999999", linewidth=0.8)
    ratio.set(title="time over that of no screening", yscale="log")
    common.plain_ticks(ratio.yaxis, (0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10, 20, 50))
    if zoom:
        best = np.nanmax([np.nanmax(one["rate"]) for case, one in got.items() if case != "none"])
        ends = [
            np.nanmin(one["rate"][len(one["rate"]) // 2 :]) for case, one in got.items() if case not in ("none", "gb")
        ]
        low = max(0.0, min(ends, default=0.8) - 0.03)
        later = common.minus_log(next(iter(got.values()))["lambdas"])
        axes[2].set(title="the later half, enlarged", ylim=(low, min(1.0, best + 0.02)),
                    xlim=(later[len(later) // 2], later[-1]))  # fmt: skip
    for ax in np.ravel(axes):
        ax.set_xlabel("-log10(lambda)")
        ax.locator_params(axis="x", nbins=6)
        ax.grid(visible=True, alpha=0.25)
    handles, labels = rate.get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower center", ncols=min(6, len(labels)))
    fig.suptitle(title, fontsize=10)
    return fig


def show(results):
    got = gather(results, CASES, races(results.quick, results.seeds))
    if not {"none", "gb", "pgb"} <= set(got):
        return "Not run.\n", {}
    some = list(filter(None, map(results.get, sampled(results.quick, results.seeds))))
    extra = None
    if some:
        extra = {"lambdas": min((one["lambdas"] for one in some), key=len), "rate": mean_of(some, "first_rate")}
    lines = [rate_table(got), ""]
    later = {case: halves(one)[1] for case, one in got.items() if case != "none"}
    lines.append(
        claim("all rules but GB keep a high rate along the whole path, and GB's drops severely in the later half.",
              all_of(below(ratios(later["gb"], later["pgb"]), 0.5), above(later["pgb"], 0.6)),
              f"in the later half GB decides {shares(later['gb'])}, PGB {shares(later['pgb'])}"
              + (f", GB + linear {shares(later['gb+linear'])}." if "gb+linear" in later else "."))
    )  # fmt: skip
    if "gb+linear" in got:
        lines += [_efficient(got), _linear(later)]
    if extra is not None:
        lines.append(_sampled(got, extra, some))
    if "pgb+semidefinite" in got:
        lines.append(
            claim("the sphere rule with PGB is the most cost-effective; the dearer rules do not beat it in time.",
                  all_of(*(below(ratios(*(common.seconds_of(got[name]["runs"]) for name in ("pgb", case))), 1.05)
                           for case in got if case not in ("none", "pgb"))),
                  ", ".join(f"{NAMES[case]} {sig(one['total'], 3)} s" for case, one in got.items()) + ".")
        )  # fmt: skip
    data = "wine, quick run" if results.quick else "segment"
    return "\n".join(lines) + "\n", {"rules": draw(got, f"Rules on {data}", extra)}


def _efficient(got):
    gain = {case: gains(got, case) for case in ("pgb", "gb+linear")}
    work = {case: spread(gains(got, case, "passes")) for case in gain}
    part = {case: percent(got[case]["screening"] / got[case]["total"], 0) for case in gain}
    return claim(
        "PGB and GB + linear are the most efficient, 2 to 10 times faster than no screening.",
        all_of(*(above(one, 2.0) for one in gain.values())),
        f"{spread(gain['pgb'])} and {spread(gain['gb+linear'])} times in seconds; in pair work (passes) {work['pgb']} "
        f"and {work['gb+linear']} times, and screening itself takes {part['pgb']} and {part['gb+linear']} of their "
        "time. What they save where every triplet costs O(d^2) is in *What each part gains*.",
    )


def _linear(later):
    more = differences(later["gb+linear"], later["pgb"])
    missed = above(more, 0.0) == "does not hold"
    return claim(
        "GB + linear decides slightly more than PGB.", above(more, 0.0),
        f"{shares(later['gb+linear'], 2)} and {shares(later['pgb'], 2)} in the later half"
        + ("; the theorem puts GB + linear inside PGB, so what is missing is our rule's fault." if missed else "."),
    )  # fmt: skip


def _sampled(got, extra, some):
    """What a sample of the dear rule says, next to the others at the same lambdas and on the same subsamples."""
    where = common.minus_log(extra["lambdas"])

    def at_same(run):
        return float(
            np.nanmean(np.interp(where, common.minus_log(run["lambdas"]), [v or 0.0 for v in run["first_rate"]]))
        )

    others = {case: [at_same(run) for run in one["runs"][: len(some)]] for case, one in got.items() if case != "none"}
    best = max(others, key=lambda case: np.mean(others[case]))
    ours = [float(np.mean(one["first_rate"])) for one in some][: len(others[best])]
    return claim(
        "GB + semidefinite has the highest rate, but its eigendecompositions cost too much.",
        all_of(*(above(differences(ours, one), 0.0) for one in others.values())),
        f"{shares(ours)} against {shares(others[best])} for {NAMES[best]} at the same lambdas (from samples of what GB "
        f"left: {sig(float(np.median(some[0]['microseconds'])))} microseconds a triplet, up to "
        f"{sig(max(some[0]['seconds_for_all']), 3)} s for one screening of all).",
    )
