"""What goes over the wire: JSON bodies as types, shared by server and clients."""
