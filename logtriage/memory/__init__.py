"""Confirmed diagnoses and what is learned from them: the ledger, the learned rules, the index of likeness."""
