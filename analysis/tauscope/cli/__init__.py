"""The command line. Commands live in one module a group; heavy imports wait inside them."""

from __future__ import annotations

import errno
import sys

import typer

from tauscope.errors import Problem


def _app() -> typer.Typer:
    return typer.Typer(
        name="tauscope",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        # Rich help costs more start-up than all else together; tables and progress use rich.
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
        help=(
            "Traces of speculative decoding in ds4: every cycle in a store, every metric in SQL, "
            "reports by notebook.\n\n"
            "\b\n"
            "  tauscope import run.log --workload code --arm mtp1\n"
            "  tauscope metrics\n"
            "  tauscope sql 'SELECT workload, tau(emitted) FROM cycles GROUP BY workload'\n"
            "  tauscope report\n\n"
            "Traces are looked for in --traces DIR, else $TAUSCOPE_TRACES, else traces/store of "
            "the clone, else the bundled ones."
        ),
    )


def _register(app: typer.Typer) -> None:
    from tauscope.cli import (
        accounts,
        ask,
        compare,
        doctor,
        economics,
        experiment,
        ingest,
        record,
        report,
        simulate,
    )

    app.command("import", no_args_is_help=True)(ingest.import_)
    app.command()(ingest.label)
    app.command(no_args_is_help=True)(ingest.show)
    app.command()(ask.runs)
    app.command()(ask.metrics)
    app.command()(accounts.ledger)
    app.command()(accounts.rosetta)
    app.command(no_args_is_help=True)(compare.compare)
    app.command(no_args_is_help=True)(compare.check)
    app.command()(doctor.doctor)
    app.command()(economics.cost)
    app.command()(economics.route)
    app.command(no_args_is_help=True)(ask.sql)
    app.command()(ask.schema)
    app.command()(report.report)
    app.command(no_args_is_help=True)(simulate.simulate)
    # All behind the engine's name is the engine's, whether `--` stands before it or not.
    app.command(no_args_is_help=True, context_settings={"allow_interspersed_args": False})(
        record.record
    )
    app.command()(record.watch)
    app.command(no_args_is_help=True)(experiment.experiment)


def _refuse_bytes() -> None:
    """Raises Problem for an argument that is no UTF-8: it could be neither kept nor shown.

    What belongs to a recorded engine is the engine's; labels are looked at by themselves.
    """
    for word in sys.argv[1:] if sys.argv[1:2] != ["record"] else ():
        try:
            word.encode()
        except UnicodeEncodeError:
            shown = word.encode(errors="backslashreplace").decode()
            raise Problem(f"{shown}: is no UTF-8; write it in UTF-8", code=2) from None


def _run(app: typer.Typer) -> None:
    """Run the command; once more whenever a log turned out to be damaged on the way."""
    while True:
        try:
            app()
        except Problem as problem:
            # Loaded by the command itself, if at all: it is too heavy to load for every one.
            store = sys.modules.get("tauscope.store")
            if store is None or not isinstance(problem, store.Unreadable):
                raise
        else:
            return


def main() -> None:
    """Run the command line; a Problem becomes one line on standard error and its exit code."""
    from tauscope.cli.output import clean

    app = _app()
    _register(app)
    try:
        _refuse_bytes()
        _run(app)
    except Problem as problem:
        sys.stderr.write(clean(str(problem)) + "\n")
        sys.exit(problem.code)
    except BrokenPipeError:
        # The reader has seen enough, as in `| head`; Python would complain while closing.
        sys.stderr.close()
        sys.exit(0)
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:
        about = f"{error.filename}: " if error.filename else ""
        what = error.strerror or str(error) or type(error).__name__
        sys.stderr.write(clean(f"{about}{what}; {_remedy(error)}") + "\n")
        sys.exit(1)
    except Exception as error:
        # Polars tells of a full disk in an error of its own.
        if type(error).__module__.partition(".")[0] != "polars":
            raise
        what = (str(error).splitlines() or [type(error).__name__])[0][:400]
        sys.stderr.write(clean(f"the data can't be read or written: {what}; "
                               "look at the disk's free room and run it again") + "\n")  # fmt: skip
        sys.exit(1)


def _remedy(error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "free some room and run it again"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return "name a folder that you may write to"
    return "look at that path and run it again"
