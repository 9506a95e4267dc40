"""Run tests that failed once more, alone. Exit with 0 only if they all pass now.

Tests with real processes wait for servers, workers and a browser, on a machine that runs others
beside them. One that fails there and passes alone is printed, so that somebody looks at it. All
other tests, and more than MAX_FAILED of these, have no second try.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

LAST_FAILED = Path(".pytest_cache/v/cache/lastfailed")
MAX_FAILED = 3
WITH_PROCESSES = "(processes or browser) and not scale"


def main() -> int:
    failed = sorted(json.loads(LAST_FAILED.read_text())) if LAST_FAILED.exists() else []
    # A whole file has failed if it couldn't be imported.
    if not 0 < len(failed) <= MAX_FAILED or not all("::" in test for test in failed):
        print(f"{len(failed)} tests or files are known to have failed: no second try.")
        return 1
    print("Second try, alone:", *failed, sep="\n  ", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-n", "0", "-m", WITH_PROCESSES]
        ended = subprocess.run([*command, f"--junitxml={report}", *failed], check=False)
        ran = len(list(ElementTree.parse(report).iter("testcase"))) if report.exists() else 0
    if ended.returncode or ran != len(failed):
        print(f"{ran} of {len(failed)} have a second try, exit code {ended.returncode}.")
        return 1
    print("PASSED AT THE SECOND TRY, look at them:", *failed, sep="\n  ")
    return 0


if __name__ == "__main__":
    sys.exit(main())
