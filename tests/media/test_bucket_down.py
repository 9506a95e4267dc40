"""A bucket that is down is left alone for a while, and named wherever sick services are."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from memoryproject.foundation.outside_services.models import OutsideService, services_sick
from memoryproject.staff_site.tasks import check_alerts
from sessions_app.models import MediaFile
from tests.loopback.httpd import Fault
from tests.loopback.s3_server import S3Server
from tests.media.conftest import Files

# To make a client of S3 takes a good part of a second.
pytestmark = [pytest.mark.django_db, pytest.mark.slow]


def services(client: Client) -> dict[str, str]:
    found: dict[str, str] = client.get("/readyz").json()["services"]
    return found


def refused(files: Files, server: S3Server) -> MediaFile:
    """A file that can't be put, twice."""
    row = files.send()
    for _ in range(2):
        server.refuse_next(403, "AccessDenied")
        MediaFile.objects.update(not_before=None)
        assert files.fetch(row).state == "pending"
    return row


def test_staff_and_monitoring_see_that_the_bucket_is_down_and_up_again(
    in_bucket: Files, server: S3Server, admin_client: Client
) -> None:
    assert services(admin_client) == {}
    row = refused(in_bucket, server)
    assert list(services(admin_client)) == ["media_storage"]
    check_alerts()
    said = f"Bucket of files ({server.bucket} at 127.0.0.1:{server.url.rpartition(':')[2]})"
    for page in ("/admin/", "/admin/operations/"):
        shown = admin_client.get(page).content.decode()
        assert said in shown
        assert "It answered 403." in shown
        assert server.secret not in shown
    metrics = admin_client.get("/metrics").content.decode()
    assert 'memory_service_sick{service="media_storage"} 1.0' in metrics

    OutsideService.objects.update(opened_at=timezone.now() - timedelta(minutes=1))
    MediaFile.objects.update(not_before=None)
    assert in_bucket.fetch(row).state == "stored"
    check_alerts()
    assert services(admin_client) == {}
    assert said not in admin_client.get("/admin/operations/").content.decode()


def test_it_is_not_asked_while_it_is_down(in_bucket: Files, server: S3Server) -> None:
    row = refused(in_bucket, server)
    asked = len(server.requests)
    MediaFile.objects.update(not_before=None)
    row = in_bucket.fetch(row)
    assert (row.state, row.error_code) == ("pending", "storage")
    assert len(server.requests) == asked


def test_five_times_without_an_answer_are_enough(in_bucket: Files, server: S3Server) -> None:
    """The client itself tries each twice."""
    for number in range(5):
        assert services_sick() == [], number
        server.fail_next(Fault(no_answer="reset"), Fault(no_answer="reset"))
        in_bucket.fetch(in_bucket.send())
    (service,) = services_sick()
    assert str(service.error) == "It could not be reached."


def test_a_missing_object_tells_nothing_of_the_bucket(in_bucket: Files, server: S3Server) -> None:
    for _ in range(6):
        with pytest.raises(FileNotFoundError):
            in_bucket.storage.open("00000000-0000-4000-8000-000000000001")
    assert services_sick() == []
