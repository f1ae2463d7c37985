"""Plays any number of seeds: ``python -m tests.sim.soak --seeds 5000 --first 1000``. Ends with 1 when one fails."""

import argparse
import logging
import sys
import time
import traceback

from tests.sim.scenario import play_seed


def replay_command(seed):
    return f"python -m tests.sim.soak --seeds 1 --first {seed} --verbose"


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first one")
    parser.add_argument("--verbose", action="store_true", help="print the trace of a failure")
    options = parser.parse_args(argv)
    logging.disable(logging.WARNING)
    began, failed = time.monotonic(), 0
    for seed in range(options.first, options.first + options.seeds):
        try:
            play_seed(seed)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - a broken invariant is no Exception, on purpose
            failed += 1
            sys.stdout.write(f"seed {seed}: {error!r}\n  replay: {replay_command(seed)}\n")
            if options.verbose:
                traceback.print_exc()
    took_s = time.monotonic() - began
    sys.stdout.write(f"{options.seeds} seeds, {failed} failed, {took_s:.1f} s\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
