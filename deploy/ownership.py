"""Whose are the files that `sudo make …` leaves in a clone?"""

import os
from pathlib import Path


def give_back(clone: Path) -> None:
    """Give what root made in the clone (`.venv`, `.env`, caches) to whom the clone belongs to.

    Does nothing for anybody but root, and nothing in root's own clone.
    """
    owner = clone.stat()
    if os.geteuid() != 0 or owner.st_uid == 0:
        return
    for folder, names, files in os.walk(clone):
        if ".git" in names:
            names.remove(".git")
        for path in (os.path.join(folder, name) for name in (*names, *files)):
            if os.lstat(path).st_uid == 0:
                os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)
