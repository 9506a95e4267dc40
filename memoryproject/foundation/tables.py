"""Tables of data in YAML files, and statements of SQL, beside the code that uses them.

The tag ``!_`` marks a text for translation, and ``!n_`` the two forms of one with a number and
the number's name. `manage.py makemessages` collects these texts, too.
"""

import re
from collections.abc import Callable
from pathlib import Path
from string import Template
from typing import Any

import yaml
from django.utils.translation import gettext_lazy, ngettext_lazy


def read_table(
    module: str,
    name: str,
    *,
    text: Callable[[str], Any] = gettext_lazy,
    counted: Callable[..., Any] = ngettext_lazy,
) -> Any:
    """Return what the file of this name in the folder of a module holds.

    ``module``: its ``__file__``. ``text`` and ``counted``: make what is returned for a text with
    a tag, and for one with a number.
    """

    # The one in C reads several times faster, and isn't built everywhere.
    loader: Any = type("Loader", (getattr(yaml, "CSafeLoader", yaml.SafeLoader),), {})
    loader.add_constructor("!_", lambda _loader, node: text(node.value))
    loader.add_constructor("!n_", lambda reader, node: counted(*reader.construct_sequence(node)))
    content = Path(module).with_name(name).read_text(encoding="utf-8")
    return yaml.load(content, loader)  # noqa: S506 a safe loader


def read_statements(module: str, **values: str) -> dict[str, str]:
    """Return the statements of the SQL file beside a module, each by its ``-- name:``.

    ``module``: its ``__file__``. ``$name`` in a statement stands for one of the ``values``, or for
    a statement further up in the file. Other names stay for a later substitution.
    """
    found: dict[str, str] = {}
    text = Path(module).with_suffix(".sql").read_text(encoding="utf-8")
    for name, statement in re.findall(
        r"^-- name: (\w+)\n(.+?)(?=^-- name: |\Z)", text, re.MULTILINE | re.DOTALL
    ):
        found[name] = Template(statement).safe_substitute(values, **found)
    return found
