"""HTTP/1.1 on a strict parser: bytes in, requests out, within bounds."""
