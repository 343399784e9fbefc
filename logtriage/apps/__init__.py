"""The outside: arguments, sockets and schedules; each app calls one function and prints."""
