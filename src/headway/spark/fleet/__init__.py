"""Workers on Spark: bulk queues, claim by claim."""
