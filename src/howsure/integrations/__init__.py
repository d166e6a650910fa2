"""One thin adapter per library; none is imported unless you import it."""
