"""Where the code's files and those of an installation are: in a clone, and installed by pip."""

import sys
from pathlib import Path

_CODE = Path(__file__).resolve().parent.parent
IS_CLONE = (_CODE / "manage.py").is_file()
# What stands beside the packages in a clone, and in the wheel inside of one: see pyproject.toml.
FILES = _CODE if IS_CLONE else _CODE / "memoryproject" / "files"
# Where .env is, and relative paths of settings begin.
HOME = _CODE if IS_CLONE else Path.cwd()
# Runs a command in a process of its own, whose working directory is HOME.
MANAGE = (sys.executable, *(["manage.py"] if IS_CLONE else ["-m", "memoryproject"]))
# What a person types for a command, and to start the server.
TYPED = ".venv/bin/python manage.py" if IS_CLONE else "whatsapp-memory"
START = "make run" if IS_CLONE else "whatsapp-memory run"
