"""All commands together. What is slow to import is imported inside the commands."""

from __future__ import annotations

from typing import Annotated

import typer

from triscreen import __version__
from triscreen.cli import apply, bench, elsewhere, learn, show
from triscreen.cli.verify import verify

app = typer.Typer(
    help="Learn metrics from triplets, to a certified optimum. Start with: triscreen demo",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


def _version(wanted: bool):
    if wanted:
        print(f"triscreen {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", help="Say which version this is.", callback=_version, is_eager=True)
    ] = False,
):
    pass


for command in (
    show.demo, learn.path, learn.fit, elsewhere.predict, apply.transform, apply.evaluate, elsewhere.export, show.report,
    verify, bench.bench, show.info,
):  # fmt: skip
    app.command()(command)
