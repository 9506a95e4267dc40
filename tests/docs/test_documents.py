"""README and docs name what is there: commands, targets, files, error codes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from argparse import ArgumentParser, _SubParsersAction

import pytest
from django.core.management import get_commands, load_command_class

from memoryproject.foundation.integrations.whatsapp.cloud.error_policies import Policy, policy_for
from memoryproject.foundation.tables import read_table
from tests.docs.sources import DOCUMENTS, OUR_APPS, PROJECT, read, tracked_files

OURS = sorted(name for name, app in get_commands().items() if app in OUR_APPS)
LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")
ERROR_ROW = re.compile(
    r"^\| ([A-Z]+(?:-[A-Z]+)?-\d{3}) \|.*`([\w/]+\.py)::(\w+)` \|$", re.MULTILINE
)
CODES = re.compile(r"^\| Cloud API ([0-9, to]+) \| (.+) \|$", re.MULTILINE)


def all_documents() -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in DOCUMENTS)


def test_every_command_and_its_options_explain_themselves_and_stand_in_the_docs() -> None:
    documents = all_documents()
    for name in OURS:
        command = load_command_class(get_commands()[name], name)
        assert len(command.help.split()) > 3, name
        assert re.search(rf"manage\.py {name}\b|`{name}`", documents), f"{name}: not in the docs"
        parser = command.create_parser("manage.py", name)
        assert all(action.help for action in parser._actions), f"{name}: an option without help"


def options_of(parser: ArgumentParser) -> set[str]:
    return {name for action in parser._actions for name in (action.dest, *action.option_strings)}


def test_tables_of_commands_name_only_commands_and_options_that_are_there() -> None:
    files = [path for path in tracked_files() if path.name == "commands.yaml"]
    assert files
    for name, texts in (
        (n, t) for file in files for n, t in read_table(str(file), file.name).items()
    ):
        parser = load_command_class(get_commands()[name], name).create_parser("manage.py", name)
        actions = next(
            (each.choices for each in parser._actions if isinstance(each, _SubParsersAction)), {}
        )
        there = {one: options_of(each) for one, each in actions.items()}
        named = texts.get("actions", {})
        assert named.keys() == there.keys(), name
        for one, about in named.items():
            assert set(about.get("options", ())) <= there[one], f"{name} {one}"
        assert set(texts.get("options", ())) <= options_of(parser).union(*there.values()), name


def test_commands_that_the_docs_name_are_there() -> None:
    named = set(re.findall(r"manage\.py ([a-z_]+)", all_documents()))
    assert named <= set(get_commands())


def test_make_targets_that_the_docs_name_are_there() -> None:
    targets = set(re.findall(r"^([a-z-]+):", read("Makefile"), re.MULTILINE))
    named = set(re.findall(r"(?:^ {4}|`)(?:[A-Z_]+=\S+ )?make ([a-z-]+)", all_documents(), re.M))
    assert {"run", "test", "demo"} <= named
    assert named <= targets


def numbered(prefix: str, last: int) -> set[str]:
    return {f"{prefix}-{number:03}" for number in range(1, last + 1)}


def test_every_error_and_edge_case_names_a_test_that_is_there() -> None:
    rows = ERROR_ROW.findall(read("docs/errors.md"))
    assert {found for found, *_ in rows} == (
        numbered("ERR-SESSION", 7)
        | numbered("ERR-MEMORY", 2)
        | numbered("ERR-INTEGRATION", 4)
        | {f"ERR-MEMORY-{number:03}" for number in range(3, 7)}
        | numbered("EDGE", 10)
        | numbered("RECOVERY", 4)
    )
    for found, file, name in rows:
        source = read(file)
        assert f"def {name}(" in source, f"{found}: {name} is not in {file}"
        named = found.lower().replace("-", "_")
        assert found in source or named in source, f"{file} doesn't name {found}"


def test_links_lead_somewhere() -> None:
    for path in DOCUMENTS:
        for target in LINK.findall(path.read_text(encoding="utf-8")):
            if not target.startswith(("http://", "https://")):
                assert (path.parent / target).exists(), (path.name, target)


def test_pictures_are_small() -> None:
    pictures = list((PROJECT / "docs" / "images").glob("*"))
    assert pictures
    assert all(picture.stat().st_size < 250_000 for picture in pictures)


def test_no_paths_of_a_machine() -> None:
    """Outside of tests and code that names system folders, no home or work folder."""
    own = re.compile(r"/(?:home|Users|root|work)/|" + re.escape(str(PROJECT)))
    for path in tracked_files():
        if path.suffix in {".md", ".html", ".css", ".toml", ".txt", ".example", ""}:
            found = own.search(path.read_text(encoding="utf-8", errors="replace"))
            assert found is None, f"{path.relative_to(PROJECT)}: {found}"


def test_the_error_table_is_the_policy_of_the_code() -> None:
    seen = set()
    for numbers, effect in CODES.findall(read("docs/whatsapp.md")):
        for word in numbers.split(", "):
            first, _, last = word.partition(" to ")
            for code in {int(first), int(last or first)}:
                seen.add(code)
                assert _told(policy_for(code)) == effect.split(":")[0].split(",")[0], code
    known = {code for code in range(140_000) if policy_for(code) != policy_for(999_999)}
    assert known - set(range(200, 300)) <= seen


def _told(policy: Policy) -> str:
    """The beginning of the words in which the table tells a policy."""
    if policy.alert:
        return "held"
    if policy.permanent or (policy.retry_after or 0) > 15 * 60:
        return "failed"
    waits = {None: "tried again", 60.0: "tried again after a minute"}
    return waits.get(policy.retry_after, "tried again after 5 and 6 seconds")


@pytest.mark.processes
def test_the_wrong_value_of_the_docs_is_refused_in_those_words() -> None:
    refused = subprocess.run(
        [sys.executable, "manage.py", "check"],
        env={**os.environ, "RECALL_TOP_K": "many"},
        cwd=PROJECT,
        capture_output=True,
        check=False,
        text=True,
    )
    assert refused.returncode == 1
    assert "Traceback" not in refused.stderr
    line = next(line for line in refused.stderr.splitlines() if "E001" in line)
    assert line.strip() in read("docs/configuration.md")
