"""Measures a model's answers from long conversations: run from the project's root.

    python benchmarks/answers.py --data FILE --format locomo --base-url URL --model NAME --out DIR

Each conversation is stored as a chat through the product's own services, with its own times, in a
database of its own in a temporary folder. Each question is then asked through the service behind
``POST chat/``, as if it were the day after (LoCoMo) or its own date (LongMemEval), and the chat
never holds an earlier question. A judge grades the answer by a fixed prompt (``--judge-model``, by
default the same model; ``--no-judge``: none). Words are compared, too, and the evidence that recall
found is counted.

Each question has a file in DIR/questions. A run that is stopped or killed goes on where it was when
it is started again with the same folder: finished questions are never asked again, failed ones are.
The server's key is read from OPENAI_API_KEY, the judge's from JUDGE_API_KEY. Settings of the
environment, such as RECALL_TOP_K or EMBEDDER, apply.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import signal
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from own_database import own_database

# isort: split

from answer_measures import Prices, summarise
from answer_runs import ResultFiles, Run, Server
from conversations import Conversation, DataError, read_locomo, read_longmemeval
from django.core.management import call_command

READERS = {"locomo": read_locomo, "longmemeval": read_longmemeval}


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--format", choices=READERS, required=True)
    parser.add_argument("--base-url", required=True, help="of the model's server, with /v1")
    parser.add_argument("--model", required=True)
    parser.add_argument("--judge-model", help="by default the same model")
    parser.add_argument("--judge-base-url", help="by default the same server")
    parser.add_argument("--no-judge", action="store_true", help="only compare words")
    parser.add_argument("--out", type=Path, required=True, help="the folder of the results")
    parser.add_argument("--limit", type=_positive, help="ask so many questions, chosen by the seed")
    parser.add_argument("--workers", type=_positive, default=4, help="conversations at once")
    parser.add_argument("--seed", type=int, help="sent to the models; chooses the questions")
    parser.add_argument("--temperature", type=float, help="sent to the models")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds of one call")
    parser.add_argument("--retries", type=int, default=4, help="of a question that failed")
    parser.add_argument("--wait", type=float, default=5.0, help="seconds before the first retry")
    parser.add_argument("--price-in", type=float, default=0.0, help="of a million tokens read")
    parser.add_argument("--price-out", type=float, default=0.0, help="of a million written")
    parser.add_argument("--judge-price-in", type=float, help="by default --price-in")
    parser.add_argument("--judge-price-out", type=float, help="by default --price-out")
    return parser.parse_args(arguments)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return number


def chosen(
    conversations: Sequence[Conversation], limit: int | None, seed: int | None
) -> list[Conversation]:
    """The conversations with the questions that are asked. A lower limit chooses some of those
    that a higher one chooses."""
    keys = [question.key for each in conversations for question in each.questions]
    if len(set(keys)) < len(keys):
        raise DataError("Two questions have the same id.")
    random.Random(seed or 0).shuffle(keys)
    wanted = set(keys[:limit])
    return [
        replace(each, questions=asked)
        for each in conversations
        if (asked := [one for one in each.questions if one.key in wanted])
    ]


def settings_of(options: argparse.Namespace) -> dict[str, Any]:
    """What a run must have in common with one that it goes on with."""
    names = ("format", "model", "judge_model", "no_judge", "seed", "temperature")
    data = hashlib.sha256(options.data.read_bytes()).hexdigest()
    return {name: getattr(options, name) for name in names} | {"data": data}


def build_run(options: argparse.Namespace, files: ResultFiles) -> Run:
    """The run with its models. Raises ValueError for an address that is none."""
    key = os.environ.get("OPENAI_API_KEY", "")
    judge_url = options.judge_base_url or options.base_url
    judge_key = os.environ.get("JUDGE_API_KEY", "" if options.judge_base_url else key)
    judge = Server(judge_url, options.judge_model or options.model, judge_key)
    given = {"seed": options.seed, "temperature": options.temperature}
    return Run(
        answerer=Server(options.base_url, options.model, key),
        judge=None if options.no_judge else judge,
        files=files,
        sampling={name: value for name, value in given.items() if value is not None},
        timeout=options.timeout,
        retries=options.retries,
        wait=options.wait,
    )


def ask(run: Run, conversations: Sequence[Conversation], workers: int) -> bool:
    """Ask everything; return whether the run came to its end."""
    questions = [one for each in conversations for one in each.questions]
    done = sum((run.files.read(one.key) or {}).get("state") == "done" for one in questions)
    total = len(questions) - done
    print(f"{total} questions to ask, {done} are finished", flush=True)
    lock = threading.Lock()
    asked = 0

    def finished(record: dict[str, Any]) -> None:
        nonlocal asked
        with lock:
            asked += 1
            verdict = {True: "correct", False: "wrong"}.get(record.get("correct"), record["state"])
            took = record.get("timings", {}).get("answer_ms", 0) / 1000
            print(f"{asked}/{total} {record['id']} {verdict} {took:.1f} s", flush=True)

    with ThreadPoolExecutor(workers) as pool:
        # A person talks to the assistant; two people talk in a group in which it is.
        futures = [
            pool.submit(
                run.ask_all,
                each,
                f"{place}@g.us" if each.speakers else f"{15_550_200_000 + place}@c.us",
                finished,
            )
            for place, each in enumerate(conversations, start=1)
        ]
        try:
            for future in futures:
                future.result()
        except BaseException as error:
            run.stopping.set()
            pool.shutdown(cancel_futures=True)
            if not isinstance(error, KeyboardInterrupt):
                raise
            return False
    return True


def report(
    options: argparse.Namespace, files: ResultFiles, conversations: Sequence[Conversation]
) -> None:
    """Print the summary and keep it as summary.json."""
    prices = Prices(options.price_in, options.price_out)
    read = options.price_in if options.judge_price_in is None else options.judge_price_in
    written = options.price_out if options.judge_price_out is None else options.judge_price_out
    questions = [one for each in conversations for one in each.questions]
    records = [
        files.read(one.key)
        or {"id": one.key, "kind": one.kind, "abstains": one.abstains, "state": "open"}
        for one in questions
    ]
    rows = summarise(records, prices, Prices(read, written))
    files.write(files.folder / "summary.json", rows)
    columns = list(rows[0]) if rows else []
    print("\n| " + " | ".join(columns) + " |\n|" + " --- |" * len(columns))
    for row in rows:
        print("| " + " | ".join(_shown(value) for value in row.values()) + " |")
    failed = [record for record in records if record["state"] != "done"]
    if failed:
        print(f"\n{len(failed)} questions are not finished: start the same command again.")


def _shown(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def main() -> int:
    """Ask and print; 1 if questions are left."""
    options = parse()
    try:
        everything = READERS[options.format](options.data)
        conversations = chosen(everything, options.limit, options.seed)
        files = ResultFiles(options.out)
        files.check_run(settings_of(options))
        run = build_run(options, files)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    # The server of the database ends with the run.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with own_database():
        call_command("createcachetable")
        ended = ask(run, conversations, options.workers)
        report(options, files, conversations)
    rows = json.loads((files.folder / "summary.json").read_text(encoding="utf-8"))
    return 0 if ended and all(row["questions"] == row["finished"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
