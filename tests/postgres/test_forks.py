"""Forked children: each counts for itself, none stops the server for its parent."""

from __future__ import annotations

from pathlib import Path

import pytest

from memoryproject.foundation.embedded_postgres import EmbeddedPostgres
from tests.postgres.support import line_of, run_python, start_python

pytestmark = pytest.mark.slow

# The workers of a web server: forked, used or not, ended through sys.exit.
FORKED_WORKERS = """
import os, sys
from pathlib import Path
from memoryproject.foundation.embedded_postgres import EmbeddedPostgres
server = EmbeddedPostgres(Path(sys.argv[1]))
server.ensure_running()
for uses_it in (False, True):
    child = os.fork()
    if child == 0:
        assert not server.is_held, "a child must not count by its parent's share"
        if uses_it:
            server.ensure_running()
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
    print(server.is_held, server.is_running())
server.release()
print(server.is_running())
"""

# A parent that never uses the server itself, as a task queue's: its children do.
MULTIPROCESSING_CHILD = """
import multiprocessing, sys
from pathlib import Path
from memoryproject.foundation.embedded_postgres import EmbeddedPostgres
server = EmbeddedPostgres(Path(sys.argv[1]))
def work():
    server.ensure_running()
    print("child", server.is_running(), flush=True)
child = multiprocessing.get_context("fork").Process(target=work)
child.start()
child.join()
print("parent", server.is_running())
"""

# A child that outlives its parent, whose share it has a copy of.
ABANDONED_CHILD = """
import os, sys
from pathlib import Path
from memoryproject.foundation.embedded_postgres import EmbeddedPostgres
server = EmbeddedPostgres(Path(sys.argv[1]))
server.ensure_running()
reader, writer = os.pipe()
if os.fork() == 0:
    os.write(writer, b"x")
    sys.stdin.read()
    os._exit(0)
os.read(reader, 1)
print("ready", flush=True)
os._exit(0)
"""


def test_a_worker_that_ends_leaves_the_server_to_its_parent(data_dir: Path) -> None:
    result = run_python(FORKED_WORKERS, data_dir)
    assert result.stderr == ""
    assert result.stdout.splitlines() == ["True True", "True True", "False"]


def test_the_last_one_out_may_be_a_multiprocessing_child(data_dir: Path) -> None:
    result = run_python(MULTIPROCESSING_CHILD, data_dir)
    assert result.stderr == ""
    assert result.stdout.splitlines() == ["child True", "parent False"]


def test_an_unused_child_does_not_keep_its_parents_share(data_dir: Path) -> None:
    parent = start_python(ABANDONED_CHILD, data_dir)
    assert line_of(parent) == "ready"
    parent.wait(timeout=60)
    server = EmbeddedPostgres(data_dir)
    server.ensure_running()
    server.release()
    assert not server.is_running()
    parent.communicate(timeout=60)
