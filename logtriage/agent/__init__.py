"""The model: what it is shown, what it may look up, its votes, and their check against the logs.

Nothing in this room is imported unless a model is to be asked.
"""
