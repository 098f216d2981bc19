"""Small problems to the end: cvxpy with clarabel and SCS."""

from __future__ import annotations

from benchmarks.experiments import common
from benchmarks.experiments.common import sig

TITLE = "Exact solvers on small problems"
SOLVERS = ("triscreen", "clarabel", "scs")
SIZES = (("iris", 2), ("iris", 4), ("wine", 4), ("wine", 8))


def cells(quick, seeds):
    return [
        {"kind": "exact", "data": data, "k": k, "solver": solver}
        for data, k in (SIZES[:1] if quick else SIZES)
        for solver in SOLVERS
    ]


def show(results):
    rows, ratios = [], []
    for data, k in SIZES:
        found = {solver: results.get({"kind": "exact", "data": data, "k": k, "solver": solver}) for solver in SOLVERS}
        if found["triscreen"] is None:
            continue
        ours = found["triscreen"]
        row = [f"{data}, k = {k}", f"{ours['triplets']:,}", ours["d"]]
        row += [
            "no result" if one is None else f"{sig(one['seconds'])} s, {one['rel_gap']:.0e}" for one in found.values()
        ]
        ratios += [one["seconds"] / ours["seconds"] for name, one in found.items() if one and name != "triscreen"]
        rows.append(row)
    if not rows:
        return "Not run.\n", {}
    lines = [
        "Seconds, and the relative gap recomputed from what each returned (projected onto the cone), at lambda_max "
        "/ 100; "
        "defaults of cvxpy's solvers, 1e-9 asked of triscreen:",
        "",
        common.table(("", "triplets", "d", "triscreen", "clarabel", "SCS"), rows),
        "",
        f"- The general solvers take {sig(min(ratios))} to {sig(max(ratios))} times as long." if ratios else "",
    ]
    return "\n".join(lines) + "\n", {}
