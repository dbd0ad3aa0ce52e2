"""Tables to figures: each module asks one kind of question, and brings back a few rows."""
