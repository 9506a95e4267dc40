"""What pages of other packages use of those of trials."""

from sessions_app.trials.admin.views import trial_paths

__all__ = ["trial_paths"]
