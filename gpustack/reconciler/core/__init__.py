"""What to do, as pure functions of what is known: no request, no clock, no log."""
