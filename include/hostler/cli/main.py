"""Entry point of the ``hostler`` command.

Modules that cost time to import (SDKs, the database) are imported by the command that needs them: start-up stays under 1 s.
Exit status: 0 done; 1 it found something that needs a person; 2 it could not be done, with one line saying why; 130 interrupted.
"""

import argparse
import math
import os
import sys
from collections.abc import Callable, Sequence

from hostler import __version__
from hostler.cli.advise_arguments import add_options as add_advise_options
from hostler.cli.offers_arguments import add_options as add_offers_options

Command = Callable[[argparse.Namespace], int]


def build_parser() -> argparse.ArgumentParser:
    """Returns the parser; each command carries its function as ``run``."""
    parser = argparse.ArgumentParser(
        prog="hostler", description="The life of rented accelerator nodes. Works with Airflow down."
    )
    parser.add_argument("--version", action="version", version=f"hostler {__version__}")
    parser.add_argument(
        "--fleet", metavar="FILE", help="fleet.yaml to use (default: $HOSTLER_FLEET, ./fleet.yaml, ~/.hostler/)"
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_looking(commands)
    _add_page(commands)
    _add_acting(commands)
    _add_ledger(commands)
    _add_backups(commands)
    _add_health(commands)
    _add_catalog(commands)
    _add_planning(commands)
    _add_prices(commands)
    _add_first_day(commands)
    return parser


def _add_looking(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    status = commands.add_parser("status", help="leases, nodes, spending against limits")
    status.add_argument("--all", action="store_true", help="ended leases too")
    _add_json(status)
    status.set_defaults(run=_lazy("hostler.cli.show", "status"))
    nodes = commands.add_parser("nodes", help="every node with state, health and cost")
    nodes.add_argument("--all", action="store_true", help="gone nodes too")
    _add_json(nodes)
    nodes.set_defaults(run=_lazy("hostler.cli.show", "nodes"))
    why = commands.add_parser("why", help="what a lease is doing, waiting for, and why it ended")
    why.add_argument("lease")
    _add_json(why)
    why.set_defaults(run=_lazy("hostler.cli.show", "why"))
    logs = commands.add_parser("logs", help="the job's log, straight from the nodes")
    logs.add_argument("lease")
    logs.add_argument("-f", "--follow", action="store_true", help="go on until the job ends")
    logs.add_argument("--rank", type=int, default=0, help="which node of the gang (default 0)")
    logs.set_defaults(run=_lazy("hostler.cli.logs", "logs"))


def _add_page(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    page = commands.add_parser("page", help="the Fleet page for a browser on this machine, without Airflow; read-only")
    page.add_argument("--port", type=int, default=8640, help="on 127.0.0.1 (default 8640; 0 takes a free one)")
    page.add_argument(
        "--token-file",
        metavar="FILE",
        default="~/.hostler/page-token",
        help="holds the token that the page asks for, mode 0600; made when it is not there (default ~/.hostler/page-token)",
    )
    page.add_argument("--airflow-url", metavar="URL", help="Airflow's UI, for links to runs and logs (default: no links)")
    page.set_defaults(run=_lazy("hostler.cli.page", "page"))


def _add_acting(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    release = commands.add_parser("release", help="checkpoint, end the nodes, and stay until the cloud says gone")
    release.add_argument("lease")
    release.add_argument("--reason", default="asked by a person")
    release.add_argument("--wait-s", type=_seconds, default=120.0, help="how long to stay (default 120)")
    release.set_defaults(run=_lazy("hostler.cli.act", "release"))
    reap = commands.add_parser("reap", help="compare ledger and clouds in both directions and put right what is safe")
    reap.add_argument("--dry-run", action="store_true", help="say what would be done, do nothing")
    reap.add_argument(
        "--confirm", action="store_true", help="this ledger is the right one: let reap act on what it does not know"
    )
    _add_json(reap)
    reap.set_defaults(run=_lazy("hostler.cli.act", "reap"))
    stop = commands.add_parser("stop-spending", help="no purchase anywhere from now on")
    stop.add_argument("--reason", default="asked by a person")
    stop.set_defaults(run=_lazy("hostler.cli.act", "stop_spending"))
    resume = commands.add_parser("resume", help="purchases are allowed again")
    resume.set_defaults(run=_lazy("hostler.cli.act", "resume"))
    restore = commands.add_parser("restore", help="verify a lease's backup and unpack it")
    restore.add_argument("lease")
    restore.add_argument("--into", required=True, metavar="FOLDER", help="where to unpack; must not exist or be empty")
    restore.set_defaults(run=_lazy("hostler.cli.act", "restore"))


def _add_ledger(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    ledger = commands.add_parser("ledger", help="the ledger's database")
    actions = ledger.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, text in (
        ("start", "start the embedded PostgreSQL and bring the schema up to date"),
        ("stop", "stop the embedded PostgreSQL"),
        ("status", "where it is and whether the schema fits"),
        ("upgrade", "bring the schema up to date"),
    ):
        action = actions.add_parser(name, help=text)
        action.set_defaults(run=_lazy("hostler.cli.ledger", name))
    down = actions.add_parser("downgrade", help="take the schema back to an earlier release's, before that release is put back")
    down.add_argument(
        "--to", required=True, metavar="SCHEMA", help="for example 0001; the earlier release names the one it needs"
    )
    down.set_defaults(run=_lazy("hostler.cli.ledger", "downgrade"))
    _add_ledger_backups(actions)


def _seconds(text: str) -> float:
    """Reads a length of time. Raises ArgumentTypeError for what is none, not finite or below 0."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not (math.isfinite(seconds) and seconds >= 0):
        raise argparse.ArgumentTypeError(f"{text!r}: allowed are seconds from 0 on")
    return seconds


def _add_ledger_backups(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    module, place = "hostler.cli.ledger_backup", "folder or URI (default: the backup store)"
    backup = actions.add_parser("backup", help="write an encrypted backup of the ledger and read it back")
    backup.add_argument("--into", metavar="PLACE", help=place)
    backup.add_argument("--rows", action="store_true", help="row by row, also where pg_dump could")
    backup.set_defaults(run=_lazy(module, "backup"))
    backups = actions.add_parser("backups", help="the ledger's backups")
    backups.add_argument("--from", dest="source", metavar="PLACE", help=place)
    backups.set_defaults(run=_lazy(module, "backups"))
    restore = actions.add_parser("restore", help="fill an empty ledger from a backup; it only reports until confirmed")
    restore.add_argument("name", nargs="?", help="which one (default: the newest)")
    restore.add_argument("--from", dest="source", metavar="PLACE", help=place)
    restore.set_defaults(run=_lazy(module, "restore"))
    rebuild = actions.add_parser("rebuild", help="what a lost ledger would hold, from the clouds' tags alone")
    rebuild.add_argument("--dry-run", action="store_true", required=True, help="the only form: it prints, and writes nothing")
    _add_json(rebuild)
    rebuild.set_defaults(run=_lazy(module, "rebuild"))


def _add_backups(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    backups = commands.add_parser("backups", help="what is kept of each run; check, drill, hold")
    _add_json(backups)
    backups.set_defaults(run=_lazy("hostler.cli.backups", "show"))
    actions = backups.add_subparsers(dest="action", metavar="ACTION")
    check = actions.add_parser("check", help="read all back and open them; seal what a run could not seal")
    check.set_defaults(run=_lazy("hostler.cli.backups", "check"))
    drill = actions.add_parser("drill", help="restore one and train on from it")
    drill.add_argument("lease", nargs="?", help="which (default: a random one)")
    drill.add_argument("--scratch", metavar="FOLDER", help="where there is room for it (default: the temporary folder)")
    drill.set_defaults(run=_lazy("hostler.cli.backups", "drill"))
    for name, text in (("hold", "retention must not touch it"), ("unhold", "retention may judge it again")):
        action = actions.add_parser(name, help=text)
        action.add_argument("lease")
        action.add_argument("--reason", required=True)
        action.set_defaults(run=_lazy("hostler.cli.backups", name))


def _add_health(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    explain = commands.add_parser("explain-health", help="what captured outputs and logs say of a node's health, as JSON")
    explain.add_argument("files", nargs="*", metavar="FILE", help="captured output or log; - for standard input")
    explain.add_argument("--lines", action="store_true", help="kernel lines from standard input, one JSON line each")
    explain.add_argument("--source", metavar="KIND", help="what it is, such as nvidia-smi-xml (default: recognised)")
    explain.add_argument("--command", dest="captured", metavar="TEXT", help="the command line that was captured")
    explain.add_argument("--exit-code", type=int, metavar="N", help="exit status of that command")
    explain.set_defaults(run=_lazy("hostler.cli.health", "explain_health"))


def _add_catalog(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    explain = commands.add_parser(
        "explain-error",
        help='what a cloud\'s error means: JSON lines {"cloud", "call", "raw"} in, one JSON line each out',
        description="Exit status: 0 every line explained; 1 some lines could not be read, and what is printed for them says why.",
    )
    explain.set_defaults(run=_lazy("hostler.cli.explain_error", "explain_error"))


def _add_planning(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    offers = commands.add_parser("offers", help="what can be bought for a request, best first, and why the rest is out")
    add_offers_options(offers)
    _add_json(offers)
    offers.set_defaults(run=_lazy("hostler.cli.offers", "offers"))
    advise = commands.add_parser("advise", help="which accelerators a workload wants, with the arithmetic")
    add_advise_options(advise)
    _add_json(advise)
    advise.set_defaults(run=_lazy("hostler.cli.advise", "advise_command"))


def _add_prices(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    prices = commands.add_parser("prices", help="prices that are planned with; --refresh asks the clouds for them")
    prices.add_argument("--refresh", action="store_true", help="ask the clouds of prices.sources, check, accept or refuse")
    prices.add_argument("--accept-jumps", action="store_true", help="prices have really moved by over 20 %%: I have looked")
    prices.add_argument("--cloud", action="append", help="refresh only this cloud; may be given again")
    _add_json(prices)
    prices.set_defaults(run=_lazy("hostler.cli.prices", "prices"))


def _add_first_day(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    doctor = commands.add_parser("doctor", help="is everything there that a run needs: each check with its fix")
    doctor.add_argument("cloud", nargs="?", default="aws", help="cloud of fleet.yaml (default: aws)")
    doctor.add_argument(
        "--policy",
        nargs="?",
        const="controller",
        choices=("controller", "nodes"),
        help="print the least-privilege policy document instead, of who runs Hostler or of its nodes",
    )
    doctor.add_argument("--account", metavar="ID", help="account to narrow the policy document to (default: asked)")
    doctor.add_argument(
        "--dry-runs", action="store_true", help="in mode observe too, ask for write permissions by the cloud's own dry run"
    )
    doctor.add_argument("--strict", action="store_true", help="exit status 1 for warn and unknown too")
    _add_json(doctor)
    doctor.set_defaults(run=_lazy("hostler.cli.doctor", "doctor"))
    adopt = commands.add_parser("adopt", help="machines that run already, and what would be done with them")
    adopt.add_argument("--dry-run", action="store_true", help="show only; there is no other way yet")
    _add_json(adopt)
    adopt.set_defaults(run=_lazy("hostler.cli.adopt", "adopt"))


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="one JSON document instead of a table")


def _lazy(module: str, function: str) -> Command:
    """Returns a command that imports its module only when it runs."""

    def run(options: argparse.Namespace) -> int:
        import importlib

        command: Command = getattr(importlib.import_module(module), function)
        return command(options)

    return run


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns the exit status; an error is one line, never a traceback (unless HOSTLER_DEBUG is set)."""
    options = build_parser().parse_args(arguments)
    if options.fleet:
        os.environ["HOSTLER_FLEET"] = options.fleet
    try:
        status: int = options.run(options)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader (head, less) went away: nothing is wrong. Keep Python from writing to the pipe again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if os.environ.get("HOSTLER_DEBUG"):
            raise
        print(f"hostler: {describe(error)}", file=sys.stderr)
        return 2
    return status


def describe(error: BaseException) -> str:
    """Returns one or more plain lines for an error; an unexpected one says how to see more."""
    known = ("hostler.", "builtins")
    text = str(error) or type(error).__name__
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    if type(error).__module__.startswith(known) and not isinstance(error, (TypeError, AttributeError, KeyError)):
        return text
    return f"unexpected {type(error).__name__}: {text} (set HOSTLER_DEBUG=1 for the traceback)"


if __name__ == "__main__":
    sys.exit(main())
