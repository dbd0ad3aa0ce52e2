"""The dashboard at `/`: files that a browser is sent, and nothing that decides."""
