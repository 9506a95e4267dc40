"""The shared parts of the REST API: tokens and scopes, throttles, pages, errors, idempotency.

How an app adds its endpoints
-----------------------------

An app's endpoints are in its ``api/`` (serializers, views). Endpoints that span apps, and all
addresses under /api/v1/, are in ``sessions_app/api/``.

A view is an ``ApiView`` (views.py), or a ``ListView`` if it returns pages::

    class SessionView(ApiView):
        scopes = {"GET": "read", "POST": "write", "DELETE": "forget"}   # every method, or 403
        kinds = {"POST": "bulk"}                  # the kind of throttle, if not that of its method
        raises = {ConversationNotFoundError: not_found}   # services' errors → answers
        query_serializer_class = SessionQuery     # the query string; self.query has its values

        @described(operation_id=…, request=…, responses=…)   # operations.yaml, examples.yaml
        @idempotent(atomic=True)                  # every POST that creates
        def post(self, request, session_id): …

- ``self.caller`` is the caller. ``caller.actor`` is for audited services.
  ``caller.reach("chat_id")`` is a condition for querysets, and ``caller.may_see(chat_id)`` checks
  one row. A token may be bound to chats: *every* read and write must use one of the two. A view
  that can't be limited to chats (``bound_tokens = False``) refuses bound tokens.
- Bodies: ``self.body(MySerializer)`` returns the checked data. Serializers are ``Strict`` (unknown
  fields are refused), with ``Text`` for texts kept byte for byte and ``Moment`` for times
  (serializers.py).
- Pages: ``ListView`` with ``queryset``, ``filterset_class`` and ``ordering``, which must be unique
  as a whole and never change. It has at most two fields, both ascending or both descending.
  ``sortable``: other fields to sort by, each with an index.
- ``where_fields``: a table of what the parameter ``where`` may name, a row each (where.py). Of a
  GET, ``serializer_class`` says what the parameter ``fields`` may name.
- ``idempotent(atomic=True)`` runs the handler and stores its response in one transaction: for
  handlers that make no HTTP call. ``atomic=False``: the handler must tolerate a second run after
  a crash (the store finds its own duplicate).
- Every object that can be edited has an ETag (views.py). ``described(**versioned(…))`` says so.
- Record it when staff read what people said: ``self.record_read(…)``.
- tests/api/routes.py lists the operations of each scope. tests/api/test_scopes.py walks all routes
  and fails on one that isn't listed; tests/api/test_schema.py fails on an operation without an
  example.
"""
