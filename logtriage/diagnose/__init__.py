"""Evidence to verdict: the offline decision (and, with a model, the agent, its votes and their check)."""
