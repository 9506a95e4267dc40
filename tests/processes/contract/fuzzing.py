"""Runs schemathesis. As a program, with many examples: `make fuzz-api`."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.processes.contract.world import CALLERS, NONE, World, running

HOOKS = Path(__file__).parent / "hooks.py"
ALL_PHASES = ("examples", "coverage", "fuzzing", "stateful")
# What each parameter may name, and what may be deleted.
NAMED = {
    "path.whatsapp_chat": "chats",
    "path.session_id": "sessions",
    "path.turn_id": "turns",
    "path.memory_id": "memories",
    "path.receipt_id": "receipts",
    "path.identifier": "identifiers",
    "path.namespace": "namespaces",
    "path.key": "keys",
    "path.document_id": "files",
    "path.job_id": "jobs",
    "path.endpoint_id": "endpoints",
    "path.delivery_id": "deliveries",
    "body.url": "urls",
    "query.whatsapp_chat": "chats",
    "body.whatsapp_chat": "chats",
    "body.session_id": "sessions",
}
DOOMED = {
    "path.whatsapp_chat": "doomed_chats",
    "path.session_id": "doomed_sessions",
    "path.memory_id": "doomed_memories",
    "path.category": "categories",
    "path.identifier": "doomed_identifiers",
    "path.namespace": "namespaces",
    "path.key": "doomed_keys",
    "path.document_id": "doomed_files",
    "path.job_id": "doomed_jobs",
    "path.endpoint_id": "doomed_endpoints",
}
# A POST that deletes.
ERASED = {"body.whatsapp_chat": "doomed_chats"}
# The one to which something was sent.
TESTED = {"path.endpoint_id": "tested", "path.delivery_id": "deliveries"}
OFTEN = 0.8


@dataclass(frozen=True)
class Outcome:
    """``seen``: how often each operation answered with each status, as "chat 200"."""

    passed: bool
    output: str
    seen: dict[str, int]


def fuzz(
    world: World,
    caller: str,
    folder: Path,
    *,
    examples: int,
    phases: tuple[str, ...],
    seed: int,
    alike: int | None = None,
) -> Outcome:
    """Hold the schema against the server, as this caller. alike: how many values are tried that
    are wrong in one way at one place, such as of another type; None: all."""
    config, tally = folder / f"{caller}.toml", folder / f"{caller}.json"
    config.write_text(toml_of(world, caller), encoding="utf-8")
    limit = {} if alike is None else {"CONTRACT_ALIKE": str(alike)}
    done = subprocess.run(
        [
            *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(config), "run"),
            *(str(world.schema), "--url", world.installation.url, "--phases", ",".join(phases)),
            *("--max-examples", str(examples), "--seed", str(seed), "--no-color"),
        ],
        cwd=folder,
        env={
            **os.environ,
            "CONTRACT_TALLY": str(tally),
            "CONTRACT_MEMORIES": json.dumps(world.known["memories"]),
            "CONTRACT_SUMMARY": json.dumps(
                {
                    "session_id": world.known["summed"][0],
                    "summary_metadata_id": world.known["summaries"][0],
                }
            ),
            "CONTRACT_PASSING": json.dumps([world.known["passed_in"][0], world.known["passing"]]),
            **limit,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    seen: dict[str, int] = json.loads(tally.read_text()) if tally.exists() else {}
    return Outcome(done.returncode == 0, done.stdout + done.stderr, seen)


def toml_of(world: World, caller: str) -> str:
    """schemathesis's settings. TOML's values are those of JSON here."""
    lines = [
        "continue-on-failure = true",
        f"hooks = {json.dumps(str(HOOKS))}",
        "request-timeout = 60",
        "",
        "[generation]",
        'database = "none"',
        # NUL is refused everywhere, which tests/api/test_bad_input.py shows.
        "allow-x00 = false",
        "no-shrink = true",
        "",
        # tests/api/test_scopes.py tries them all.
        "[phases.coverage]",
        "unexpected-methods = []",
        "",
        "[checks.positive_data_acceptance]",
        f"expected-statuses = {json.dumps(ACCEPTED)}",
        "",
    ]
    if caller != NONE:
        secret = json.dumps(f"Token {world.tokens[caller]}")
        lines += ["[headers]", f"Authorization = {secret}", ""]
    for name, values in world.known.items():
        lines += [f"[dictionaries.{name}]", f"values = {json.dumps(values)}", ""]
    lines += ["[parameters]", *bindings(NAMED), ""]
    lines += ["[[operations]]", 'include-method = "DELETE"', "[operations.parameters]"]
    lines += [*bindings(DOOMED), ""]
    lines += ["[[operations]]", 'include-operation-id = "jobs_erase"']
    lines += ["[operations.parameters]", *bindings(ERASED), ""]
    lines += ["[[operations]]", 'include-operation-id = "webhooks_redeliver"']
    return "\n".join([*lines, "[operations.parameters]", *bindings(TESTED), ""])


# A version that isn't there and a key that was used are refused for what is in the table.
ACCEPTED: list[Any] = ["2xx", "3xx", 401, 403, 404, 409, 412, 422, 429]


def bindings(named: dict[str, str]) -> list[str]:
    return [
        f'"{place}" = {{ dictionary = "{name}", probability = {OFTEN} }}'
        for place, name in named.items()
    ]


def main() -> int:
    """Run as every caller; returns 1 where anything failed."""
    parser = argparse.ArgumentParser(description="Hold the API's schema against a server.")
    parser.add_argument("--examples", type=int, default=300, help="for each operation and phase")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--as", dest="callers", nargs="+", choices=CALLERS, default=CALLERS)
    given = parser.parse_args()
    passed = True
    with running() as world:
        for caller in given.callers:
            outcome = fuzz(
                world,
                caller,
                world.installation.folder,
                examples=given.examples,
                phases=ALL_PHASES,
                seed=given.seed,
            )
            seen = "".join(f"{count:6} {what}\n" for what, count in sorted(outcome.seen.items()))
            sys.stdout.write(f"== {caller}\n{outcome.output}\n{seen}")
            passed &= outcome.passed
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
