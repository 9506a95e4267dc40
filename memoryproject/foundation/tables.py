"""Tables of data, in YAML files beside the code that uses them.

The tag ``!_`` marks a text for translation; `manage.py makemessages` collects these texts, too.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from django.utils.translation import gettext_lazy


def read_table(module: str, name: str, *, text: Callable[[str], Any] = gettext_lazy) -> Any:
    """Return what the file of this name in the folder of a module holds.

    ``module``: its ``__file__``. ``text``: makes what is returned for a text with the tag.
    """

    # The one in C reads several times faster, and isn't built everywhere.
    loader: Any = type("Loader", (getattr(yaml, "CSafeLoader", yaml.SafeLoader),), {})
    loader.add_constructor("!_", lambda _loader, node: text(node.value))
    content = Path(module).with_name(name).read_text(encoding="utf-8")
    return yaml.load(content, loader)  # noqa: S506 a safe loader
