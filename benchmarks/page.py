"""Make a page from results: benchmarks.md and its figures.

python benchmarks/page.py [--results FOLDER] [--docs FOLDER]
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:  # run as a script
    sys.path.insert(0, str(ROOT))

from benchmarks.cells import name_of  # noqa: E402
from benchmarks.datasets import DATA  # noqa: E402
from benchmarks.experiments import EXPERIMENTS  # noqa: E402
from benchmarks.experiments.common import CLAIM, SAID, Results, sig, table  # noqa: E402
from benchmarks.experiments.speed import HISTORY  # noqa: E402
from benchmarks.experiments.verdicts import HOLDS, MISSED, OPEN, subsamples  # noqa: E402

HEAD = """# Benchmarks: the paper's tables and figures, peers, scaling

Made by `benchmarks/page.py` from the files that `benchmarks/run.py` (`make bench`) wrote; do not edit by hand.

{about}

How to read it. The paper's seconds are of another machine and another program, so only ratios within one table stand
next to each other, ours before the paper's. The methods of a table took turns, one lambda after the other, so that what
disturbed the machine for a while disturbed all of them. {seeds} (the paper took the mean of five).

Every gap in here is recomputed from the metrics alone (`benchmarks/objective.py`, which shares no code with the
solvers). {graded:,} metrics of paths were graded; a relative gap of 1e-6 was asked for and the largest found is
{worst:.2e}. Of {lambdas:,} lambdas {missed:,} did not reach it.

Paths labelled with the paper's bounds walk as the paper did: one lambda after the other on a fixed list, projected
gradient with Barzilai-Borwein steps, from the last solution, screening before the first iteration and every ten.

## The paper's claims

Each claim is one or more numbers against a bar (the bars are in `benchmarks/experiments/`), one number a subsample.
With the interval mean ± t s / √n (Student, 95 %; n subsamples, s their standard deviation; what stands behind ± in the
tables) a claim *holds* if all of the interval is on its side of the bar, *does not hold* if none of it is, and is
*undecided* otherwise, always with fewer than three subsamples. A claim about several data sets holds if it does on
each, and does not hold if it does not on one. Subsamples are 90 % of the same points, so that intervals say how far
numbers wander on these data, not what other data would give; nothing is taken off for there being many intervals. Cells
that take long have fewer subsamples, which their tables say; a race that is cut ends for all methods at the same
lambda.

{claims}
"""


def read(folder, history=HISTORY):
    """Return the `Results` of a folder, with the lines of the history."""
    folder = Path(folder)
    if not (folder / "run.json").exists():
        raise ValueError(f"results={str(folder)!r} holds no run: run python benchmarks/run.py first")
    run = json.loads((folder / "run.json").read_text())
    files = sorted(file for file in folder.glob("*.json") if file.name != "run.json")
    lines = history.read_text().splitlines() if history.exists() else []
    records = [json.loads(file.read_text()) for file in files]
    return Results(records, run["quick"], run["seeds"], [json.loads(line) for line in lines])


def page(results, docs):
    """Write benchmarks.md and figures/bench-*.svg into the folder docs; return the file."""
    docs = Path(docs)
    (docs / "figures").mkdir(parents=True, exist_ok=True)
    texts, parts = {}, []
    for name, experiment in EXPERIMENTS.items():
        text, figures = experiment.show(results)
        texts[name] = text
        parts.append(f"## {title_of(name, results.quick)}\n\n{experiment.__doc__.splitlines()[0]}\n\n{text}")
        for title, figure in figures.items():
            save(figure, docs / "figures" / f"bench-{title}.svg")
            parts.append(f"![{title}](figures/bench-{title}.svg)\n")
        parts.append(f"`python benchmarks/run.py {name}`\n")
    file = docs / "benchmarks.md"
    file.write_text("\n".join([head(results, texts), data_table(results), *parts]))
    return file


def save(figure, file):
    import matplotlib.pyplot as plt

    figure.savefig(file, metadata={"Date": None}, dpi=110)
    plt.close(figure)


def head(results, texts):
    """What was run, where, how the metrics were graded, and which claims hold."""
    records = list(results.records.values())
    if not records:
        raise ValueError("the run has no result yet: nothing to show")
    races = [record["result"] for record in records if "cases" in record["result"]]
    seeds = len({record["cell"]["seed"] for record in records if "cases" in record["result"]})
    graded = [one for race in races for one in race["cases"].values()]
    worst = max((one["worst_rel_gap"] for one in graded), default=float("nan"))
    counts = [len(one["seconds"]) for one in graded]
    return HEAD.format(
        about=about(records, results),
        seeds=f"Up to {subsamples(seeds)}" if seeds > 1 else "One random subsample",
        claims=claims(texts, results.quick),
        graded=sum(one["graded"] for one in graded),
        worst=worst,
        lambdas=sum(counts),
        missed=sum(counts) - sum(one["converged"] for one in graded),
    )


def title_of(name, quick):
    """Return the heading of an experiment; a quick run has other data than the title says."""
    title = EXPERIMENTS[name].TITLE
    return re.sub(r" \([^()]*\)$", "", title) + " (small data)" if quick else title


def tables(results, names):
    """Return what some experiments have to show, as text."""
    import matplotlib.pyplot as plt

    parts = []
    for name in names:
        text, figures = EXPERIMENTS[name].show(results)
        for figure in figures.values():
            plt.close(figure)
        parts.append(f"{title_of(name, results.quick)}\n\n{text}")
    return "\n".join(parts)


def claims(texts, quick):
    """How many claims of the paper hold, experiment by experiment, and which do not."""
    rows = []
    for name, text in texts.items():
        lines = [line for line in text.splitlines() if line.startswith(CLAIM)]
        if lines:
            title = title_of(name, quick)
            by = {outcome: [_claimed(line, said) for line in lines if said in line] for outcome, said in SAID.items()}
            rows.append((f"[{title}](#{anchor(title)})", f"{len(by[HOLDS])} of {len(lines)}",
                         *("<br>".join(by[outcome]) for outcome in (MISSED, OPEN))))  # fmt: skip
    return table(("", "hold", "do not hold", "undecided"), rows)


def _claimed(line, said):
    """What the paper says, out of a line with a verdict."""
    text = line.split(said)[0].removeprefix(CLAIM).strip()
    return text[0].upper() + text[1:]


def anchor(title):
    """Return the address of a heading, as GitHub makes it."""
    return re.sub(r"[^a-z0-9 _-]", "", title.lower()).replace(" ", "-")


def about(records, results):
    machines = Counter(json.dumps(record["machine"], sort_keys=True) for record in records)
    machine = json.loads(machines.most_common(1)[0][0])
    commits = sorted({record["commit"] for record in records})
    where_from = f"All cells of commit {commits[0]}" if len(commits) == 1 else "**Cells of several commits**: "
    where_from += ", ".join(commits) * (len(commits) > 1)
    versions = {name: value for name, value in records[0]["versions"].items() if value}
    dates = sorted(record["date"][:10] for record in records)
    hours = sum(record["seconds"] for record in records) / 3600
    cut = sum(record["status"] == "cut" for record in records)
    wanted = len({name_of(cell) for name, one in EXPERIMENTS.items() if name != "speed"
                  for cell in one.cells(results.quick, results.seeds)})  # fmt: skip
    wanted = max(wanted, len(records))
    what = "**Quick run**: small problems, to see that everything works; its numbers mean little.\n\n" * results.quick
    when = dates[0] + (f" to {dates[-1]}" if dates[-1] != dates[0] else "")
    where = f"{machine['cpu']}, {machine['cores']} cores, {machine['gigabytes']} GB, {machine['system']}"
    return (
        f"{what}{len(records)} cells in {hours:.2g} hours, {when}; {cut} cut at their time limit; "
        f"{wanted - len(records)} of the {wanted} that {subsamples(results.seeds)} of everything would be "
        f"were left out. Machine: {where}"
        f"{' (and others)' if len(machines) > 1 else ''}. {where_from}. "
        + ", ".join(f"{name} {value}" for name, value in versions.items()) + "."
    )  # fmt: skip


def data_table(results):
    """The data as they were, next to the paper's table."""
    seen = {}
    for record in results.records.values():
        cell, found = record["cell"], record["result"]
        usual = cell["kind"] != "exact" and cell.get("loss", "smoothed") == "smoothed" and cell.get("seed") == 0
        if "lambda_max" in found and usual and (cell["data"] not in seen or cell.get("points") is None):
            seen[cell["data"]] = (found, cell)
    rows = []
    for name, row in DATA.items():
        if name not in seen or row.paper is None:
            continue
        found, cell = seen[name]
        paper = row.paper
        note = f"stands for {row.stands_for}, which could not be had" if row.stands_for else ""
        if cell.get("points"):
            note += ("; " if note else "") + f"{cell['points']:,} points drawn first"
        rows.append((name, f"{found['n']:,} x {found['d']}", f"{found['triplets']:,}", sig(found["lambda_max"], 3),
                     f"{paper.n:,} x {paper.d}", f"{paper.triplets:,}", f"{paper.lambda_max:.2g}", note))  # fmt: skip
    text = (
        "## Data\n\n90 % of the points at random, as in the paper (its table lists all points, but the triplets of "
        "90 %); "
        "[-1, 1] per feature for iris, wine, segment, satimage; PCA where the paper used an autoencoder (a9a, "
        "mnist, cifar10), "
        "so their lambda_max is not the paper's.\n\n"
    )
    header = ("", "points", "triplets", "lambda_max", "paper: points", "triplets", "lambda_max", "")
    return text + table(header, rows) + "\n"


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", default=str(ROOT / "build" / "bench"), help="folder of the results")
    parser.add_argument("--docs", default=str(ROOT / "build" / "bench-docs"), help="folder of the page")
    wanted = parser.parse_args(arguments)
    try:
        print(page(read(wanted.results), wanted.docs))
    except ValueError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
