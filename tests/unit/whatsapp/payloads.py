"""Where the recorded payloads lie."""

import json
from pathlib import Path
from typing import Any

OWN = Path(__file__).resolve().parents[2] / "payloads"
# A collection that some checkouts have beside the project.
SHARED = Path(__file__).resolve().parents[4] / "shared" / "whatsapp"


def load(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def names(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.json"))
