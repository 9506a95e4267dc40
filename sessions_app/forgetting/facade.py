"""Public face of forgetting: what other packages may use."""

from sessions_app.forgetting.deletion_plan import NothingToForgetError
from sessions_app.forgetting.forget_objects import object_forget
from sessions_app.forgetting.runs import drafts_drop, run_work, runs_abandoned
from sessions_app.forgetting.sweep import ForgetDependencies
from sessions_app.forgetting.write_receipt import receipts_of
