"""REST: long work that is asked for, looked after, cancelled, and whose result is fetched."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import django_filters
from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from memoryproject.foundation.errors.stored_errors import translate_error
from memoryproject.foundation.rest_kit import fields
from memoryproject.foundation.rest_kit.errors import Conflict
from memoryproject.foundation.rest_kit.idempotency import Handler, idempotent
from memoryproject.foundation.rest_kit.models import ANY
from memoryproject.foundation.rest_kit.operations import conflicting, described, location
from memoryproject.foundation.rest_kit.serializers import (
    ChoiceFilter,
    Moment,
    Nothing,
    Strict,
    Truth,
)
from memoryproject.foundation.rest_kit.views import ApiView, ListView
from sessions_app.jobs.run_jobs import export_parts, job_cancel, job_make
from sessions_app.memories import presentation as memories_presentation
from sessions_app.models import Job, JobKind, JobState
from sessions_app.presentation import access
from sessions_app.presentation.serializers import WhatsAppChat

ACCEPTED = "It is queued: `Location` says how far it is."
ENDED = conflicting("It has ended.", "The job can't be cancelled any more: it is done.")


class ExportBody(memories_presentation.ExportQuery):
    """The query of an export, as JSON."""

    embeddings = Truth(default=False)
    redact = Truth(default=False)


class EraseBody(Strict):
    whatsapp_chat = WhatsAppChat(required=False)


class ProgressSerializer(serializers.Serializer[Any]):
    done = serializers.IntegerField()
    total = serializers.IntegerField(allow_null=True)


class JobSerializer(serializers.Serializer[Any]):
    job_id = serializers.UUIDField()
    kind = serializers.ChoiceField(JobKind.choices)
    state = serializers.ChoiceField(JobState.choices)
    progress = ProgressSerializer(source="*")
    result = fields.json_object(allow_null=True)
    result_url = serializers.SerializerMethodField()
    error = serializers.SerializerMethodField()
    created_at = Moment()
    finished_at = Moment(allow_null=True)

    @extend_schema_field({"type": "string", "nullable": True})
    def get_result_url(self, job: Job) -> str | None:
        if job.state != JobState.DONE:
            return None
        if job.kind == JobKind.EXPORT:
            return str(reverse("api-job-result", args=[job.pk]))
        if job.kind == JobKind.ERASE and job.result:
            return str(reverse("api-receipt", args=[job.result["receipt_id"]]))
        return None

    def get_error(self, job: Job) -> str:
        return translate_error(job.error)


class JobFilters(django_filters.FilterSet):  # type: ignore[misc]
    kind = ChoiceFilter(choices=JobKind.choices)
    state = ChoiceFilter(choices=JobState.choices)


def asks(kind: str, request: Any, *, holds_texts: bool = True) -> Callable[[Handler], Handler]:
    """Describe a POST that returns ``queued``, and let it accept an Idempotency-Key."""

    def decorate(handler: Handler) -> Handler:
        return described(
            operation_id=f"jobs_{kind}",
            parameters=[location(202)],
            request=request,
            responses={202: OpenApiResponse(JobSerializer, ACCEPTED)},
        )(idempotent(atomic=True, holds_texts=holds_texts)(handler))

    return decorate


def queued(view: ApiView, kind: str, **given: Any) -> Response:
    """Queue a job of the caller, and say where it is looked after."""
    job = job_make(kind=kind, caller=view.caller, **given)
    headers = {"Location": reverse("api-job", args=[job.pk])}
    return Response(JobSerializer(job).data, status=202, headers=headers)


class OwnJobView(ApiView):
    """A job of the caller; others' jobs are as if they didn't exist."""

    def job(self, job_id: UUID) -> Job:
        rows = Job.objects.filter(caller=self.caller.key, pk=job_id)
        return self.one_of(rows, f"job {job_id} of yours")


class JobView(OwnJobView):
    serializer_class = JobSerializer
    scopes = {"GET": ANY, "DELETE": ANY}
    staff_rights = {"GET": (), "DELETE": ()}
    answers = {"DELETE": [ENDED]}

    @described(operation_id="jobs_get", responses=JobSerializer)
    def get(self, request: Request, job_id: UUID) -> Response:
        """Return the job. Ask every few seconds, until `finished_at` is there."""
        return Response(JobSerializer(self.job(job_id)).data)

    @described(operation_id="jobs_cancel", responses={200: JobSerializer})
    @idempotent(atomic=True)
    def delete(self, request: Request, job_id: UUID) -> Response:
        """Stop the job; what it has done stays. An erasure that has begun can't be stopped."""
        if not job_cancel(self.job(job_id)):
            raise Conflict(f"The job can't be cancelled any more: it is {self.job(job_id).state}.")
        return Response(JobSerializer(self.job(job_id)).data)


class JobsView(ListView):
    scopes = {"GET": ANY}
    staff_rights = {"GET": ()}
    queryset = Job.objects.all()
    serializer_class = JobSerializer
    filterset_class = JobFilters
    ordering = ("-created_at", "-job_id")

    @described(operation_id="jobs_list")
    def get(self, request: Request) -> Response:
        """Return the jobs that this caller asked for in the last 30 days."""
        return self.page_of(self.get_queryset().filter(caller=self.caller.key))


class JobResultView(OwnJobView):
    scopes = {"GET": "read"}
    staff_rights = {"GET": ["memories_app.view_memory", "memories_app.export_memory"]}
    kinds = {"GET": "bulk"}
    renderer_classes = [memories_presentation.JsonErrors, memories_presentation.NdJson]
    answers = {"GET": [conflicting("There is no result.", "The job has no result.")]}

    @described(
        operation_id="jobs_result",
        responses={(200, memories_presentation.NDJSON): OpenApiTypes.BINARY},
    )
    def get(self, request: Request, job_id: UUID) -> Any:
        """Stream the lines; they are kept for a day, and until something is forgotten."""
        job = self.job(job_id)
        is_kept = not job.total or job.parts.exists()
        if (job.kind, job.state) != (JobKind.EXPORT, JobState.DONE) or not is_kept:
            raise Conflict("The job has no result, not yet, or not any more.")
        name = memories_presentation.EXPORT_NAMES[job.params["redacted"]]
        return StreamingHttpResponse(
            export_parts(job),
            content_type=f"{memories_presentation.NDJSON}; charset=utf-8",
            headers={"Content-Disposition": f'attachment; filename="{name}"'},
        )


class ExportJobView(ApiView):
    scopes = {"POST": "read"}
    staff_rights = {"POST": ["memories_app.view_memory", "memories_app.export_memory"]}
    kinds = {"POST": "bulk"}
    needs_body = False

    @asks(JobKind.EXPORT, ExportBody)
    def post(self, request: Request) -> Response:
        """Export as `GET memories/export/` does; `result_url` has the lines when it is done."""
        body = self.body(ExportBody)
        name = body.get("whatsapp_chat")
        chat_id = str(access.chat_within(self.caller, name).pk) if name else None
        options = {"embeddings": body["embeddings"], "redacted": body["redact"]}
        return queued(self, JobKind.EXPORT, chat_id=chat_id, **options)


class ImportJobView(memories_presentation.MemoryImportView):
    @asks(JobKind.IMPORT, {memories_presentation.NDJSON: OpenApiTypes.BINARY})
    def post(self, request: Request) -> Response:
        """Take the lines in as `memories/import/` does, and import them later, 500 at a time."""
        access.require_memory()
        access.require_longterm()
        return queued(self, JobKind.IMPORT, lines=request.data)


class ReembedJobView(ApiView):
    scopes = {"POST": "write"}
    staff_rights = {"POST": ["memories_app.add_memory", "memories_app.change_memory"]}
    kinds = {"POST": "bulk"}
    bound_tokens = False
    needs_body = False

    @asks(JobKind.REEMBED, None)
    def post(self, request: Request) -> Response:
        """Make the missing vectors, and then let recall use them, as `memories_reembed` does."""
        self.body(Nothing)
        return queued(self, JobKind.REEMBED)


class EraseJobView(ApiView):
    scopes = {"POST": "forget"}
    kinds = {"POST": "forget"}
    needs_body = False

    @asks(JobKind.ERASE, EraseBody, holds_texts=False)
    def post(self, request: Request) -> Response:
        """Erase as `DELETE chats/{whatsapp_chat}/` does; `result_url` then has the receipt."""
        name = access.chat_or_own(self.caller, self.body(EraseBody).get("whatsapp_chat"))
        return queued(self, JobKind.ERASE, chat_id=str(access.chat_within(self.caller, name).pk))
