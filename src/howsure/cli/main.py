"""The `howsure` command: its commands, and what each kind of failure looks like to a user."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from io import StringIO
from types import ModuleType
from typing import NoReturn

import click

from howsure._core.errors import InputError
from howsure._core.text import make_printable, make_printable_lines
from howsure._core.version import __version__
from howsure.cli.input_output import flush_streams, prepare_streams

COMMANDS = {
    "alarms": "Which alarms are active, and start again after one.",
    "app": "Write the page that evaluates files in the browser.",
    "calibrate": "Correct the confidence: fit on validation data, judge on test data.",
    "cascade": "A small model first, then a large one, then a person: which thresholds cost least?",
    "check": "A gate for CI: exit 1 where a limit is not met.",
    "compare": "Which model, score or calibrator is better on the same samples?",
    "completion": "Print a script that completes howsure commands in your shell.",
    "count": "A table of counts instead of the rows, to share or to evaluate.",
    "decide": "Accept or defer each prediction by a saved policy.",
    "demo": "See howsure at work on real predictions that come with it.",
    "doctor": "What is in this file, and what is wrong with it?",
    "evaluate": "How sure is this classifier, and should you believe it?",
    "export": "Write a policy as a program (C99, JavaScript, SQL, ONNX) or for a gateway.",
    "monitor": "Is it still as good? New data beside a labelled reference, with or without labels.",
    "serve": "Answer requests by a saved policy, over HTTP on this machine.",
    "sql": "Print the query that counts the answers of a table in a database.",
    "threshold": "Above which confidence may the model decide alone?",
    "verify": "Is a policy as it was saved, and does its bound follow from its counts?",
}
# Who hears of a mistake beside standard error: the page in the browser, which shows ways out. By
# default nobody: `repr` does nothing with it.
mistakes: ContextVar[Callable[[Exception], object]] = ContextVar("mistakes", default=repr)
LIMIT_NOT_MET, USER_MISTAKE, ALARM, OUR_BUG, INTERRUPTED = 1, 2, 3, 70, 130

PACKAGE = "scipy.special"
SPECIAL_FUNCTIONS = (
    "betainc",
    "betaincc",
    "betaincinv",
    "betaln",
    "chdtrc",
    "expit",
    "gammaincinv",
    "gammaln",
    "kolmogorov",
    "logit",
    "ndtr",
    "ndtri",
    "stdtrit",
    "xlogy",
)


class LazyCommands(click.Group):
    """Imports a command's module when the command is asked for; `--help` needs none of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return [name for name in COMMANDS if name in self.commands or _has_module(name)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name in self.commands:
            return self.commands[cmd_name]
        if cmd_name not in COMMANDS or not _has_module(cmd_name):
            return None
        return import_module(f"howsure.cli.{cmd_name}").command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name]) for name in self.list_commands(ctx)])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        asked = args[0]  # click takes from this list what it can use
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as e:
            from difflib import get_close_matches

            near = get_close_matches(asked, COMMANDS, n=1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            raise click.UsageError(e.message + hint, ctx) from None


def _has_module(name: str) -> bool:
    # A build for the browser leaves out commands that it cannot run.
    return os.path.exists(os.path.join(os.path.dirname(__file__), f"{name}.py"))


@click.group(
    cls=LazyCommands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, "-V", "--version", prog_name="howsure")
def howsure() -> None:
    """How sure is your classifier, and should you believe it?

    \b
    First steps:
      howsure demo                           real predictions, no files needed
      howsure doctor test.npz                what is in my file?
      howsure evaluate test.npz              every number, with its interval
      howsure calibrate --fit val.npz --on test.npz
      howsure threshold val.npz --risk 0.02  when may the model decide alone?

    Exit codes: 0 good, 1 a stated limit is not met, 2 a mistake in the call or the data, 3 an alarm, 70 an internal error,
    130 stopped.
    """


@howsure.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def print_completion(shell: str) -> None:
    """Print a script that completes howsure commands and options in your shell.

    \b
    Examples:
      howsure completion bash >> ~/.bashrc
      howsure completion fish > ~/.config/fish/completions/howsure.fish
    """
    from click.shell_completion import get_completion_class

    completion = get_completion_class(shell)
    assert completion is not None  # click ships these three
    click.echo(completion(howsure, {}, "howsure", "_HOWSURE_COMPLETE").source())


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run the command; every failure is one clear line and an exit code."""
    prepare_streams()
    try:
        code = run(args)
        failure = flush_streams()
        # Where a reader goes away in the middle, as in `howsure … | head`, click has ended with 1:
        # a gate must not pass because nobody read what it said. Here all of it has been said.
        if failure is not None and not isinstance(failure, BrokenPipeError) and code == 0:
            code = _fail(f"standard output: {_explain(failure)}.", USER_MISTAKE)
    except KeyboardInterrupt:  # where click does not look: before it begins, or after it ended
        code = _fail("stopped", INTERRUPTED)
    sys.exit(code)


def run(args: Sequence[str] | None) -> int:
    """The exit code of the command, which has said what went wrong."""
    load_special_lean()
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            code: object = howsure.main(args=args, prog_name="howsure", standalone_mode=False)
    except click.ClickException as e:
        # click's own message may quote what was typed; nothing in it must act on the terminal.
        said = StringIO()
        e.show(said)
        click.echo(make_printable_lines(said.getvalue()), err=True, nl=False)
        code = USER_MISTAKE
    except click.Abort:
        code = _fail("stopped", INTERRUPTED)
    except (InputError, ModuleNotFoundError) as e:
        mistakes.get()(e)
        code = _fail(str(e), USER_MISTAKE)
    except OSError as e:
        where = f"{e.filename}: " if e.filename else ""
        code = _fail(f"{where}{_explain(e)}.", USER_MISTAKE)
    except MemoryError:
        code = _fail(
            "these data do not fit into memory. Evaluate fewer rows, or split the file.",
            USER_MISTAKE,
        )
    except Exception as e:
        if os.environ.get("HOWSURE_DEBUG"):
            raise
        what = f"{type(e).__name__}: {e}".splitlines()[0]
        code = _fail(
            f"this is a bug in howsure ({what}). Set HOWSURE_DEBUG=1 to see where, and report it.",
            OUR_BUG,
        )
    # click returns what a command returned, or the code of ctx.exit.
    return code if isinstance(code, int) else 0


def _show_warning(message: Warning | str, *_: object) -> None:
    """One line, without the place in our code."""
    click.echo(f"howsure: {make_printable(str(message))}", err=True)


def _fail(message: str, code: int) -> int:
    with suppress(OSError):  # nobody listens
        click.echo(f"howsure: {make_printable(message)}", err=True)
    return code


def _explain(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


class LeanSpecialLoader(Loader):
    """Fills the module with the functions alone, and with everything once another name is asked
    for.
    """

    def __init__(self, whole: Loader) -> None:
        self.whole = whole

    def exec_module(self, module: ModuleType) -> None:
        try:
            compiled = import_module(f"{PACKAGE}._ufuncs")
            functions = {name: getattr(compiled, name) for name in SPECIAL_FUNCTIONS}
        except (ImportError, AttributeError):  # a scipy that is built otherwise
            self.whole.exec_module(module)
            return

        def load_missing(name: str) -> object:
            if name.startswith("__"):
                raise AttributeError(name)
            # Taken away first: the package's own import must not come back here.
            if vars(module).pop("__getattr__", None) is not None:
                self.whole.exec_module(module)
            try:
                return vars(module)[name]
            except KeyError:
                raise AttributeError(f"module {PACKAGE!r} has no attribute {name!r}") from None

        vars(module).update(functions, __getattr__=load_missing)


class LeanSpecialFinder(MetaPathFinder):
    """Finds scipy.special and nothing else."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != PACKAGE:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = LeanSpecialLoader(spec.loader)
        return spec


def load_special_lean() -> None:
    """From here on scipy.special is loaded this way, unless it is loaded already."""
    if not any(isinstance(finder, LeanSpecialFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, LeanSpecialFinder())
