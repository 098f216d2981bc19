"""``triscreen path`` and ``triscreen fit``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from triscreen._utils.progress import progress, silent
from triscreen.cli.clusters import client_on, problem_on
from triscreen.cli.common import Clock, about, answer, as_bytes, command, say, values
from triscreen.cli.estimate import estimate, plan_of_fit, plan_of_path
from triscreen.cli.made import Made, hold_out, make_problem, read_data, validation
from triscreen.cli.options import (
    Comparisons,
    Cone,
    Data,
    Debug,
    Drop,
    Header,
    Json,
    Label,
    Names,
    Quiet,
    Scale,
    Scheduler,
    Triplets,
    Workers,
    refuse_idle,
)
from triscreen.cli.outputs import check_files, resumable
from triscreen.cli.starts import files_of, read_start, words_of
from triscreen.errors import InputError

Output = Annotated[Path, typer.Option("--output", "-o", help="File to write.", show_default=False)]
K = Annotated[int, typer.Option("--k", "-k", help="Neighbours that triplets are made of.")]
Kind = Annotated[
    Triplets,
    typer.Option(
        help="knn: k nearest of the class times k nearest of others; lmnn: k nearest of the class against all others; "
        "all: every triplet."
    ),
]
Scaling = Annotated[Scale, typer.Option(help="none, minmax [0, 1], standard, libsvm [-1, 1].")]
Gamma = Annotated[float, typer.Option(help="Width of the smoothed hinge; 0: the hinge.")]
Metrics = Annotated[Cone, typer.Option(help="psd: every metric; diagonal: weights of features.")]
Checkpoint = Annotated[
    Path,
    typer.Option(help="Folder to go on from; by default OUTPUT.checkpoint, removed when done.", show_default=False),
]
Seconds = Annotated[float, typer.Option(help="Stop the whole command after so many seconds.", show_default=False)]
Jobs = Annotated[
    int, typer.Option("--jobs", "-j", help="Threads at most; by default all that help.", show_default=False)
]
Memory = Annotated[str, typer.Option(help="Bytes at most, such as 500MB or 2GB.", show_default=False)]
Prior = Annotated[
    str,
    typer.Option(
        help="Metric to begin with and to stay close to: none, identity, within (inverse covariance within classes) or "
        "a file with a metric or a model.",
        show_default=False,
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say how many triplets, how much memory, how long; then end.")]


@command
def path(
    ctx: typer.Context,
    data: Data,
    output: Output = None,
    label: Label = None,
    k: K = 5,
    triplets: Kind = Triplets.knn,
    comparisons: Comparisons = None,
    names: Names = None,
    drop: Drop = [],  # noqa: B006
    header: Header = None,
    scale: Scaling = Scale.standard,
    gamma: Gamma = 0.05,
    cone: Metrics = Cone.psd,
    prior: Prior = "none",
    ratio: Annotated[float, typer.Option(help="From one lambda to the next.")] = 0.9,
    n_lambdas: Annotated[int | None, typer.Option(help="Lambdas at most.", show_default=False)] = None,
    tol: Annotated[float, typer.Option(help="Relative duality gap of every metric.")] = 1e-6,
    guarantee: Annotated[
        float | None,
        typer.Option(help="Relative gap for every lambda in between; it chooses them.", show_default=False),
    ] = None,
    test_share: Annotated[
        float, typer.Option(help="Share of points (or comparisons) held out for the error; 0: none.")
    ] = 0.25,
    seed: Annotated[int, typer.Option(help="Of the choice of held-out points.")] = 0,
    validate: Annotated[
        str | None,
        typer.Option(
            help="Points (or comparisons) to validate with, in a file; all of DATA is learned from then.",
            show_default=False,
        ),
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Write an HTML report too.", show_default=False)] = None,
    checkpoint: Checkpoint = None,
    max_seconds: Seconds = None,
    jobs: Jobs = None,
    memory: Memory = None,
    scheduler: Scheduler = None,
    workers: Workers = None,
    dry_run: DryRun = False,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
):
    """Solve a whole path of lambdas: metrics from strongly to weakly regularised, each with its certificate.

    A quarter of the points is held out to show the error; Ctrl-C stops, the same command goes on.

    Example: triscreen path wine -o wine.path --report wine.html
    """
    clock = Clock(max_seconds)
    refuse_idle(ctx)
    folder = _folder(checkpoint, output)
    _check_output(output, dry_run)
    words = words_of(prior, "prior", labelled=comparisons is None)
    check_files([("data", data), ("comparisons", comparisons), ("validate", validate), *files_of(words, "prior")],
                {"output": output, "report": report, "checkpoint": folder})  # fmt: skip
    if not 0 <= test_share < 1:
        raise InputError(f"test_share={test_share}: it must be at least 0 and smaller than 1")
    import triscreen as ts

    rows, points = read_data(data, comparisons, names, label=label, drop=drop, header=header, quiet=quiet)
    from triscreen.cli.story import Story  # what is slow to import, once the data is good
    from triscreen.path.api import AUTO  # with tubes however small it is: what is irrelevant is part of the story
    from triscreen.report import gather, write_report

    if validate is None:
        learned, held_out, scaling = hold_out(points, rows, test_share, seed, scale.value)
    else:
        learned, _, scaling = hold_out(points, rows, 0, seed, scale.value)
        choice = {"label": label, "drop": drop, "header": header, "quiet": quiet}
        held_out = validation(validate, data, points, rows, names, scaling, choice)
    wanted = learned, triplets.value, k, gamma, cone.value, jobs, as_bytes(memory)
    start = read_start(prior, "prior", scaling, points.feature_names, cone.value)
    if dry_run:
        with about(points.name):
            return estimate(plan_of_path(test_share), *wanted, json, start is not None)
    with silent(quiet), about(points.name), clock.ending("triplets were made"):
        client = ctx.with_resource(client_on(scheduler, workers))
        problem = make_problem(*wanted, start) if client is None else problem_on(client, *wanted)
    with resumable(folder, checkpoint is not None, quiet) as kept:
        with silent(quiet), about(points.name), clock.named():
            found = ts.solve_path(problem, ratio=ratio, tol=tol, guarantee=guarantee, n_lambdas=n_lambdas,
                                  screening=AUTO, max_seconds=clock.left(), checkpoint=folder)  # fmt: skip
        clock.refuse_nothing(map(found.M, range(len(found))), found.stopped_by)
        with silent(quiet):
            gather(found, problem, learned.X, learned.y, held_out.X, held_out.y, held_out.rows, points.feature_names,
                   points.name, maps=report is not None, max_seconds=clock.left(),
                   point_names=_names_of(learned.numbers, points.row_names))  # fmt: skip
        begun = None if problem.prior is None else prior
        found.facts = replace(found.facts, prior=begun, scale=scale.value, shift=scaling.shift_,
                              factor=scaling.factor_)  # fmt: skip
        if found.recipe is not None:  # of points that are here
            found.recipe["command"] = {
                "label": label, "names": names, "drop": drop, "header": header, "comparisons": comparisons is not None,
                "k": k, "triplets": triplets.value, "scale": scale.value, "gamma": gamma, "cone": cone.value,
                "prior": prior, "test_share": 0.0 if validate is not None else test_share, "seed": seed,
            }  # fmt: skip
        ts.save(found, output)
        if report is not None:
            write_report(found, report)
        late = _out_of_time(found, max_seconds, found.facts.left_out)
        kept.keep |= late
    story = Story(found)
    if json:
        answer({"output": str(output), "source": points.name, "n_points": len(learned.X), **story.numbers()})
    elif not quiet:
        story.show(stderr=True)
        say(f"wrote {str(output)!r}" + ("" if report is None else f" and {str(report)!r}"))
    return 0 if found.converged.all() and not late else 1


@command
def fit(
    ctx: typer.Context,
    data: Data,
    output: Output = None,
    label: Label = None,
    k: K = 5,
    triplets: Kind = Triplets.knn,
    comparisons: Comparisons = None,
    names: Names = None,
    drop: Drop = [],  # noqa: B006
    header: Header = None,
    scale: Scaling = Scale.standard,
    gamma: Gamma = 0.05,
    cone: Metrics = Cone.psd,
    prior: Prior = None,
    candidates: Annotated[
        str | None,
        typer.Option(
            help="Metrics to begin with that cross-validation tries, as for --prior; by default none,identity,within.",
            show_default=False,
        ),
    ] = None,
    lam: Annotated[float | None, typer.Option(help="This lambda, no cross-validation.", show_default=False)] = None,
    lam_ratio: Annotated[
        float | None, typer.Option(help="This share of lambda_max (try 1e-3), no cross-validation.", show_default=False)
    ] = None,
    cv: Annotated[
        int | None,
        typer.Option(
            help="Folds that choose lambda, in the order of the points; by default five of shuffled points, "
            "repeated for few.",
            min=2,
            show_default=False,
        ),
    ] = None,
    tol: Annotated[float, typer.Option(help="Relative duality gap.")] = 1e-4,
    rounds: Annotated[int, typer.Option(help="Choose neighbours again by the metric just learned.")] = 1,
    certify: Annotated[
        float | None,
        typer.Option(
            help="Prove that no lambda of the range has an error on the folds that is lower by more than this.",
            show_default=False,
        ),
    ] = None,
    components: Annotated[int | None, typer.Option(help="Keep so many directions only.", show_default=False)] = None,
    checkpoint: Checkpoint = None,
    max_seconds: Seconds = None,
    jobs: Jobs = None,
    memory: Memory = None,
    dry_run: DryRun = False,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
):
    """Learn one metric and save it, with its scaling, as a model: lambda is chosen by cross-validation.

    With --lam or --lam-ratio it is given; with --comparisons the metric is learned from these, not from labels.

    Example: triscreen fit wine -o wine.model
    """
    clock = Clock(max_seconds)
    refuse_idle(ctx)
    single = comparisons is not None or lam is not None or lam_ratio is not None
    folder = None if single else _folder(checkpoint, output)
    _check_output(output, dry_run)
    words = {name: words_of(text, name, name == "candidates", comparisons is None)
             for name, text in (("prior", prior), ("candidates", candidates))}  # fmt: skip
    files = [file for name, some in words.items() for file in files_of(some, name)]
    check_files([("data", data), ("comparisons", comparisons), *files], {"output": output, "checkpoint": folder})
    if lam is not None and lam_ratio is not None:
        raise InputError(f"lam={lam}, lam_ratio={lam_ratio}: give one of the two")
    import triscreen as ts
    from triscreen.datasets.seals import seals

    rows, points = read_data(data, comparisons, names, label=label, drop=drop, header=header, quiet=quiet)
    scaling = ts.Scaling(scale.value).fit(points.X, feature_names=points.feature_names)
    learned, budget = Made(scaling.transform(points.X), points.y, rows), as_bytes(memory)
    starts = _starts(words, scaling, points.feature_names, cone.value)
    if dry_run:
        from triscreen.estimators.choosing import FEW
        from triscreen.estimators.folds import repeats_of

        looks = single and lam is None and lam_ratio is None and points.X.shape[1] > FEW
        plan = plan_of_fit(single, cv or 5, rounds, len(starts), 1 if cv or single else repeats_of(points.y), looks)
        with about(points.name):
            prior = any(start is not None for start in starts)
            return estimate(plan, learned, triplets.value, k, gamma, cone.value, jobs, budget, json, prior)
    shared = {"gamma": gamma, "cone": cone.value, "tol": tol, "n_components": components, "n_jobs": jobs,
              "max_seconds": max_seconds, "memory_budget": budget}  # fmt: skip
    labelled = {"n_neighbors": k, "triplets": triplets.value, "rounds": rounds}
    given = {"lam": lam, "lam_ratio": "auto" if lam_ratio is None else lam_ratio, "prior": starts[0]}
    if rows is not None:
        metric = ts.ComparisonMetric(learned.X, **given, **shared)
    elif single:
        metric = ts.TripletMetric(**given, **labelled, **shared)
    else:
        metric = ts.TripletMetricCV(cv=cv, candidates=tuple(starts), certify=certify, **labelled, **shared)
    with resumable(folder, checkpoint is not None, quiet) as kept:
        with silent(quiet), about(points.name), clock.named():
            _fit(metric, learned, folder, clock)
            if rows is not None:
                metric.seals_ = seals(points.X, rows)  # evaluate knows them again
        ts.save(make_model(scaling, metric), output)
        late = not single and _out_of_time(metric.path_, max_seconds, _folds_left_out(metric))
        kept.keep |= late
    numbers = _numbers(metric, len(learned.X), scale.value, clock.spent())
    numbers["start"] = _word(metric, numbers["start"], words)
    if json:
        answer({"output": str(output), "source": points.name, **numbers})
    elif not quiet:
        values(points.name, numbers, stderr=True)
        if not single:
            say(_verdict(numbers))
        if certify is not None:
            first, last = metric.certified_ratios_[[0, -1]]
            say(f"proven: error {numbers['error']:.2%} on the folds, and no lambda from {first:.3g} to {last:.3g} of "
                f"lambda_max has one that is lower by more than {numbers['selection_gap']:.2%}")  # fmt: skip
        say(f"wrote {str(output)!r}")
    return 0 if metric.converged_ and not late else 1


def _names_of(numbers, names):
    """Return what points are called: by their column of names, or by their row, the first after a header being 0."""
    return [f"row {number}" if names is None else names[number] for number in numbers.tolist()]


def _fit(metric, learned, folder, clock):
    """Fit a metric within the time that is left; folder: of its checkpoint, None where it keeps none."""
    asked = {"max_seconds": metric.max_seconds}
    if folder is not None:
        metric.set_params(checkpoint=folder)
    with progress("fit") as seen:
        metric.set_params(callback=seen, max_seconds=clock.left())
        metric.fit(*([learned.X, learned.y] if learned.rows is None else [learned.rows]))
    clock.refuse_nothing([metric.components_], metric.solution_.stopped_by)
    if learned.rows is not None:
        asked["preprocessor"] = None  # the points are the user's, a model is without them
    metric.set_params(**asked)


def _starts(words, scaling, feature_names, cone):
    """Return the metrics to begin with: one, or the candidates of a cross-validation."""
    for name, some in words.items():
        if some is not None:
            return [read_start(word, name, scaling, feature_names, cone) for word in some]
    return [None, "identity", "within"]


def _numbers(metric, n_points, scale, seconds):
    """Return what is told of a fitted metric."""
    told = {
        "n_points": n_points,
        "n_features": metric.n_features_in_,
        "n_triplets": metric.n_triplets_,
        "scale": scale,
        **begun(metric),
        "lam": metric.lam_,
        "rel_gap": metric.rel_gap_,
        "converged": bool(metric.converged_),
        "rank": len(metric.components_),
        "seconds": seconds,
    }
    if hasattr(metric, "best_score_"):
        told.update(lam_ratio=metric.lam_ratio_, right_votes=metric.best_score_)
    if hasattr(metric, "selection_gap_"):
        told.pop("right_votes")
        told.update(error=1 - metric.best_score_, selection_gap=metric.selection_gap_,
                    possible_ratios=metric.possible_ratios_)  # fmt: skip
    return told


def begun(metric):
    """Return where a fitted metric began, and of a cross-validated one what that gained over Euclid."""
    from triscreen.estimators.starts import name_of

    if not hasattr(metric, "chosen_"):
        return {"start": "none" if getattr(metric, "prior_", None) is None else name_of(metric.prior)}
    gain, error = metric.improvement_
    known = gain == gain and error == error
    return {
        "start": metric.chosen_,
        "learned": metric.path_ is not None,
        "gain": gain,
        "gain_error": error,
        "gain_above_noise": bool(gain > error) if known else None,
    }


def _word(metric, start, words):
    """Return what a start was called on the command line: a file by its name."""
    given = words["prior"] or words["candidates"]
    if given is None or not hasattr(metric, "chosen_"):
        return start if given is None or start == "none" else given[0]
    return dict(zip(metric.candidates_["name"][1:], given, strict=True)).get(start, start)


def _verdict(numbers):
    """Return in a sentence what cross-validation chose, and whether metric learning helps."""
    start = "no prior" if numbers["start"] == "none" else numbers["start"]
    what = f"chosen: a path from {start}" if numbers["learned"] else f"chosen: {start}, without learning"
    if numbers["gain_above_noise"] is None:
        return f"{what}; the folds do not say how much better than Euclid that is"
    text = f"{what}; accuracy {numbers['gain']:+.2%} over Euclid on the same folds (standard error "
    text += f"{numbers['gain_error']:.2%})"
    return text if numbers["gain_above_noise"] else f"{text}, not above noise: metric learning does not help here"


def _folds_left_out(metric):
    """Return, in words, the paths of folds that time did not allow."""
    import numpy as np

    told = metric.candidates_
    walked = np.arange(told["scores"].shape[1]) < np.where(told["dropped"], told["dropped"], np.inf)[:, None]
    missing = int((np.isnan(told["scores"]).all(axis=2) & walked)[1:].sum())
    return [f"{missing} paths of folds"] if missing else []


def make_model(scaling, metric):
    """Return what ``triscreen fit`` saves: scaling and metric, one after the other."""
    from sklearn.pipeline import Pipeline

    return Pipeline([("scale", scaling), ("metric", metric)])


def _check_output(output, dry_run):
    if output is None and not dry_run:
        raise InputError("output is not given: say where to write with --output FILE, or -o FILE")


def _folder(checkpoint, output):
    """Return the folder to go on from: the one that was named, or OUTPUT.checkpoint."""
    if checkpoint is not None or output is None:
        return checkpoint
    return Path(f"{output}.checkpoint")


def _out_of_time(path, max_seconds, left_out=()):
    """Say what there was no time for, and tell whether there was anything."""
    cut = path is not None and path.stopped_by == "max_seconds"  # None: a start was chosen that needs none
    missing = [f"lambdas after the {len(path)} done"] if cut else []
    missing += left_out
    if missing:
        say(
            f"stopped by max_seconds={max_seconds:g}, without {', '.join(missing)}; the same command goes on from there"
        )
    return bool(missing)
