"""The arguments of ``hostler offers``; imports nothing, since every command builds the parser."""

import argparse

_DOMAINS = ("zone", "region", "cloud", "any")
_SPREADS = _DOMAINS[:-1]
_KINDS = "on-demand, spot, reserved"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds every option of the command."""
    wanted = parser.add_argument_group("what")
    wanted.add_argument("--accelerator", required=True, metavar="NAMES", help="one name or several with commas: any will do")
    wanted.add_argument("--count", type=int, default=8, help="accelerators in each node (default 8)")
    wanted.add_argument("--nodes", type=int, default=1, help="nodes of the gang (default 1)")
    wanted.add_argument("--spot", action="store_true", help="spot too (default: on-demand alone)")
    wanted.add_argument("--capacity", metavar="KINDS", help=f"capacity types with commas, instead of --spot: {_KINDS}")
    wanted.add_argument("--max-price", metavar="USD", help="highest price of one node for an hour")
    wanted.add_argument("--interconnect", action="store_true", help="only types with a known fast network between machines")
    _add_place(parser.add_argument_group("where"))
    _add_work(parser.add_argument_group("the work, for the true cost"))
    lists = parser.add_argument_group("from what")
    lists.add_argument(
        "--catalog", nargs="+", action="extend", default=[], metavar="PATH", help="price lists or folders (default: shipped)"
    )
    lists.add_argument("--keep-going", action="store_true", help="leave out broken rows, and name them")
    lists.add_argument("--capacity-file", metavar="FILE", help="JSON with quotas, reservations, open spot requests, spending")
    lists.add_argument("--ledger", action="store_true", help="ask the deployment: its price lists, stock-outs, spending, cap")
    shown = parser.add_argument_group("how to show it")
    shown.add_argument("--limit", type=int, default=10, help="rows of the table (default 10; 0: all)")
    shown.add_argument("--why-not", action="store_true", help="every refusal on its own line")


def _add_place(group: "argparse._ArgumentGroup") -> None:
    for name, text in (
        ("--cloud", "only these clouds"),
        ("--region", "only these regions"),
        ("--zone", "only these zones"),
        ("--exclude", "never these clouds, regions, cloud/regions or zones"),
        ("--prefer", "clouds, regions or cloud/regions that are worth --prefer-ratio more"),
    ):
        group.add_argument(name, action="append", default=[], metavar="NAMES", help=f"{text}; with commas, may be repeated")
    group.add_argument("--prefer-ratio", default="0.1", metavar="RATIO", help="how much more (default 0.1: a tenth)")
    group.add_argument("--domain", default="zone", metavar="DOMAIN", help=f"what all nodes share: {', '.join(_DOMAINS)}")
    group.add_argument("--steady", type=int, default=0, metavar="N", help="at least N nodes on-demand or reserved")
    group.add_argument("--spread", type=int, default=1, metavar="N", help="deal the nodes evenly to N of --spread-over")
    group.add_argument("--spread-over", default="zone", metavar="DOMAIN", help=f"one of {', '.join(_SPREADS)}")


def _add_work(group: "argparse._ArgumentGroup") -> None:
    group.add_argument("--hours", metavar="H", help="useful hours on the whole gang (default: 24 assumed)")
    group.add_argument("--checkpoint-s", default="60", metavar="S", help="a checkpoint stops the work so long (default 60)")
    group.add_argument("--restore-s", default="600", metavar="S", help="from a loss until the work goes on (default 600)")
    group.add_argument("--startup-s", default="900", metavar="S", help="from launch to the first step (default 900)")
    group.add_argument("--disk-gib", default="200", metavar="GIB", help="network disk of a node (default 200)")
    group.add_argument("--data-gib", default="0", metavar="GIB", help="data that is read once")
    group.add_argument("--output-gib", default="0", metavar="GIB", help="results that are brought back")
    group.add_argument(
        "--data-at", default="", metavar="PLACE", help="where the data lies: cloud or cloud/region (default: none)"
    )
    group.add_argument(
        "--interruptions",
        action="append",
        default=[],
        metavar="WHERE=RATE",
        help="losses of a spot node in an hour; WHERE is a cloud, cloud/region, cloud/region//type or an offering's key",
    )
    group.add_argument("--max-total", metavar="USD", help="highest cost of the whole work; needs --hours")
    group.add_argument("--list-price", action="store_true", help="rank by list price alone")
