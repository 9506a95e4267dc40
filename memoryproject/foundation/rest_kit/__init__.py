"""What all of the REST API shares: tokens and scopes, throttles, pages, errors, idempotency.

How a room adds its endpoints
-----------------------------

An app's endpoints live in its ``api/`` (serializers, views, urls); what spans apps lives in
``sessions_app/api/``. ``memoryproject/urls.py`` includes each ``api/urls.py`` under /api/v1/.

A view is an ``ApiView`` (views.py), or a ``ListView`` where it answers with pages::

    class SessionView(ApiView):
        scopes = {"GET": "read", "POST": "write", "DELETE": "forget"}   # every method, or 403
        kinds = {"POST": "bulk"}                  # how it is throttled, where not by its method
        raises = {ConversationNotFoundError: not_found}   # services' errors → answers
        query_serializer_class = SessionQuery     # what stands after "?"; self.query has it

        @extend_schema(request=…, responses=…, examples=[…])   # an example for each operation
        @idempotent(atomic=True)                  # every POST that creates
        def post(self, request, session_id): …

- ``self.caller`` is who calls: ``caller.actor`` for audited services; ``caller.reach("chat_id")``
  is a condition for querysets and ``caller.may_see(chat_id)`` answers for one row. A token may be
  bound to chats: *every* read and write must go through one of the two. What can't be bound
  (``bound_tokens = False``) is refused to bound tokens.
- Bodies: ``self.body(MySerializer)`` returns the checked data. Serializers are ``Strict`` (unknown
  fields are refused), with ``Text`` for texts kept byte for byte and ``Moment`` for times
  (serializers.py).
- Pages: ``ListView`` with ``queryset``, ``filterset_class`` and ``ordering``, which must be unique
  as a whole and never change. At most two fields, both up or both down.
- ``idempotent(atomic=True)`` runs the handler and stores its answer in one transaction: for
  handlers that make no HTTP call. ``atomic=False``: the handler must bear to be run again after a
  crash (the store finds its own duplicate).
- What can be edited has an ETag: etags.py.
- Staff who read what people said: ``self.record_read(…)``.
- tests/api/routes.py lists what each scope may do; tests/api/test_scopes.py walks all routes and
  fails on one that isn't there, and tests/api/test_schema.py on an operation without an example.
"""
