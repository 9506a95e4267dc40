"""The staff's pages in Hebrew: all of them, switched by a button, and nothing but them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import polib
import pytest
from django.apps import apps
from django.conf import settings
from django.contrib import admin
from django.contrib.admin.utils import flatten_fieldsets, label_for_field
from django.template.defaultfilters import filesizeformat
from django.test import Client
from django.urls import reverse
from django.utils import translation
from django.utils.functional import Promise
from django.utils.timesince import timesince

from tests.staff.expected import LISTS

CATALOGUE = Path(settings.LOCALE_PATHS[0]) / "he" / "LC_MESSAGES" / "django.po"
PLACEHOLDERS = re.compile(r"%\(\w+\)[.\d]*[a-z]|\{\w*\}|%s|</?\w+[^>]*>")
SOURCES = ("memoryproject", "sessions_app", "memories_app", "cards_app", "templates", "manage.py")
LANGUAGE = "/admin/language/"
OUR_APPS = ("sessions_app", "memories_app", "cards_app", "audit", "api", "hooks", "dashboard")
# Names that Hebrew speakers write in Latin letters.
NAMES_AS_THEY_ARE = {"YAML", "SHA-256", "read, write, forget, audit"}


def entries() -> list[polib.POEntry]:
    return [entry for entry in polib.pofile(str(CATALOGUE)) if not entry.obsolete]


def test_everything_is_translated() -> None:
    assert len(entries()) > 1_500
    assert [entry.msgid for entry in entries() if not entry.translated() or entry.fuzzy] == []


def test_translations_hold_what_is_put_into_them() -> None:
    for entry in entries():
        wanted = {
            tuple(sorted(PLACEHOLDERS.findall(text)))
            for text in (entry.msgid, entry.msgid_plural)
            if text
        }
        for told in (entry.msgstr, *entry.msgstr_plural.values()):
            if told:
                assert tuple(sorted(PLACEHOLDERS.findall(told))) in wanted, entry.msgid


def test_the_compiled_catalogue_is_the_written_one() -> None:
    compiled = {
        (entry.msgctxt, entry.msgid): (entry.msgstr, entry.msgstr_plural)
        for entry in polib.mofile(str(CATALOGUE.with_suffix(".mo")))
    }
    assert compiled == {
        (entry.msgctxt, entry.msgid): (entry.msgstr, entry.msgstr_plural) for entry in entries()
    }


def test_counted_words_of_django_are_hebrew_for_every_number() -> None:
    """Its Hebrew has a rule of four forms, and three of them."""
    folders = map(import_module, ("django.conf", "django.contrib.admin", "django.contrib.auth"))
    with translation.override("he"):
        for folder in folders:
            path = Path(folder.__path__[0]) / "locale" / "he" / "LC_MESSAGES" / "django.po"
            for entry in polib.pofile(str(path)):
                if entry.msgid_plural and entry.msgstr_plural[0]:
                    for number in (0, 1, 2, 3, 9, 10, 11, 20, 491):
                        text = translation.ngettext(entry.msgid, entry.msgid_plural, number)
                        assert re.search("[א-ת]", text), (entry.msgid, number)
        assert filesizeformat(0) == "0\xa0בתים"
        began = datetime(2026, 11, 30)
        assert timesince(began - timedelta(hours=2, minutes=58), began) == "שעתיים, 58\xa0דקות"


def _names_in_models() -> Iterator[tuple[str, Any]]:
    """The names that the models of this project give themselves, their fields and choices."""
    for app in OUR_APPS:
        yield app, apps.get_app_config(app).verbose_name
        for model in apps.get_app_config(app).get_models():
            of = model._meta.label
            yield of, model._meta.verbose_name
            plural = "verbose_name_plural" in model._meta.original_attrs
            yield f"{of}'s plural", plural and model._meta.verbose_name_plural
            for field in (*model._meta.local_fields, *model._meta.local_many_to_many):
                if not field.auto_created:
                    yield f"{of}.{field.name}", field.verbose_name
                if field.help_text and field.help_text not in NAMES_AS_THEY_ARE:
                    yield f"{of}.{field.name}'s help", field.help_text
                for value, label in field.flatchoices:
                    yield f"{of}.{field.name}: {value}", label


def test_every_name_in_a_model_is_marked_for_translation() -> None:
    names = dict(_names_in_models())
    assert len(names) > 500
    assert [place for place, name in names.items() if not isinstance(name, Promise)] == []


def test_the_corrections_of_django_are_compiled() -> None:
    written = Path(settings.LOCALE_PATHS[1]) / "he" / "LC_MESSAGES" / "django.po"
    forms = [
        {entry.msgid: entry.msgstr_plural for entry in of}
        for of in (polib.pofile(str(written)), polib.mofile(str(written.with_suffix(".mo"))))
    ]
    assert forms[0] == forms[1]


@pytest.mark.processes
def test_nothing_that_is_said_is_missing_in_the_catalogue(tmp_path: Path) -> None:
    """Collects anew, in a copy, what is to be translated."""
    if shutil.which("xgettext") is None:
        missing = "GNU gettext is not installed (Debian: apt-get install gettext)"
        if os.environ.get("CI", "").lower() in ("1", "true"):
            pytest.fail(missing)
        pytest.skip(missing)
    for name in SOURCES:
        source = Path(settings.BASE_DIR) / name
        if source.is_dir():
            shutil.copytree(source, tmp_path / name)
        else:
            shutil.copy(source, tmp_path / name)
    command = [sys.executable, "-m", "django", "makemessages", "-l", "he", "--no-obsolete", "-v0"]
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "memoryproject.settings",
        "PYTHONPATH": str(tmp_path),
        "DATA_DIR": str(tmp_path / "data"),
        "LOG_DIR": str(tmp_path / "logs"),
    }
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True)
    collected = polib.pofile(str(tmp_path / CATALOGUE.relative_to(settings.BASE_DIR)))
    assert {(entry.msgctxt, entry.msgid) for entry in collected} == {
        (entry.msgctxt, entry.msgid) for entry in entries()
    }, "run `make messages`, and translate what is new"


def test_a_button_switches_the_language(admin_client: Client) -> None:
    before = admin_client.get("/admin/sessions_app/turn/").content.decode()
    assert '<html lang="en" dir="ltr"' in before
    switched = admin_client.post(LANGUAGE, {"language": "he", "next": "/admin/"})
    assert (switched.status_code, switched["Location"]) == (302, "/admin/")
    after = admin_client.get("/admin/sessions_app/turn/").content.decode()
    assert '<html lang="he" dir="rtl"' in after
    assert "תיבת השיחות" in after
    assert "Inbox" not in after


@pytest.mark.django_db
def test_who_has_a_hebrew_browser_gets_hebrew_before_the_login(client: Client) -> None:
    page = client.get("/admin/login/", headers={"accept-language": "he-IL,he;q=0.9"})
    assert '<html lang="he" dir="rtl"' in page.content.decode()


def test_the_switch_leads_to_no_other_host(admin_client: Client) -> None:
    away = admin_client.post(LANGUAGE, {"language": "he", "next": "https://example.com/"})
    assert away["Location"] == "/"


def _names_staff_read() -> Iterator[tuple[str, str]]:
    """Of every list of the admin: what it is called, and what its columns, actions and fields
    are, and are for."""
    for model, page in admin.site._registry.items():
        of = model._meta.label
        yield of, str(model._meta.verbose_name)
        yield of, str(model._meta.verbose_name_plural)
        for name in page.list_display:
            yield f"{of}.{name}", str(label_for_field(name, model, page))
        for name in flatten_fieldsets(page.fieldsets or [(None, {"fields": page.fields or ()})]):
            yield f"{of}.{name}", str(label_for_field(name, model, page))
        for title, _options in page.fieldsets or ():
            yield f"{of}'s fieldset", str(title or "ללא")
        for field in model._meta.local_fields:
            if field.help_text and model._meta.app_label not in ("django_q", "auth"):
                yield f"{of}.{field.name}'s help", str(field.help_text)
        for action in page.actions or ():
            method: Any = getattr(page, action) if isinstance(action, str) else action
            yield f"{of}.{action}", str(method.short_description)


def test_every_list_column_and_action_has_a_hebrew_name() -> None:
    with translation.override("he"):
        english = {
            f"{place}: {name}"
            for place, name in _names_staff_read()
            if not re.search("[א-ת]", name) and name not in NAMES_AS_THEY_ARE
        }
    assert english == set()


def test_every_empty_list_says_in_hebrew_how_it_fills(admin_client: Client) -> None:
    admin_client.cookies[settings.LANGUAGE_COOKIE_NAME] = "he"
    told = {}
    for label in LISTS:
        if not apps.get_model(label)._default_manager.exists():
            address = reverse(f"admin:{label.replace('.', '_')}_changelist")
            page = admin_client.get(address, follow=True).content.decode()
            told[label] = re.findall(r'<p class="nothing">(.*?)</p>', page, re.DOTALL)
    silent = {label.partition(".")[2] for label, texts in told.items() if not texts}
    # Jobs stand on pages of their own, too; of the last three there is a row from the first use on.
    jobs, begun = {"ormq", "success", "failure", "schedule"}, {"failedlogin", "embeddingmodel"}
    assert silent <= jobs | begun | {"assistantprofile"}
    for texts in told.values():
        assert all(re.search("[א-ת]", text) and "Nothing" not in text for text in texts)


def test_what_isnt_there_is_told_in_hebrew_with_the_way_back(admin_client: Client) -> None:
    admin_client.cookies[settings.LANGUAGE_COOKIE_NAME] = "he"
    gone = admin_client.get("/admin/no-such-page/")
    page = gone.content.decode()
    assert gone.status_code == 404
    assert '<html lang="he" dir="rtl"' in page
    assert "אין דבר בכתובת הזאת." in page
    assert '<a href="/admin/">' in page
