"""What follows from the question without solving it on data."""
