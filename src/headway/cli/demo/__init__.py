"""`headway demo`: a real server, workers and traffic, to be looked at."""
