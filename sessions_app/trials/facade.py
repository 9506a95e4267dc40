"""Public face of trials: what other packages may use."""

from sessions_app.trials.run_trial import trial_run, trials_abandoned
from sessions_app.trials.start_trial import MAX_TRIALS, TrialWanted, trial_start
