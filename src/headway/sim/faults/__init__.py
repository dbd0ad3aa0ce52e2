"""The real owner over a real store, under every fault we know, in virtual time."""
