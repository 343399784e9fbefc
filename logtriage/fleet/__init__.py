"""Many jobs: what ended and is not triaged yet, the workers that triage it, and what the verdicts say together."""
