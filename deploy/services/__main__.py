"""The command `python3 -m deploy.services`."""

import sys

from deploy.services.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
