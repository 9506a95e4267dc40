"""What the server notes in English and staff read: see ``told``. A test holds it against what the
errors say where they are raised."""

from __future__ import annotations

from django.utils.translation import gettext_noop as _

WEBHOOKS = (
    _("The URL has more than %(most)s characters."),
    _("The URL holds characters that it can't: write them as %%20 and so on."),
    _("This is no URL: %(why)s."),
    _("The URL starts with https:// and names a host."),
    _("The URL starts with https://; http:// needs WEBHOOKS_ALLOW_HTTP=true."),
    _("The URL names a port that there isn't."),
    _("The URL holds a user name or password: they don't belong there."),
    _("The URL holds a fragment (#…), which is never sent."),
    _("The host's name can't be resolved."),
    _("The host's name leads to what is no address."),
    _(
        "The host's address %(address)s is in a private or special network. Allow its network by "
        "WEBHOOKS_PRIVATE_NETWORKS where that is meant."
    ),
    _("No answer came within %(seconds)s seconds."),
    _("Its certificate can't be verified."),
    _("It can't be reached."),
    _("The connection broke (%(kind)s)."),
    _("It answered %(status)s."),
    _("It answered 410: it wants to be told no more."),
    _("Nothing could be delivered for %(days)s days. Last: %(why)s"),
)

FORGETTING = (
    _("It is still found in %(what)s %(id)s."),
    _("It is still told in %(what)s %(id)s."),
    _("There are still rows of %(what)s."),
    _("A backup of transcripts can't be swept: %(why)s."),
    _("A backup of transcripts can't be removed: %(why)s."),
    _("memory"),
    _("message"),
    _("summary"),
    _("part"),
    _("note"),
    _("memories"),
    _("their vectors"),
    _("vectors of messages"),
    _("messages"),
)

DOCUMENTS = (
    _("It is no PDF, Word (.docx), text or Markdown file."),
    _("The file is empty."),
    _("The file is larger than the limit."),
    _("The document has more pages than the limit."),
    _("The document holds more text than the limit."),
    _("The document is protected by a password."),
    _("There is no text in it; it may be a scan."),
    _("The file is damaged or cut off."),
    _("Reading the document took too long."),
    _("Reading the document took too much memory."),
    _("The uploaded file is gone. Upload it again."),
    _("The document could not be read just now."),
    _("It unpacks to more than a document should."),
    _("It declares entities, which no Word file does."),
    _("It has %(count)s; %(most)s are read."),
    _("It isn't the %(encoding)s that it says it is."),
    _("Save it as .docx or PDF."),
    _("Each try to read it ended early."),
    _("%(lacking)s of %(count)s pages hold no text."),
    _("The encoding was taken to be %(encoding)s."),
    _("It has no vectors: its passages are found by their words."),
)

MODELS = (
    _("The model server gave no answer within %(seconds)s seconds."),
    _("The model server could not be reached."),
    _("The API key or the text holds characters that can't be sent."),
    _("The model server answered %(status)s: %(words)s"),
    _("The model server answered %(status)s."),
    _("The model server's answer could not be read."),
    _("The model gave an empty answer."),
    _("The wordllama package can't be loaded (%(kind)s): reinstall it."),
    _("The size of the model's vectors is not known."),
    _("The embedding model %(model)s gave %(given)s numbers where %(known)s belong."),
    _("EMBEDDER is model2vec, but the package model2vec is not installed. %(install)s"),
    _("Install it: `.venv/bin/python -m pip install model2vec`."),
    _(
        "EMBEDDING_MODEL is %(source)s, but there is no such folder. For EMBEDDER=model2vec it "
        "must be a folder with a model2vec model, or a name such as "
        "minishlab/potion-multilingual-128M."
    ),
    _("EMBEDDING_MODEL is %(source)s, but there is no model2vec model in it: no %(file)s."),
    _("EMBEDDING_MODEL is %(name)s, which is neither a folder nor can be downloaded (%(kind)s)."),
    _("The model2vec model in %(source)s can't be read (%(kind)s): get it again."),
    _(
        "%(chosen)s is another model now than the %(known)s in use. Put that one back, or: "
        "%(switch)s"
    ),
    _(
        "The embedding model %(name)s needs OPENAI_API_KEY, which is not set. Set it, or change "
        "the model: %(switch)s"
    ),
    _("Run `python manage.py memories_reembed`."),
    _("The workers that were at it died."),
    _("nothing worth learning"),
)

SENDING = (
    _("a text has 1 to %(most)s characters"),
    _("the provider took the message without an id"),
    _("the chat has no address that the Cloud API knows"),
    _("the chat has no address that Green API knows"),
    _("the provider's URL can't be used (%(kind)s)"),
    _("the request can't be written (%(kind)s)"),
    _("the provider can't be reached (%(kind)s)"),
    _("the connection broke after the request was sent (%(kind)s)"),
    _("no answer in time"),
    _("The provider reports that it could not be delivered."),
    _("The disk is full."),
)

SETTINGS = (
    _("%(problem)s; it is %(word)s."),
    _("%(problem)s; it is %(word)s. The default is used."),
    _("%(name)s must be true or false"),
    _("%(name)s must be a whole number from %(least)s to %(most)s"),
    _("%(name)s must be a number from 0 to 1"),
    _("%(name)s must be one of %(choices)s"),
    _("%(name)s must be a URL that starts with %(schemes)s"),
    _("%(name)s must be a time zone such as Asia/Jerusalem or UTC"),
    _(
        "%(name)s must hold ids of the form 972501234567@c.us (or …@g.us, …@bsuid), separated by "
        "commas"
    ),
    _("%(name)s must hold networks such as 10.0.0.0/8, separated by commas"),
    _("%(name)s must hold prices such as gpt-4o-mini=0.15/0.60, separated by commas"),
    _("cannot use %(path)s: %(why)s. Using defaults."),
    _("Python %(version)s is newer than what this version was tested with (3.10 to 3.13)."),
    _("FATAL: The disk of the %(word)s directory is full."),
    _("FATAL: Cannot access %(word)s directory. Check file permissions."),
    _("Only %(megabytes)s MB are free for DATA_DIR; at least 1 GB is recommended."),
    _("DATA_DIR is %(path)s."),
    _("WHATSAPP_PROVIDER is %(provider)s, but not set: %(names)s."),
    _("Set them, or use WHATSAPP_PROVIDER=console."),
    _("%(names)s is openai, but OPENAI_API_KEY is not set."),
    _("%(names)s is openai and TRANSCRIPTION_MODEL is set, but OPENAI_API_KEY is not set."),
    _("TRANSCRIPTION_MODEL is set, but OPENAI_API_KEY is not set."),
    _("CHAT_MODEL and EMBEDDER"),
    _("Set OPENAI_API_KEY or OPENAI_BASE_URL."),
    _("EXTRACT_MEMORIES is on, but CHAT_MODEL is offline: nothing is learned by itself."),
    _("Set CHAT_MODEL=openai."),
    _("GODFATHER_PHONE holds a group (%(groups)s): in groups everyone is a client."),
)

AUDIT = (
    _("Event %(number)s"),
    _("Events %(first)s to %(last)s"),
    _("Event %(number)s (row %(row)s of audit_auditevent)"),
    _("Checkpoint %(number)s (row %(row)s of audit_auditcheckpoint)"),
    _("The line of event %(number)s in the log file"),
    _("Line %(number)s of the log file"),
    _("The log file %(path)s"),
    _("The mark of the chain's end (audit_audithead)"),
    _("Events that wait"),
    _("deleted from the table."),
    _("sealed, but without a line in the log file: lines were taken out of it."),
    _(
        "in the log file but not in the table: the table's end was cut off, or an older database "
        "was put in its place."
    ),
    _("in the table, though a checkpoint says that it was pruned: put there since."),
    _("in the table beyond the end of the chain, not sealed by this program."),
    _("it can't be read: it was changed or cut off."),
    _("it tells of event %(number)s otherwise than the table does."),
    _("it was changed: it differs from its line in %(fields)s."),
    _("it was changed: it differs from the sealed event in %(fields)s."),
    _("it was changed: its seal doesn't fit."),
    _("it was changed, and so was its line in the log file: its seal doesn't fit."),
    _("it was changed."),
    _("it was removed."),
    _("the one before it was removed."),
    _("nothing fits it."),
    _("there is none, though events are sealed."),
    _("they can't be sealed."),
    _("it can't be written (%(why)s): events wait to be sealed."),
    _(
        "Compare with a backup and with copies of the log file, and find out who can write to the "
        "database."
    ),
    _("Compare with copies of the log file, and find out who can write to it."),
    _(
        "If you restored an older backup here, move the log file aside and run `manage.py "
        "audit_verify --write-log`; else: compare with a backup and with copies of the log file, "
        "and find out who can write to the database."
    ),
    _(
        "If this server was restored from a backup, run `manage.py audit_verify --write-log`; else "
        "somebody removed it: bring back a copy."
    ),
    _("Free some space, or mend the permissions of the folder: see docs/operations.md."),
    _(
        "It is not the key with which the audit log was sealed. Put that one back, into AUDIT_KEY "
        "or DATA_DIR/audit.key; nothing is sealed until then. Is it lost, see docs/audit.md."
    ),
    _(
        "The mark of the audit log's end (audit_audithead) doesn't fit AUDIT_KEY: either that is "
        "another key than before, or the mark was changed. Nothing is sealed until it fits. Run "
        "`manage.py audit_verify`, which tells."
    ),
    _(
        "The audit log has sealed events, but the mark of its end (audit_audithead) was removed. "
        "Nothing is sealed until it is back. Run `manage.py audit_verify`, which tells more."
    ),
    _("Events were changed while they were being sealed: run `manage.py audit_verify`."),
    _(
        "An event that was not sealed by this program has a number after %(number)s: run "
        "`manage.py audit_verify`."
    ),
)

# What tokens may do and endpoints are told, beside the names of it.
CHOICES = (
    _("read conversations, memories, cards and replays, and recall"),
    _("say something in a chat, store and change"),
    _("delete and erase, with a receipt"),
    _("read and verify the audit log"),
    _("a memory is stored"),
    _("a memory is edited, superseded, pinned, or seen by others"),
    _("a memory is gone"),
    _("a session has ended"),
    _("the memory card of a session is made, or made again"),
    _("a message could not be answered, or its answer not be sent"),
)

# What Python says of a line that isn't JSON.
JSON = (
    _("%(what)s: line %(line)s column %(column)s (char %(place)s)"),
    _("Expecting value"),
    _("Expecting property name enclosed in double quotes"),
    _("Expecting ':' delimiter"),
    _("Expecting ',' delimiter"),
    _("Unterminated string starting at"),
    _("Invalid control character at"),
    _("Extra data"),
    _("%(name)s is no number of JSON"),
    _("maximum recursion depth exceeded%(where)s"),
)

TOLD_TEXTS = (
    *WEBHOOKS,
    *FORGETTING,
    *DOCUMENTS,
    *MODELS,
    *SENDING,
    *SETTINGS,
    *AUDIT,
    *CHOICES,
    *JSON,
)
