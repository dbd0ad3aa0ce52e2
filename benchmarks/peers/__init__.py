"""Other job queues, measured with the same jobs in the same run."""
