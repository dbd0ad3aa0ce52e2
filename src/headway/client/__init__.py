"""The client of a server: blocking, and for asyncio. It knows nothing of handlers."""
