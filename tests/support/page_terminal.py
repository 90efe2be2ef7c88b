"""Run a command at a terminal where somebody types a password: `page_terminal.py PASSWORD COMMAND...`."""

import os
import pty
import subprocess
import sys
import time


def main() -> int:
    terminal, keyboard = pty.openpty()
    process = subprocess.Popen(sys.argv[2:], stdin=keyboard, start_new_session=True)
    while process.poll() is None:  # a prompt forgets what was typed before it
        os.write(terminal, f"{sys.argv[1]}\n".encode())
        time.sleep(0.2)
    return process.returncode


if __name__ == "__main__":
    sys.exit(main())
