"""A verdict as something that a person or a program reads."""
