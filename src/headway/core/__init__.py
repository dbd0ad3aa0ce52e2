"""The pure scheduling core: no clock, I/O, randomness, thread or asyncio in here."""
