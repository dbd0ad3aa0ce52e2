"""What a developer touches every day: the app, its handlers, and their workers."""
