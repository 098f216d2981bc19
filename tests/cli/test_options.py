"""Every option of every command changes something in every mode, or is refused in one sentence."""

from __future__ import annotations

import json
import re
import zipfile

import numpy as np
import pytest

from commands import COMMANDS, invoke, make_files
from triscreen._utils import archive as files

# They may stand beside anything (docs/cli.md), and --help ends before anything begins.
ANYWHERE = {"quiet", "debug", "dry_run", "help"}
# A value of each option that shows, if anything does; (): a flag.
VALUES = {
    "label": "a", "k": "1", "triplets": "lmnn", "comparisons": "{comparisons}", "names": "name", "drop": "b",
    "header": (), "scale": "minmax", "gamma": "0.5", "cone": "diagonal", "ratio": "0.3", "n_lambdas": "1", "tol": "0.5",
    "guarantee": "0.5", "test_share": "0.5", "seed": "1", "report": "{folder}/r.html", "checkpoint": "{folder}/c",
    "suspects": "{folder}/s.csv",
    "max_seconds": "1e-9", "jobs": "0", "memory": "1", "json": (), "lam": "3", "lam_ratio": "0.5", "cv": "3",
    "rounds": "2", "components": "1", "output": "{folder}/other", "train": "{train}", "neighbors": "7", "quick": (),
    "data": "{folder}", "prior": "identity", "candidates": "identity", "certify": "0.2", "validate": "{train}",
    "every": "2", "exact": (), "missing": "median", "categories": "a", "dates": "a", "decimal": ",", "keep": "name",
    "retrieval": (), "at": "2",
    "scheduler": "nowhere://at-all", "workers": "0", "classifier": (), "to": "safetensors", "dtype": "float32",
}  # fmt: skip
POINTS = ("{data}", "--label", "class", "--drop", "name")
COMPARED = ("{data}", "--drop", "class", "--drop", "name", "--comparisons", "{comparisons}")
PATH, FIT = ("--n-lambdas", "4", "--tol", "1e-2", "--ratio", "0.5"), ("--tol", "1e-2")
# Modes of each command.
MODES = {
    "demo": [],  # its only option is where to write
    "path": [
        (*POINTS, *PATH, "-o", "{folder}/o"),
        (*COMPARED, *PATH, "-o", "{folder}/o"),
        (*POINTS, "--guarantee", "0.1", "--tol", "1e-2", "--n-lambdas", "4", "-o", "{folder}/o"),
        (*POINTS, *PATH, "--test-share", "0", "-o", "{folder}/o"),
        (*POINTS, *PATH, "--triplets", "all", "-o", "{folder}/o"),
    ],
    "fit": [
        (*POINTS, *FIT, "--cv", "2", "-o", "{folder}/o"),
        (*POINTS, *FIT, "--lam", "0.1", "-o", "{folder}/o"),
        (*POINTS, *FIT, "--lam-ratio", "0.01", "-o", "{folder}/o"),
        (*COMPARED, *FIT, "-o", "{folder}/o"),
        (*POINTS, *FIT, "--lam", "0.1", "--triplets", "all", "-o", "{folder}/o"),
    ],
    "predict": [("{voting}", "{data}"), ("{voting}", "{data}", "-o", "{folder}/o.csv"), ("{voting}", "{npz}")],
    "transform": [
        ("{model}", "{data}"), ("{model}", "{data}", "-o", "{folder}/o.npy"), ("{model}", "{npz}"),
    ],
    "export": [("{model}", "-o", "{folder}/o.npz"), ("{made}", "--lam", "3", "-o", "{folder}/o")],
    "evaluate": [
        ("{model}", "{data}", "--label", "class"),
        ("{model}", "{data}", "--label", "class", "--train", "{train}"),
        ("{model}", "{data}", "--comparisons", "{comparisons}"),
        ("{model}", "{npz}"),
    ],
    "report": [],
    "verify": [("{made}", "{data}")],
    "bench": [("exact",)],  # alone it takes long; test_cli tries what it refuses
    "info": [(), ("{file}",)],
}  # fmt: skip
CASES = [
    (command, mode, parameter.name)
    for command, modes in MODES.items()
    for mode in modes
    for parameter in COMMANDS[command].params
    if parameter.param_type_name == "option" and not {parameter.name} & ANYWHERE
    # Not what the mode gives already.
    if parameter.name == "drop" or not {*parameter.opts, *parameter.secondary_opts} & {*mode}
]


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    folder = tmp_path_factory.mktemp("options")
    names = make_files(folder)
    lines = [line.split(",") for line in names["data"].read_text().splitlines()[1:]]
    np.savez(folder / "points.npz", X=np.array([line[:2] for line in lines], dtype=float), y=[x[2] for x in lines])
    assert invoke("path", names["data"], *POINTS[1:], *PATH, "-o", folder / "made.path").code == 0
    return {**names, "npz": folder / "points.npz", "made": folder / "made.path"}


@pytest.fixture(scope="module")
def plain(given, tmp_path_factory):
    """Return what a mode does without the option; each is run once."""
    known = {}

    def run(command, mode):
        if (command, mode) not in known:
            known[command, mode] = outcome(command, mode, given, tmp_path_factory.mktemp("plain"))
        return known[command, mode]

    return run


def outcome(command, words, given, folder):
    """Return all that can be seen of a command, times apart; the folder's name is cut out."""
    words = [word.format(folder=folder, **given) for word in words]
    done = invoke(command, *words)
    seen = [done.code, _timeless(done.out), _timeless(done.err)]
    for file in sorted(folder.rglob("*")):
        seen.append(file.name)
        if file.suffix == ".npz" and zipfile.is_zipfile(file):
            with np.load(file) as arrays:
                seen += [(name, a.dtype, a.tolist()) for name, a in arrays.items()]
        elif zipfile.is_zipfile(file):
            kind, meta, arrays = files.read(file)
            meta = json.dumps(meta, sort_keys=True)
            seen += [kind, re.sub(r'"seconds": [^,}]*', "", meta)]
            seen += [(name, a.tolist()) for name, a in arrays.items() if "second" not in name]
        elif file.suffix in (".npy", ".npz", ".csv"):
            seen.append(file.read_bytes())
    return repr(seen).replace(str(folder), "FOLDER")


def _timeless(text):
    return re.sub(r'(?s)("?\w*seconds\w*"?\W+)(\[[^\]]*\]|[-0-9.e]+)|in [-0-9.e]+ s\b', r"\1", text)


def test_every_option_is_tried_with_some_value():
    options = {
        parameter.name
        for command in COMMANDS.values()
        for parameter in command.params
        if parameter.param_type_name == "option"
    }
    assert options - ANYWHERE <= VALUES.keys()
    assert MODES.keys() == COMMANDS.keys()


@pytest.mark.thinned(3)
@pytest.mark.parametrize(("command", "mode", "option"), CASES, ids=lambda case: case if isinstance(case, str) else "")
def test_an_option_changes_something_or_is_refused(given, plain, tmp_path, monkeypatch, command, mode, option):
    if command == "bench":  # what it would start is seen, not done
        monkeypatch.setattr("triscreen.cli.bench.subprocess.run", lambda words: print(words) or _Done)
    parameter = next(p for p in COMMANDS[command].params if p.name == option)
    value = VALUES[option].format(folder=tmp_path, **given) if VALUES[option] else None
    flag = parameter.secondary_opts[0] if option == "header" else parameter.opts[0]
    extra = [flag] if value is None else [flag, value]
    seen = outcome(command, (*mode, *extra), given, tmp_path)
    assert "should not happen" not in seen
    assert seen != plain(command, mode), f"{command} {' '.join(mode)}: {flag} has no effect and is not refused"
    if "no effect" in seen:
        assert f"{option}=" in seen or flag in seen
        assert seen.startswith("[2,")


class _Done:
    returncode = 0


def test_the_version_is_said():
    import triscreen as ts

    done = invoke("--version")
    assert (done.code, done.out) == (0, f"triscreen {ts.__version__}\n")


def test_one_set_of_defaults():
    """k was 20, 10 or 5, tol 1e-6, 1e-4 or 1e-3: solutions and paths are exact, models have their own, nothing else."""
    import inspect

    import triscreen as ts
    from triscreen.cli import learn

    def default(function, name):
        return inspect.signature(function).parameters[name].default

    for function, name in ((ts.knn_triplets, "k"), (ts.TripletMetric, "n_neighbors"),
                           (ts.TripletMetricCV, "n_neighbors"), (learn.path, "k"), (learn.fit, "k")):  # fmt: skip
        assert default(function, name) == 5
    assert {default(function, "tol") for function in (ts.solve, ts.solve_path, learn.path)} == {1e-6}
    models = (ts.TripletMetric, ts.TripletMetricCV, ts.ComparisonMetric, learn.fit)
    assert {default(function, "tol") for function in models} == {1e-4}
    assert {default(function, "gamma") for function in (*models, learn.path)} == {ts.SmoothedHinge().gamma}
