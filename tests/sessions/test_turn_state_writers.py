"""No module but the state machine's writes a turn's state."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from sessions_app.models import turn_states
from tests.docs.sources import PROJECT

APPS = ("memoryproject", "sessions_app", "memories_app", "cards_app")
TURN_NAMES = {"Turn", "TurnState"}
# Enumerations of other records' states.
OTHER_STATES = re.compile(r"\b(?!TurnState\b)[A-Z]\w*State\.[A-Z_]+$")
CREATING = {"create", "get_or_create", "update_or_create", "bulk_create", "acreate"}
WRITING = {*CREATING, "update", "aupdate"}
# Whatever writes it names the model or the table.
MENTIONED = re.compile(r"\bTurn(State)?\b|sessions_app_turn\b", re.IGNORECASE)
WRITING_SQL = re.compile(r"(UPDATE|INSERT INTO)\s+\"?sessions_app_turn\b", re.IGNORECASE)


def production_modules() -> list[Path]:
    found = [path for app in APPS for path in sorted((PROJECT / app).rglob("*.py"))]
    return [
        path
        for path in found
        if "migrations" not in path.parts and path != Path(turn_states.__file__)
    ]


def writes_of_turn_states(source: str) -> list[int]:
    """The lines that write a turn's state."""
    if not MENTIONED.search(source):
        return []
    tree = ast.parse(source)
    constants = (node for node in ast.walk(tree) if isinstance(node, ast.Constant))
    found = {node.lineno for node in constants if _is_sql(node)}
    if TURN_NAMES & set(_imported(tree)):
        for node in ast.walk(tree):
            found |= {node.lineno for _ in _writes(node)}  # type: ignore[attr-defined]
    return sorted(found)


def _imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from (alias.name for alias in node.names)


def _writes(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Assign):
        targets = [each for target in node.targets for each in ast.walk(target)]
        yield from (each for each in targets if _is_state(each) and _is_turns(each, node.value))
    elif isinstance(node, ast.AnnAssign | ast.AugAssign) and _is_state(node.target):
        yield node
    elif isinstance(node, ast.Call):
        yield from _writing_call(node)
    elif isinstance(node, ast.Dict):
        named = zip(node.keys, node.values, strict=True)
        yield from (
            value
            for key, value in named
            if isinstance(key, ast.Constant)
            and key.value == "state"
            and "TurnState" in ast.unparse(value)
        )


def _is_state(target: ast.AST) -> bool:
    """``x.state`` or ``x["state"]``, written to."""
    if isinstance(target, ast.Attribute):
        return target.attr == "state" and isinstance(target.ctx, ast.Store)
    return (
        isinstance(target, ast.Subscript)
        and isinstance(target.ctx, ast.Store)
        and isinstance(target.slice, ast.Constant)
        and target.slice.value == "state"
    )


def _is_turns(target: ast.AST, value: ast.AST) -> bool:
    """Whether it may be a turn's: not where the value is another record's state, or where the
    name says that it is a part's."""
    if OTHER_STATES.search(ast.unparse(value)):
        return False
    return not ast.unparse(target).startswith("part.")


def _writing_call(call: ast.Call) -> Iterator[ast.AST]:
    name = ast.unparse(call.func)
    method = name.rpartition(".")[2]
    if method == "setattr" and "'state'" in ast.unparse(call):
        yield call
    if method in {*CREATING, "bulk_update"} and re.search(r"\bTurn\.objects\b", name):
        yield call
    if method in WRITING or method == "Turn":
        for keyword in call.keywords:
            if keyword.arg == "state" and not OTHER_STATES.search(ast.unparse(keyword.value)):
                yield call
    if method == "save" and not name.startswith("part."):
        fields = [each.value for each in call.keywords if each.arg == "update_fields"]
        yield from (call for each in fields if "'state'" in ast.unparse(each))


def _is_sql(node: ast.Constant) -> bool:
    return isinstance(node.value, str) and WRITING_SQL.search(node.value) is not None


def test_only_the_state_machine_writes_a_turns_state() -> None:
    modules = production_modules()
    assert len(modules) > 300
    writers = {
        f"{path.relative_to(PROJECT)}:{line}"
        for path in modules
        for line in writes_of_turn_states(path.read_text(encoding="utf-8"))
    }
    assert writers == set()


IMPORTED = "from sessions_app.models import Turn\n"


@pytest.mark.parametrize(
    "line",
    [
        "turn.state = TurnState.SENT",
        "turn.state = 'sent'",
        "turn.state = state",
        "turn.state, turn.error = TurnState.FAILED, 'a fault'",
        "self.turn.state: str = 'sent'",
        "setattr(turn, 'state', 'sent')",
        "Turn.objects.filter(pk=1).update(state='sent')",
        "held.update(state=TurnState.SENT, error='')",
        "held.update(state=again)",
        "Turn.objects.create(state=TurnState.HELD)",
        "Turn.objects.create(chat=chat)",
        "Turn(chat=chat, state=TurnState.HELD)",
        "Turn.objects.update_or_create(pk=1, defaults={'state': TurnState.HELD})",
        "values['state'] = TurnState.HELD",
        "Turn.objects.bulk_update(turns, ['state'])",
        "turn.save(update_fields=['error', 'state'])",
        "cursor.execute('UPDATE sessions_app_turn SET state = 1')",
    ],
)
def test_every_way_to_write_it_is_seen(line: str) -> None:
    assert writes_of_turn_states(IMPORTED + line) == [2]


@pytest.mark.parametrize(
    "line",
    [
        "part.state = PartState.SENT",
        "part.state = part_state",
        "part.save(update_fields=['state'])",
        "turn.parts.update(state=PartState.UNCONFIRMED)",
        "Turn.objects.filter(state=TurnState.SENT).update(error='')",
        "turn_move(turn, TurnState.SENT)",
        "is_sent = turn.state == TurnState.SENT",
        "Turn.objects.only('state')",
        "TurnReplay.objects.create(turn=turn)",
    ],
)
def test_what_writes_something_else_is_left_alone(line: str) -> None:
    assert writes_of_turn_states(IMPORTED + line) == []
