"""metric-learn's own tests on our classes: ``python tests/drop_in.py FOLDER``, its unpacked source, version 0.7.

Its lists of learners are replaced by ours, in a copy of its tests, and only tests that run over these lists are run.
What fails is listed with its reason, if it is on purpose (`ON_PURPOSE`); anything else is a finding, and ends with 1.
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
# What metric-learn's tests ask for, and we do not do, and why.
ON_PURPOSE = {
    "test_n_components": "the very words of an error: ours name the argument, its value and what is right",
    "test_embed_dim": "the very words of an error: ours are scikit-learn's",
    "test_pair_distance_dim": "the very words of an error: ours name the argument and its shape",
    "test_score_pairs_warning": "the very words of a warning: ours is a FutureWarning, too, and names what to use",
    "test_error_message_t_pair_distance_or_score": "calls a private method of metric-learn",
    "test_error_message_tuple_size": "reads a private attribute of metric-learn",
    "test_deterministic_initialization": "prior='random': nothing is random here",
    "test_same_with_or_without_preprocessor": "the same bits by name and as points: points come in another order, so "
    "distances agree to a few units of rounding (tests/estimators/test_comparisons.py)",
}
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
    by_name = Counter(re.search(r"::(\w+)", test)[1] for test in reasons)
    for name, n in by_name.most_common():
        print(f"{n} {name}: {ON_PURPOSE.get(name, 'not on purpose')}")
    strange = {test: why for test, why in reasons.items() if not any(f"::{name}[" in test for name in ON_PURPOSE)}
    for test, why in sorted(strange.items()):
        print(f"{test}\n    {why}")
    print(f"{sum(found.values())} of {len(found)} pass, {len(reasons) - len(strange)} differ on purpose")
    return 1 if strange else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
