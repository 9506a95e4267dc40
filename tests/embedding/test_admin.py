"""Embedding models in the admin: to read, and their calibration to correct."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.urls import reverse

from memories_app.models import EmbeddingModel
from sessions_app.embedding.choice import embedder
from tests.forms import save
from tests.remembering import remember

pytestmark = pytest.mark.django_db

LIST = "admin:memories_app_embeddingmodel_changelist"
CHANGE = "admin:memories_app_embeddingmodel_change"


def test_the_list_shows_states_and_counts(admin_client: Client) -> None:
    remember("a fact")

    page = admin_client.get(reverse(LIST)).content.decode()

    assert "wordllama-256" in page
    assert "active" in page
    assert re.search(r"field-vectors[^>]*>\s*1\s*<", page)


def saved(client: Client, midpoint: str, slope: str) -> str:
    model = EmbeddingModel.objects.get()
    values = {"calibration_midpoint": midpoint, "calibration_slope": slope, "state": "retired"}
    return save(client, reverse(CHANGE, args=[model.pk]), values, follow=True).content.decode()


def test_staff_correct_the_calibration_and_nothing_else(admin_client: Client) -> None:
    embedder()

    saved(admin_client, "0.4", "12")

    assert embedder().calibration.midpoint == 0.4
    assert embedder().calibration.slope == 12
    assert EmbeddingModel.objects.get().state == "active"


@pytest.mark.parametrize(("midpoint", "slope"), [("0.4", "0"), ("0.4", "-3"), ("2", "10")])
def test_a_senseless_calibration_is_told(admin_client: Client, midpoint: str, slope: str) -> None:
    embedder()

    page = saved(admin_client, midpoint, slope)

    assert "Ensure this value is" in page
    assert EmbeddingModel.objects.get().calibration_midpoint != float(midpoint)
