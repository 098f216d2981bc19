"""From a path to one HTML page that needs nothing else: no network, no other file."""

from __future__ import annotations

import json
import os
from html import escape
from importlib import resources
from string import Template

import numpy as np

from triscreen._utils.archive import replacing
from triscreen._utils.extras import wanted
from triscreen.errors import InputError
from triscreen.path import Path
from triscreen.path.facts import Facts
from triscreen.report import tables
from triscreen.report.details import suspects_csv, weights_of
from triscreen.report.intervals import counted

_DIRECTIONS, _FEATURES = 20, 15


def write_report(path: Path, file: str | os.PathLike[str]) -> None:
    """Write the report of a path: what was learned, what was proven, how lambda was chosen.

    Parameters
    ----------
    path : Path
        With its `gather`-ed facts, if points, errors and screening maps shall be shown.
    file : path
        The HTML file; it appears when it is complete.

    References
    ----------
    docs/report.md; the figures are those of the paper, KDD 2018.

    Examples
    --------
    >>> import os, tempfile
    >>> import triscreen as ts
    >>> from sklearn.datasets import load_iris
    >>> from triscreen.report import gather, write_report
    >>> X, y = load_iris(return_X_y=True)
    >>> problem = ts.Problem(X, ts.knn_triplets(X, y, k=3))
    >>> path = ts.solve_path(problem, ratio=0.5, tol=1e-3)
    >>> facts = gather(path, problem, X, y, source="iris")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(path, os.path.join(folder, "report.html"))
    ...     os.listdir(folder)
    ['report.html']
    """
    page = render(path).encode("utf-8", "replace")  # a name of a file need not be text
    with replacing(file) as stream:
        stream.write(page)


def render(path):
    """Return the page as text."""
    if not len(path):
        raise InputError("path has no lambda: there is nothing to report")
    get_plotlyjs = wanted("plotly.offline", "reports", "report").get_plotlyjs
    data = numbers_of(path)
    here = resources.files("triscreen.report")
    return Template(here.joinpath("page.html").read_text(encoding="utf-8")).substitute(
        title=escape(data["title"]),
        css=here.joinpath("page.css").read_text(encoding="utf-8"),
        start=_start(data) + _incomplete(path),
        tiles="\n".join(_tiles(data)),
        table=_table(data),
        influence=tables.influence(path.facts or Facts(), data["influence"], path.n_triplets),
        suspects=tables.suspects(path.facts or Facts()),
        held_out=tables.held_out(path.facts or Facts()),
        use=tables.use(path, path.facts or Facts(), data["frames"][data["first"]]),
        last=len(data["frames"]) - 1,
        first=data["first"],
        # A script ends at the first "</", whatever it is in.
        data=json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c"),
        plotly=get_plotlyjs(),
        script=here.joinpath("page.js").read_text(encoding="utf-8"),
    )


def numbers_of(path):
    """Return everything that the page shows, as plain numbers and texts."""
    facts = path.facts or Facts()
    frames, errors = np.arange(len(path)) if facts.frames is None else facts.frames, facts.errors
    data = {
        "title": f"A metric for {facts.source}" if facts.source else "A metric from triplets",
        "n_triplets": path.n_triplets,
        "n_features": path.n_features,
        "n_points": facts.n_points,
        "n_pairs": facts.n_pairs,
        "n_test": facts.n_test,
        "k": facts.k,
        "classes": facts.classes,
        "cone": path.cone,
        "prior": facts.prior,
        "tol": path.tol,
        "stopped_by": path.stopped_by,
        "converged": int(path.converged.sum()),
        "frames": frames.tolist(),
        "lambdas": _short(path.lambdas),
        "rel_gaps": _short(np.maximum(path.rel_gaps, 1e-16)),
        "losses": _short(path.losses),
        "decided": _short(path.screening_rates),
        "safe": _short(path.safe_rates),
        "proven": _short(path.proven_rates),
        "passes": _short(path.passes),
        "seconds": _short(path.seconds),
        "n_iter": path.n_iter.tolist(),
        "error_of": facts.error_of,
        "error_before": facts.error_before,
        "errors": None if errors is None else _short(errors),
        "best": None if errors is None else int(np.argmin(errors)),
        "suspects_csv": None if facts.suspects is None else suspects_csv(facts),
        "first": len(frames) // 2 if errors is None else int(np.argmin(errors)),
        "band": _band(path, facts),
        "influence_of": facts.influence_of,
        "influence": _influence_rows(facts),
        "coloured": None if facts.coloured is None else facts.coloured.tolist(),
        "alike_of": facts.alike_of,
        "alike_before": None if facts.alike is None else facts.alike_before.tolist(),
        "alike": None if facts.alike is None else facts.alike.tolist(),
    }
    if errors is not None:
        data["error_said"] = (
            f"error of {data['k']} nearest neighbours on {data['n_test']:,} points not learned from"
            if facts.error_of == "neighbours"
            else f"share in the wrong order of {data['n_test']:,} comparisons not learned from"
        )
    for name in ("before", "after", "sample_classes", "dynamic", "ranges"):
        data[name] = _short(np.round(facts[name], 3)) if name in facts else None
    for name in ("stops", "dynamic_iterations"):
        data[name] = facts[name].tolist() if name in facts else None
    data["rates"] = {name: _short(np.array(values)) for name, values in (facts.rates or {}).items()}
    spectra = [_spectrum(path, t) for t in frames]
    data["spectrum"] = [_short(values[:_DIRECTIONS]) for values in spectra]
    data["ranks"] = [int(np.count_nonzero(values > 1e-6)) for values in spectra]
    names = facts.feature_names or [f"feature {j}" for j in range(path.n_features)]
    data["features"] = []
    for shares in (weights_of(path, t, facts.feature_spread) for t in frames):
        top = np.argsort(-shares, kind="stable")[:_FEATURES]
        data["features"].append([[names[j], _short(shares[j])] for j in top])
    return data


def _band(path, facts):
    """Return the corners of what is proven of the error for every lambda, in runs of intervals that are alike."""
    if facts.band_lambdas is None:
        return None
    shares, lower, upper = facts.band_lambdas / path.lambdas[0], facts.band_lower, facts.band_upper
    worse = lower > upper.min()
    runs = np.split(np.arange(len(lower)), 1 + np.flatnonzero(np.diff(worse)))
    return [
        {
            "worse": bool(worse[run[0]]),
            "x": _short(np.repeat(shares[run[0] : run[-1] + 2], 2)[1:-1]),
            "lower": _short(np.repeat(lower[run], 2)),
            "upper": _short(np.repeat(upper[run], 2)),
        }
        for run in runs
    ]


def _spectrum(path, t):
    """Return shares of the eigenvalues of M."""
    L = path.components(t)
    factor = L if L.shape[0] <= L.shape[1] else L.T
    values = np.maximum(np.linalg.eigvalsh(factor @ factor.T)[::-1], 0.0) if len(L) else np.zeros(1)
    return values / (values.sum() or 1.0)


def _short(values):
    """Return numbers (nested lists of them) with five digits: a page has no use for more; NaN as None."""
    values = np.asarray(values, dtype=float)
    if values.ndim:
        return [_short(value) for value in values]
    return float(f"{values:.5g}") if np.isfinite(values) else None


def _tiles(data):
    """Yield the story in four numbers."""
    compared = f" among {data['n_points']:,} points" if data["n_points"] else ""
    yield _tile(f"{data['n_triplets']:,}", f"comparisons “a is closer to b than to c”{compared}")
    shown = data["frames"][data["first"]]
    safe, proven = (float(np.mean(data[name])) for name in ("safe", "proven"))
    said = (
        "of them left out, on average along the path: safe beforehand (spheres and ranges, before the solve) + proven "
        "afterwards (not in the working set, and the final gap shows that they do not matter). "
        f"At the lambda this page opens with: {data['safe'][shown]:.1%} + {data['proven'][shown]:.1%}"
    )
    yield _tile(f"{safe:.1%} + {proven:.1%}", said)
    gap = max(data["rel_gaps"])
    said = f"largest relative gap of {len(data['lambdas'])} metrics: no other has a lower objective by more than it"
    missed = len(data["lambdas"]) - data["converged"]
    if missed:
        said += f" ({missed} missed the {data['tol']:.0e} asked for)"
    yield _tile(f"{gap:.1e}", said)
    if data["errors"] is not None:
        n, before, best = data["n_test"], data["error_before"], data["errors"][data["best"]]
        points = data["error_of"] == "neighbours"
        few, those = ("", "points") if points else (", as if comparisons were independent", "comparisons")
        said = (
            f"{data['error_said']}: {counted(before, n)} before, {counted(best, n)} at the best lambda{few}. "
            f"That lambda was chosen on these very {those}, so the second number is too kind; no interval knows of that"
        )
        yield _tile(f"{round(before * n):,} \u2192 {round(best * n):,} of {n:,} wrong", said)


def _incomplete(path):
    """Return what the page is without, in words, where the time was over before all of it was there."""
    missing = [f"lambdas after the {len(path)} here"] if path.stopped_by == "max_seconds" else []
    missing += [] if path.facts is None else path.facts.left_out
    if not missing:
        return ""
    said = f"Not all of it is here: there was no time for {escape(', '.join(missing))}."
    return f'\n<p class="lead" id="incomplete">{said}</p>'


def _start(data):
    """Return where the path begins, as a paragraph; nothing without a prior."""
    if data["prior"] is None:
        return ""
    said = f"It begins at a metric that was there before ({data['prior']}): the larger lambda, the closer to that one."
    return f'<p class="lead">{escape(said)}</p>'


def _tile(number, text):
    return f'<div class="tile"><strong>{escape(number)}</strong><span>{escape(text)}</span></div>'


def _influence_rows(facts):
    if facts.influence_names is None:
        return []
    rows = zip(facts.influence_names, facts.influence_shares, strict=True)
    return [[name, _short(share)] for name, share in rows if share <= 1]  # a larger bound says nothing


def _table(data):
    """Return one row per lambda: what the charts show, for whoever reads rather than looks."""
    heads = [
        "lambda",
        "lambda / first",
        "relative gap",
        "loss",
        "safe beforehand",
        "proven afterwards",
        "iterations",
        "passes",
    ]
    error = {}
    if data["errors"] is not None:
        heads.append("test error")
        error = {t: f"{value:.2%}" for t, value in zip(data["frames"], data["errors"], strict=True)}
    rows = ["<tr>" + "".join(f'<th scope="col">{head}</th>' for head in heads) + "</tr>"]
    for t, lam in enumerate(data["lambdas"]):
        cells = [
            f"{lam:.4g}",
            f"{lam / data['lambdas'][0]:.2e}",
            f"{data['rel_gaps'][t]:.1e}",
            f"{data['losses'][t]:.4g}",
            f"{data['safe'][t]:.1%}",
            f"{data['proven'][t]:.1%}",
            str(data["n_iter"][t]),
            f"{data['passes'][t]:.1f}",
        ]
        if error:
            cells.append(error.get(t, ""))
        rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    return "\n".join(rows)
