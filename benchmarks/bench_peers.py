"""Measures recall here and by Chroma, mem0 and LangGraph's PostgresStore, side by side.

    python benchmarks/bench_peers.py [--sizes 10000,100000] [--data CONVERSATIONS.json]

Installs the others into an environment of its own (benchmarks/peers/requirements.txt), fills all
with the same texts, and asks all the same questions with the same embedder for the first 5. The
products take turns, some questions each, so that whatever else the machine does slows all of
them. With --data the texts and questions are those of conversations in LoCoMo's form, and what is
found is measured, too; without it they are made of templates, and only the time counts.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from own_database import machine, own_database

# isort: split

from conversations import Conversation, read_conversations
from django.db import connection
from psycopg.conninfo import make_conninfo
from template_texts import QUESTIONS, made_up, name_of

HERE = Path(__file__).resolve().parent
TOP_K, FOUND_K = 5, 10
SCOPE = "one-scope"
# The fewest questions of a product at a time, and of the warm-up.
TURN = 20
REFERENCE = "chroma"
OURS = "ours"
OVER_HTTP = "memories over HTTP"


@dataclass(frozen=True)
class Product:
    """What is measured: a worker of benchmarks/peers/worker.py, and its mode, if it has several."""

    name: str
    worker: str
    mode: str = ""

    @property
    def options(self) -> dict[str, str]:
        return {"mode": self.mode} if self.mode else {}


PRODUCTS = (
    Product("Chroma, in process", "chroma"),
    Product("mem0, pgvector", "mem0"),
    Product("LangGraph, pgvector", "langgraph"),
    Product("ours, memories", OURS, "memories"),
    Product("ours, messages of one chat", OURS, "messages"),
    Product("ours, both, as a turn asks", OURS, "memories and messages"),
    Product("Chroma over HTTP", "chroma over HTTP"),
    Product("ours, memories over HTTP", OURS, OVER_HTTP),
)


@dataclass
class Measured:
    """Milliseconds by one client, and by several at once with the seconds of all together."""

    alone: list[float] = field(default_factory=list)
    together: list[float] = field(default_factory=list)
    seconds: float = 0.0

    def figures(self) -> dict[str, float]:
        return {
            "p50_ms": percentile(self.alone, 0.5),
            "p95_ms": percentile(self.alone, 0.95),
            "together_p95_ms": percentile(self.together, 0.95),
            "together_a_second": len(self.together) / self.seconds,
        }


class Peer:
    """A product in its own process."""

    def __init__(self, name: str, python: Path, folder: Path, database: str) -> None:
        folder.mkdir(parents=True)
        command = [str(python), str(HERE / "peers" / "worker.py"), name, str(folder), database]
        self._errors = (folder / "errors.txt").open("w+")
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            cwd=HERE.parent,
        )
        self._result()

    def call(self, name: str, *arguments: Any, **options: Any) -> Any:
        assert self._process.stdin is not None
        print(json.dumps([name, arguments, options]), file=self._process.stdin, flush=True)
        return self._result()

    def _result(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._errors.seek(0)
            sys.exit(f"A product ended:\n{self._errors.read()[-3000:]}")
        return json.loads(line)

    def close(self) -> None:
        self.call("close")
        self._process.wait()


def percentile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def environment(folder: Path) -> Path:
    """The Python of an environment with the other products; made where it isn't there."""
    python = folder / "bin" / "python"
    wanted = HERE / "peers" / "requirements.txt"
    stamp = folder / "installed.txt"
    if not stamp.exists() or stamp.read_text() != wanted.read_text():
        print(f"Installing the other products in {folder} …", file=sys.stderr)
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "-r", wanted], check=True)
        stamp.write_text(wanted.read_text())
    return python


def texts_of(conversations: Sequence[Conversation], count: int) -> list[str]:
    """So many different texts: turns of conversations with a number, or made-up ones."""
    if not conversations:
        return list(made_up(count, random.Random(1)))
    turns = [turn.text for conversation in conversations for turn in conversation.turns]
    return [f"{turns[number % len(turns)]} #{number}" for number in range(count)]


def questions_of(conversations: Sequence[Conversation]) -> Iterator[str]:
    """Questions without an end, in an order of chance."""
    chance = random.Random(7)
    asked = [each.text for conversation in conversations for each in conversation.questions]
    while True:
        if asked:
            yield chance.choice(asked)
        else:
            number = chance.randrange(1_000)
            text = chance.choice(list(QUESTIONS.values()))
            yield text.format(name=name_of(number), person=name_of(number, salt=3))


@contextmanager
def peers(names: Sequence[str], python: Path, folder: Path) -> Iterator[dict[str, Peer]]:
    """The workers of the products, each with a folder and a database of its own."""
    with ExitStack() as stack:
        started = {}
        for name in names:
            own = name == OURS
            key = name.replace(" ", "_").lower()
            at = Path(sys.executable) if own else python
            started[name] = Peer(name, at, folder / key, "" if own else new_database(key))
            stack.callback(started[name].close)
        yield started


def new_database(name: str) -> str:
    """An empty database on the embedded server; where it is."""
    with connection.cursor() as cursor:
        cursor.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        cursor.execute(f'CREATE DATABASE "{name}"')
    own = connection.connection.info
    return make_conninfo(own.dsn, dbname=name, password=own.password)


def measure(
    products: Sequence[Product], started: dict[str, Peer], options: argparse.Namespace
) -> dict[str, dict[str, float]]:
    """Ask all products the same questions by turns; return the figures by product."""
    questions = questions_of(options.conversations)
    measured = {product.name: Measured() for product in products}
    warm = list(islice(questions, TURN))
    for product in products:
        for clients in (1, options.clients):
            started[product.worker].call("ask", SCOPE, warm, TOP_K, clients, **product.options)
    for _ in range(max(1, options.questions // TURN)):
        alone = list(islice(questions, TURN))
        together = list(islice(questions, TURN * options.clients))
        for product in products:
            into, worker = measured[product.name], started[product.worker]
            into.alone += worker.call("ask", SCOPE, alone, TOP_K, 1, **product.options)["ms"]
            done = worker.call("ask", SCOPE, together, TOP_K, options.clients, **product.options)
            into.together += done["ms"]
            into.seconds += done["seconds"]
    return {name: each.figures() for name, each in measured.items()}


def of_size(
    size: int, products: Sequence[Product], python: Path, options: argparse.Namespace
) -> dict[str, dict[str, float]]:
    """Fill all products with so many texts and measure them."""
    names = list(dict.fromkeys(product.worker for product in products))
    with tempfile.TemporaryDirectory(prefix="memory-peers-") as folder:
        file = Path(folder) / "texts.json"
        file.write_text(json.dumps(texts_of(options.conversations, size)))
        with peers(names, python, Path(folder)) as started:
            for name, peer in started.items():
                seconds = peer.call("fill", SCOPE, str(file))
                print(f"{name}: {size} texts in {seconds:.0f} s", file=sys.stderr, flush=True)
            if any(product.mode == OVER_HTTP for product in products):
                started[OURS].call("serve")
            return measure(products, started, options)


def found_by(
    products: Sequence[Product], python: Path, options: argparse.Namespace
) -> dict[str, float]:
    """Recall@10 of each product on the conversations: ours in the messages of a chat."""
    asked = [each for each in products if each.mode in ("", "messages")]
    asked = [each for each in asked if "HTTP" not in each.name]
    names = [product.worker for product in asked]
    with (
        tempfile.TemporaryDirectory(prefix="memory-peers-") as folder,
        peers(names, python, Path(folder)) as started,
    ):
        return {
            product.name: started[product.worker].call(
                "quality", str(options.data.resolve()), FOUND_K, **product.options
            )["recall"]
            for product in asked
        }


def table(size: int, figures: dict[str, dict[str, float]], clients: int) -> str:
    """The figures in Markdown, each p50 also as a multiple of Chroma's."""
    rows = [
        f"| {size:,} texts | p50 ms | p95 ms | p50 to Chroma's | {clients} clients: a second |"
        " p95 ms |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    references = (figures.get(each.name) for each in PRODUCTS if each.worker == REFERENCE)
    reference = next(references, None)
    for name, each in figures.items():
        ratio = f"{each['p50_ms'] / reference['p50_ms']:.1f}" if reference else "-"
        rows.append(
            f"| {name} | {each['p50_ms']:.1f} | {each['p95_ms']:.1f} | {ratio} "
            f"| {each['together_a_second']:.0f} | {each['together_p95_ms']:.1f} |"
        )
    return "\n".join(rows)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="10000,100000", help="how many texts, comma-separated")
    parser.add_argument("--questions", type=int, default=400, help="of each product and size")
    parser.add_argument("--clients", type=int, default=8, help="at once")
    names = [each.name for each in PRODUCTS]
    parser.add_argument("--only", action="append", choices=names, help="may be repeated")
    parser.add_argument("--data", type=Path, help="conversations, as JSON")
    parser.add_argument("--json", type=Path, help="where the figures go, too")
    default = HERE.parent / "data" / "peers"
    parser.add_argument("--environment", type=Path, default=default, help="of the others")
    options = parser.parse_args()
    options.sizes = [int(size) for size in options.sizes.split(",")]
    options.conversations = read_conversations(options.data) if options.data else []
    return options


def main() -> None:
    options = arguments()
    products = [each for each in PRODUCTS if not options.only or each.name in options.only]
    python = environment(options.environment)
    report: dict[str, Any] = {"sizes": {}}
    with own_database():
        report["machine"] = machine()
        print(f"First {TOP_K}, {options.questions} questions; {report['machine']}\n")
        if options.data:
            report["recall_at_10"] = found_by(products, python, options)
            print("| recall@10 in conversations | |\n| --- | --- |")
            print("\n".join(f"| {k} | {v:.3f} |" for k, v in report["recall_at_10"].items()) + "\n")
        for size in options.sizes:
            began = time.monotonic()
            figures = report["sizes"][size] = of_size(size, products, python, options)
            print(table(size, figures, options.clients) + "\n", flush=True)
            print(f"{size}: {time.monotonic() - began:.0f} s", file=sys.stderr)
    if options.json:
        options.json.write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
