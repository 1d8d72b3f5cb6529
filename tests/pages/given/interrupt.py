"""Plays a user at a terminal, who edits FILE when LINE is printed, and presses Ctrl-C when LAST is.

python interrupt.py LINE FILE LAST COMMAND...
"""

import signal
import subprocess
import sys
from pathlib import Path


def main(line: str, file: str, last: str, *command: str) -> int:
    """Print the output of COMMAND; return 0 if Ctrl-C ended it."""
    # Background jobs of a shell ignore it, and so would all their children.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        for text in process.stdout or ():
            print(text, end="", flush=True)
            if line in text:
                Path(file).write_text("# edited\n")
            if last in text:
                process.send_signal(signal.SIGINT)
    return int(process.returncode not in (0, 130))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
