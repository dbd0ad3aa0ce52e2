"""A queue that is there."""

import subprocess

SERVER = "http://127.0.0.1:8080"
command = ["headway", "enqueue", "mail", "--server", SERVER]
subprocess.run(command, check=True, capture_output=True)
