"""``triscreen verify``: from a file and its data to proofs, or to a sentence."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

import triscreen as ts
from commands import invoke, make_files, refusal
from triscreen._utils import archive as files
from triscreen.verification import Verifier

LABELLED = ("--label", "class", "--drop", "name")
SOME = ("--n-lambdas", "4", "--ratio", "0.5", "--tol", "1e-6", "-q")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("verify")
    given = make_files(folder)
    lines = {
        "labels": (given["data"], *LABELLED),
        "others": (given["data"], *LABELLED, "--triplets", "lmnn", "--prior", "within", "--gamma", "0", "-k", "2",
                   "--seed", "3", "--test-share", "0.4", "--scale", "libsvm", "--cone", "diagonal"),
        "file": (given["data"], *LABELLED, "--prior", given["prior"], "--triplets", "all"),
        "compared": (given["data"], "--drop", "class", "--drop", "name", "--comparisons", given["comparisons"]),
    }  # fmt: skip
    for name, words in lines.items():
        done = invoke("path", *words, *SOME, "-o", folder / f"{name}.path")
        assert done.code == 0, done.err
    return folder, given


@pytest.mark.parametrize("name", ["labels", "others", "file", "compared"])
def test_every_metric_of_a_path_is_proven(made, name):
    folder, given = made
    file, more = folder / f"{name}.path", ("--comparisons", given["comparisons"]) if name == "compared" else ()
    more = more or ("--neighbors",)
    done = invoke("verify", file, given["data"], *more, "--json")
    told = json.loads(done.out)
    assert done.code == 0
    assert told["proven"] is True
    path = ts.load(file)
    assert [proof["lam"] for proof in told["lambdas"]] == path.lambdas.tolist()
    for proof, claimed in zip(told["lambdas"], path.gaps, strict=True):
        assert proof["gap_low"] <= claimed * (1 + 1e-6) + 1e-12
        assert proof["rel_gap"] <= 1e-6
    assert (told["neighbours"] is None) == (name == "compared")
    shown = invoke("verify", file, given["data"], *more, "--every", "3")
    assert shown.code == 0
    assert "2 metrics proven to have a relative gap of at most 1e-06" in shown.err


def test_other_data_are_refused(made, tmp_path):
    folder, given = made
    file = folder / "labels.path"
    head, *rows = given["data"].read_text().splitlines()
    rows = [row.split(",") for row in rows]  # whichever are held out
    text = [head, *(",".join([repr(float(row[0]) * (1 + 1e-15)), *row[1:]]) for row in rows)]
    changed = tmp_path / "changed.csv"
    changed.write_text("\n".join([*text, ""]))
    words = "other points X than this path was solved for"
    assert words in refusal("verify", file, given["train"])
    assert words in refusal("verify", file, changed)
    assert "keeps its labels apart" in refusal("verify", file, "iris")
    assert "comparisons=None: this path was solved for comparisons" in refusal(
        "verify", folder / "compared.path", given["data"]
    )
    assert "this path was not solved for comparisons" in refusal(
        "verify", file, given["data"], "--comparisons", given["comparisons"]
    )
    assert "nobody has looked for neighbours" in refusal(
        "verify", folder / "compared.path", given["data"], "--comparisons", given["comparisons"], "--neighbors"
    )


def test_files_without_a_recipe_are_refused(made, tmp_path):
    folder, given = made
    assert "does not say how its problem was made" in refusal("verify", given["file"], given["data"])
    assert "holds a model" in refusal("verify", given["model"], given["data"])
    kind, meta, arrays = files.read(folder / "labels.path")
    for wrong in ({**meta["recipe"]["command"], "k": "2"}, {}, [], 3):
        files.write(tmp_path / "a.path", kind, {**meta, "recipe": {**meta["recipe"], "command": wrong}}, arrays)
        assert "its recipe is no recipe" in refusal("verify", tmp_path / "a.path", given["data"])
    for key, wrong in (("triplets", "some"), ("scale", "large"), ("cone", "flat"), ("k", -3), ("prior", "nothing")):
        command = {**meta["recipe"]["command"], key: wrong}
        files.write(tmp_path / "a.path", kind, {**meta, "recipe": {**meta["recipe"], "command": command}}, arrays)
        assert "a.path" in refusal("verify", tmp_path / "a.path", given["data"])


def test_a_claim_that_does_not_hold_is_told(made, tmp_path):
    """Metrics that are not what they claim: the exit code, a sentence with what to do, and numbers all the same."""
    folder, given = made
    kind, meta, arrays = files.read(folder / "labels.path")
    arrays["factors"] = arrays["factors"] * np.where(
        np.arange(arrays["factors"].shape[1]) < arrays["ranks"][0], 1.001, 1
    )
    files.write(tmp_path / "a.path", kind, meta, arrays)
    done = invoke("verify", tmp_path / "a.path", given["data"])
    assert done.code == 1
    assert "1 of 4 metrics are not proven to have a relative gap of at most 1e-06" in done.err
    assert "run triscreen path again, with --tol 5e-07" in done.err
    assert json.loads(invoke("verify", tmp_path / "a.path", given["data"], "--json").out)["proven"] is False


def test_a_path_knows_its_problem(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)), np.arange(30) % 2
    T = ts.knn_triplets(X, y, 2)
    problem = ts.Problem(X, T)
    path = ts.solve_path(problem, ratio=0.5, n_lambdas=6)
    proofs = path.verify()
    assert len(proofs) == 6
    assert [proof.lam for proof in path.verify(every=4)] == path.lambdas[::4].tolist()
    assert all(proof.gap_low <= gap * (1 + 1e-6) + 1e-12 for proof, gap in zip(proofs, path.gaps, strict=True))
    ts.save(path, tmp_path / "a.path")
    loaded = ts.load(tmp_path / "a.path")
    assert loaded.recipe == path.recipe
    assert loaded.take([0, 2]).recipe == path.recipe
    with pytest.raises(ts.InputError, match="problem=None: this path was loaded from a file"):
        loaded.verify()
    assert [proof.gap for proof in loaded.verify(ts.Problem(X.copy(), T))] == [proof.gap for proof in proofs]
    other = X.copy()
    other[0, 0] += 1e-9
    swapped = T.indices()
    swapped[0, 1:] = swapped[0, :0:-1]
    N = 1e-3 * np.eye(3)
    for wrong, words in (
        (ts.Problem(other, T), "other points X"),
        (ts.Problem(X, ts.given_triplets(T.indices())), "another kind of triplets"),
        (ts.Problem(X, T, loss=ts.Hinge()), "another loss"),
        (ts.Problem(X, T, prior=N), "another prior"),
    ):
        with pytest.raises(ts.InputError, match=f"problem has {words} than this path was solved for"):
            loaded.verify(wrong)
    given = ts.solve_path(ts.Problem(X, ts.given_triplets(T.indices())), ratio=0.5, n_lambdas=2)
    ts.save(given, tmp_path / "b.path")
    with pytest.raises(ts.InputError, match="problem has other triplets or weights"):
        ts.load(tmp_path / "b.path").verify(ts.Problem(X, ts.given_triplets(swapped)))
    with pytest.raises(ts.InputError, match="every=0"):
        path.verify(every=0)
    X[0] += 1.0
    with pytest.raises(ts.InputError, match="X was changed"):
        path.verify()


def test_a_path_that_misses_its_tolerance_says_what_to_do():
    X, y = np.random.default_rng(0).normal(size=(30, 3)), np.arange(30) % 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ts.ConvergenceWarning)
        path = ts.solve_path(ts.Problem(X, ts.knn_triplets(X, y, 2)), ratio=0.5, n_lambdas=5, tol=1e-9, max_iter=2)
    missed = int((path.rel_gaps > 1e-9).sum())
    words = f"{missed} of 5 metrics are not proven .* solve the path again, with tol=5e-10 or less"
    with pytest.warns(ts.ConvergenceWarning, match=words):
        path.verify()


def test_the_hinge_takes_the_smoothing_of_its_path(monkeypatch):
    X, y = np.random.default_rng(0).normal(size=(30, 3)), np.arange(30) % 2
    path = ts.solve_path(ts.Problem(X, ts.knn_triplets(X, y, 2), loss=ts.Hinge()), ratio=0.5, n_lambdas=3)
    monkeypatch.setattr(Verifier, "_about", None)  # no search for one
    assert all(proof.rel_gap <= 1e-6 for proof in path.verify())
