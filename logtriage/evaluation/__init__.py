"""How good verdicts are: jobs whose cause a person has named, judged again and compared."""
