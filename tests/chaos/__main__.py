"""`make chaos`: print what became of each message; the exit code is 1 where a promise broke."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TextIO

from tests.chaos.run import Plan, run


def say(text: str, where: TextIO) -> None:
    where.write(f"{text}\n")
    where.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    defaults = Plan()
    parser.add_argument("--messages", type=int, default=defaults.messages)
    parser.add_argument("--chats", type=int, default=defaults.chats)
    parser.add_argument("--senders", type=int, default=defaults.senders)
    parser.add_argument("--kill-every", type=float, default=defaults.kill_every)
    parser.add_argument("--faults", type=float, default=defaults.faults)
    parser.add_argument("--settle-seconds", type=int, default=defaults.settle_seconds)
    parser.add_argument("--seed", type=int, default=defaults.seed)
    verdict = run(Plan(**vars(parser.parse_args())), lambda text: say(text, sys.stderr))
    say(json.dumps(verdict.as_dict(), indent=1), sys.stdout)
    return 0 if verdict.held else 1


if __name__ == "__main__":
    sys.exit(main())
