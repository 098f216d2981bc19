"""Run the benchmarks: the experiments of the paper by name, peers, scaling.

    python benchmarks/run.py [experiment ...] [--quick] [--minutes 100] [--data FOLDER] [--out FOLDER] [--seeds 5]
                             [--list]

Every cell (one method on one data set and one subsample, say) is one JSON file with its numbers, the machine, versions,
commit and date, written all at once. Cells of this commit that are there already are skipped, those of another commit
are measured again: an interrupted run goes on with the same command. With --minutes, the first subsample of everything
comes first, then further ones, the cheapest first, as far as the time goes (`plan.py`). Each cell of a full run has a
process of its own, so that one that takes too long can be ended, one that fails costs nothing but itself, and peak
memory is its own; kernels are loaded before anything is timed. `python benchmarks/page.py` makes the page of the docs
from the files.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:  # run as a script
    sys.path.insert(0, str(ROOT))

import triscreen  # noqa: E402
from benchmarks import plan  # noqa: E402
from benchmarks.cells import SIDE_BY_SIDE, measure, name_of  # noqa: E402
from benchmarks.cells.common import Context  # noqa: E402
from benchmarks.datasets import Missing  # noqa: E402
from benchmarks.experiments import EXPERIMENTS, speed  # noqa: E402

LIMIT = {False: 600.0, True: 30.0}  # seconds of a cell, full and quick
_GRACE = 300.0  # and so much more for loading, set-up and grading
_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "cvxpy", "clarabel", "scs")


def _folder(out, quick):
    return Path(out) if out else ROOT / "build" / ("bench-quick" if quick else "bench")


def run(experiments=None, quick=False, data=None, out=None, seeds=None, fetch=False, limit=None, interpreters=None,
        isolate=None, say=print, history=None, minutes=None, anyway=False):  # fmt: skip
    """Run the cells of some experiments that this commit has no file of yet.

    Parameters
    ----------
    experiments : sequence of str, optional
        All by default, but for "speed", which is run anew whenever it is named.
    quick : bool
        Small cells only, on data that come with scikit-learn: under three minutes.
    data : path, optional
        Folder of the data sets; by default the environment variable TRISCREEN_DATA.
    out : path, optional
        Folder of the results; by default ``build/bench``, or ``build/bench-quick``.
    seeds : int, optional
        Random subsamples, 5 by default (1 in quick mode).
    fetch : bool
        Get what the folder does not have from LIBSVM's site or OpenML.
    limit : float, optional
        Seconds of one cell.
    interpreters : dict, optional
        Peer to Python that has it installed.
    isolate : bool, optional
        Each cell in a process of its own; by default so in full mode (starting them is most of a quick run's time).
    say : callable
        Takes one line of text.
    history : path, optional
        A file that gets one line of JSON for each run of "speed".
    minutes : float, optional
        For everything, interruptions counted out: what would take longer is left out (see `plan`).
    anyway : bool
        Run a full run although src or benchmarks have changes that are not committed.

    Returns
    -------
    dict
        How many cells were "done", "there" before, "missing" (no data, no peer), "failed" and "left" for want of time.
    """
    experiments = list(experiments or (name for name in EXPERIMENTS if name != "speed"))
    for name in experiments:
        if name not in EXPERIMENTS:
            raise ValueError(f"experiment={name!r}: it must be one of {', '.join(EXPERIMENTS)}")
    seeds = seeds or (1 if quick else 5)
    about = _about()
    if not quick and not anyway and not plan.one_commit(about["commit"]):
        raise ValueError(
            f"commit={about['commit']!r}: all cells of a full run are of one commit; commit what has changed in "
            "src and benchmarks, or say --anyway"
        )
    folder = _folder(out, quick)
    state = plan.claim(folder, quick, seeds, about["commit"], write=_write)
    limit = limit or (LIMIT[quick] if minutes is None else min(LIMIT[quick], plan.LONGEST))
    options = {"folder": None if data is None else str(data), "fetch": fetch, "limit": limit,
               "interpreters": interpreters or {}}  # fmt: skip
    named = {name_of(cell): cell for name in experiments for cell in EXPERIMENTS[name].cells(quick, seeds)}
    more = [cell for name in experiments for cell in getattr(EXPERIMENTS[name], "more", lambda quick: [])(quick)]
    more = {name_of(cell): cell for cell in more if name_of(cell) not in named}
    named |= more
    todo = plan.Plan(named, folder, about["commit"], state["spent"], minutes, last=more)
    counts = dict.fromkeys(("done", "there", "missing", "failed", "left"), 0)
    counts["there"] = todo.n_there
    absent, isolate = set(), (not quick if isolate is None else isolate)
    try:
        while names := todo.next(2 if isolate else 1, SIDE_BY_SIDE):
            known = [name for name in names if not any(named[name].get(key) == value for key, value in absent)]
            counts["missing"] += len(names) - len(known)
            begin = time.perf_counter()
            for name, status, result, seconds in _measured({name: named[name] for name in known}, options, isolate):
                if status == "missing":
                    key = result["key"], named[name][result["key"]]
                    counts["missing"] += 1
                    if key not in absent:
                        say(f"skipped: {result['message']}")
                    absent.add(key)
                elif status == "failed":
                    counts["failed"] += 1
                    say(f"[{todo.n_taken}/{len(named)}] {name}: failed: {result.strip().splitlines()[-1]}")
                else:
                    date = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
                    record = {"cell": named[name], "status": status, "result": result, "seconds": seconds,
                              "at_once": len(known), "limit": limit, **about, "date": date}  # fmt: skip
                    _write(folder / f"{name}.json", record)
                    if record["cell"]["kind"] == "speed" and history:
                        with open(history, "a") as lines:
                            lines.write(json.dumps(speed.line(record)) + "\n")
                    counts["done"] += 1
                    cut = "cut after " if status == "cut" else ""
                    say(f"[{todo.n_taken}/{len(named)}] {name}: {cut}{seconds:.1f} s")
            todo.spend(time.perf_counter() - begin)
            _write(folder / "run.json", {**state, "spent": todo.spent})
    except KeyboardInterrupt:
        say(
            f"interrupted: {counts['done'] + counts['there']} of {len(named)} cells are in {folder}; the same "
            "command goes on"
        )
        raise
    counts["left"] = len(todo.left)
    say(
        f"{counts['done']} cells done, {counts['there']} were there, {counts['missing']} without data or peer, "
        f"{counts['failed']} failed, {counts['left']} left out for want of time; results in {folder}"
    )
    return counts


def _measured(cells, options, isolate):
    """Return (name, status, result, seconds) of cells that are measured at the same time."""

    def one(item):
        begin = time.perf_counter()
        status, result = (_in_a_process if isolate else _here)(item[1], options)
        return item[0], status, result, time.perf_counter() - begin

    if len(cells) < 2:
        return [one(item) for item in cells.items()]
    with ThreadPoolExecutor(len(cells)) as pool:
        return list(pool.map(one, cells.items()))


def _write(file, content):
    """Write JSON all at once: a file is whole, or not there."""
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    part.write_text(json.dumps(content) + "\n")
    part.replace(file)


def _here(cell, options):
    """Run a cell in this process; return (status, result or message)."""
    try:
        result = measure(cell, Context(**options))
    except Missing as error:
        return "missing", {"key": error.key, "message": str(error)}
    except Exception:
        return "failed", traceback.format_exc()
    return ("cut" if result.get("cut") else "ok"), result


def _in_a_process(cell, options):
    command = [sys.executable, str(Path(__file__).resolve()), "--cell", json.dumps([cell, options])]
    try:
        out = subprocess.run(command, capture_output=True, text=True, timeout=options["limit"] + _GRACE)
    except subprocess.TimeoutExpired:
        return "cut", {"cut": True, "why": f"over {options['limit'] + _GRACE:.0f} s"}
    lines = out.stdout.strip().splitlines()
    if out.returncode == 0 and lines:
        status, result = json.loads(lines[-1])
        return status, result
    if out.returncode < 0:
        return "failed", f"ended by signal {-out.returncode}"
    return "failed", out.stderr or f"ended with code {out.returncode}"


def _about():
    """Return the machine, versions and commit."""
    versions = {"python": platform.python_version(), "triscreen": triscreen.__version__}
    versions |= {package: _version(package) for package in _PACKAGES}
    return {"machine": _machine(), "versions": versions, "commit": _commit()}


def _version(package):
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _machine():
    cpu, memory = platform.processor() or platform.machine(), None
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        cpu = names[0] if names else cpu
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        memory = round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30)
    return {"cpu": cpu, "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
            "gigabytes": memory, "system": platform.system()}  # fmt: skip


def _commit():
    """Return the last commit that changed what is measured, or measures: others leave results as they are."""

    def git(*arguments):
        out = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True)
        return out.stdout.strip() if out.returncode == 0 else None

    code = ("--", "src", "benchmarks", ":!benchmarks/history.jsonl", ":!benchmarks/published")
    if ROOT / "src" not in Path(triscreen.__file__).parents:
        return f"unknown (triscreen from elsewhere: {triscreen.__version__})"
    try:
        commit = git("log", "-1", "--abbrev=12", "--format=%h", *code)
        changed = git("status", "--porcelain", "--untracked-files=no", *code)
    except OSError:
        return "unknown"
    return "unknown" if not commit else commit + (" with changes" if changed else "")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("experiments", nargs="*", metavar="experiment", help="all but speed by default")
    parser.add_argument("--quick", action="store_true", help="small cells, under three minutes")
    parser.add_argument("--data", help="folder of the data sets; by default the environment variable TRISCREEN_DATA")
    parser.add_argument("--out", help="folder of the results; by default build/bench or build/bench-quick")
    parser.add_argument("--seeds", type=int, help="random subsamples: 5, or 1 with --quick")
    parser.add_argument(
        "--limit", type=float, help=f"seconds of one cell: 600; {plan.LONGEST:g} with --minutes; 30 with --quick"
    )
    parser.add_argument("--minutes", type=float, help="for everything; what would take longer is left out")
    parser.add_argument("--anyway", action="store_true", help="with changes that are not committed, too")
    parser.add_argument(
        "--fetch", action="store_true", help="get data that the folder does not have from LIBSVM's site or OpenML"
    )
    parser.add_argument("--python", action="append", default=[], metavar="PEER=interpreter",
                        help="the Python that has a peer installed (see solvers/_peers.py)")  # fmt: skip
    parser.add_argument("--list", action="store_true", help="say what there is, and end")
    wanted = parser.parse_args(arguments)
    if wanted.list:
        for name, experiment in EXPERIMENTS.items():
            count = len(experiment.cells(wanted.quick, wanted.seeds or (1 if wanted.quick else 5)))
            print(f"{name:10s} {count:4d} cells  {experiment.TITLE}")
        return 0
    if any("=" not in item for item in wanted.python):
        parser.error(f"--python {wanted.python[0]}: it must be PEER=interpreter")
    try:
        counts = run(
            wanted.experiments, wanted.quick, wanted.data, wanted.out, wanted.seeds, wanted.fetch, wanted.limit,
            dict(item.split("=", 1) for item in wanted.python), say=lambda text: print(text, flush=True),
            history=speed.HISTORY, minutes=wanted.minutes, anyway=wanted.anyway,
        )  # fmt: skip
    except ValueError as error:
        parser.error(str(error))
    except KeyboardInterrupt:
        return 130
    if wanted.experiments:
        _show(wanted.experiments, wanted.out, wanted.quick)
    return 1 if counts["failed"] else 0


def _show(names, out, quick):
    """Print the tables of the experiments that were named, as the page has them."""
    from benchmarks import page

    try:
        print("\n" + page.tables(page.read(_folder(out, quick)), names))
    except ImportError as error:
        print(f"no tables: {error}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--cell"]:
        print(json.dumps(_here(*json.loads(sys.argv[2]))))
    else:
        sys.exit(main())
