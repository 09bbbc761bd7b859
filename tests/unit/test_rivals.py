"""Does what npm installs follow its lock file, and the lock file name no registry?"""

from __future__ import annotations

import json
from pathlib import Path

from deploy.rivals import BULLMQ, fingerprint, is_current

ROOT = Path(__file__).resolve().parent.parent.parent


def test_packages_follow_the_lock(tmp_path: Path) -> None:
    """What is installed is current until the lock file changes."""
    lock = tmp_path / "package-lock.json"
    lock.write_text("{}")
    assert not is_current(tmp_path)
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules/installed").write_text(fingerprint(tmp_path))
    assert is_current(tmp_path)
    lock.write_text('{"version": 2}')
    assert not is_current(tmp_path)


def test_each_package_has_a_hash_and_no_origin() -> None:
    """Each locked package has its integrity hash, none the address it came from."""
    packages = json.loads((ROOT / BULLMQ / "package-lock.json").read_text())["packages"]
    for name, package in packages.items():
        assert "resolved" not in package
        assert not name or package["integrity"].startswith("sha512-")
