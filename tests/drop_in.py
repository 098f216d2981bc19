"""metric-learn's own tests on our classes: ``python tests/drop_in.py FOLDER``, its unpacked source, version 0.7.

Its lists of learners are replaced by ours, in a copy of its tests, and only tests that run over these lists are run.
Failures are counted by their reason: where metric-learn wants its very words in an error, or a prior of its own, ours
differ on purpose.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

SRC = Path(__file__).resolve().parents[1] / "src"
OURS = """
import triscreen as ts

pairs_learners, quadruplets_learners, regressors = [], [], []
triplets_learners = [(ts.ComparisonMetric(), build_triplets)]
classifiers = [(ts.TripletMetric(), build_classification),
               (ts.TripletMetricCV(cv=3, ratios=2), build_classification),
               (ts.TripletClassifier(cv=3, ratios=2), build_classification)]
for _name in ("pairs_learners", "triplets_learners", "quadruplets_learners", "classifiers", "regressors"):
  globals()["ids_" + _name] = [type(_one).__name__ for _one, _ in globals()[_name]]
"""
NAMES = ("TripletMetric", "TripletMetricCV", "TripletClassifier", "ComparisonMetric")


def prepared(source, folder):
    """Copy metric-learn's package and tests, and put our learners in the place of its own."""
    for name in ("metric_learn", "test"):
        shutil.copytree(Path(source) / name, Path(folder) / name)
    (Path(folder) / "test" / "__init__.py").touch()
    file = Path(folder) / "test" / "test_utils.py"
    text, place = file.read_text(encoding="utf-8"), "WeaklySupervisedClasses ="
    if text.count(place) != 1:
        raise SystemExit(f"{file}: not the tests of metric-learn 0.7")
    file.write_text(text.replace(place, OURS + "\n" + place), encoding="utf-8")
    for file in (Path(folder) / "test").glob("*.py"):  # what pytest no longer knows
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace("pytest.warns(None)", "__import__('warnings').catch_warnings(record=True)"),
                        encoding="utf-8")  # fmt: skip


def counted(folder, extra=()):
    """Run the tests over our classes; return ({test: passed?}, {test: the last line of its error})."""
    path = os.pathsep.join([str(folder), str(SRC), *filter(None, [os.environ.get("PYTHONPATH")])])
    words = [sys.executable, "-m", "pytest", "-q", "-rA", "--tb=line", "-p", "no:cacheprovider", "--rootdir",
             str(folder), "-k", " or ".join(NAMES), "test", *extra]  # fmt: skip
    wide = {**os.environ, "PYTHONPATH": path, "COLUMNS": "1000"}
    done = subprocess.run(words, cwd=folder, env=wide, capture_output=True, text=True, check=False)
    found, reasons = {}, {}
    for line in done.stdout.splitlines():
        seen = re.match(r"(PASSED|FAILED|ERROR) (\S+?\]?)(?: - (.*))?$", line)
        if seen and any(f"{name}" in seen[2] for name in NAMES):
            found[seen[2]] = seen[1] == "PASSED"
            if seen[1] != "PASSED":
                reasons[seen[2]] = seen[3] or ""
    if not found:
        raise SystemExit(done.stdout[-2000:] + done.stderr[-2000:])
    return found, reasons


def main(source, *extra):
    """Print the count, and what failed."""
    with tempfile.TemporaryDirectory() as folder:
        prepared(source, folder)
        found, reasons = counted(folder, extra)
    for test, why in sorted(reasons.items()):
        print(f"{test}\n    {why}")
    by_name = Counter(re.search(r"::(\w+)", test)[1] for test in reasons)
    print(", ".join(f"{name} {n}" for name, n in by_name.most_common()))
    print(f"{sum(found.values())} of {len(found)} pass")


if __name__ == "__main__":
    main(*sys.argv[1:])
