"""Do the lock files install what was tried, on every machine?"""

import re
from pathlib import Path

import pytest

from deploy import venv

ROOT = Path(__file__).resolve().parent.parent.parent


def pins(name: str) -> dict[str, str]:
    """Each package of a lock file with its version and marker."""
    return dict(re.findall(r"^([a-z0-9-]+)==(.*) \\$", (ROOT / name).read_text(), re.MULTILINE))


@pytest.mark.parametrize("name", venv.LOCKS.values())
def test_every_package_has_hashes_and_no_origin(name: str) -> None:
    """Each line is a pinned package, a hash of it or a comment: no address of a registry, no path."""
    for line in (ROOT / name).read_text().splitlines():
        assert re.fullmatch(r"[a-z0-9-]+==[^/:]+ \\|    --hash=sha256:[0-9a-f]{64}( \\)?|    # .*", line)
        assert "://" not in line


@pytest.mark.parametrize("kind", ["dev", "bench"])
def test_locks_agree(kind: str) -> None:
    """What the tests ran with, and what was measured, is what is installed to run."""
    assert pins(venv.LOCKS["run"]).items() <= pins(venv.LOCKS[kind]).items()


def test_lock_covers_other_pythons() -> None:
    """A package with compiled parts is locked with the files for other versions and systems, too."""
    text = (ROOT / "deploy/requirements.lock").read_text()
    compiled = text.partition("\npydantic-core==")[2].partition("\n    #")[0]
    assert compiled.count("--hash") > 50


def copy(folder: Path) -> Path:
    """A clone with nothing but what decides about `.venv/`."""
    for name in (*venv.LOCKS.values(), "pyproject.toml"):
        target = folder / name
        target.parent.mkdir(exist_ok=True)
        target.write_bytes((ROOT / name).read_bytes())
    (folder / ".venv").mkdir()
    return folder


def test_environment_follows_the_lock(tmp_path: Path) -> None:
    """An environment is current until the lock or the project's metadata change."""
    clone = copy(tmp_path)
    assert not venv.is_current(clone, "run")
    (clone / ".venv" / "installed.json").write_text(f'{{"run": "{venv.fingerprint(clone, "run")}"}}')
    assert venv.is_current(clone, "run")
    assert not venv.is_current(clone, "dev")
    (clone / "deploy/requirements.lock").write_text("")
    assert not venv.is_current(clone, "run")


def test_environment_for_tests_can_run_the_kit(tmp_path: Path) -> None:
    """What was installed for tests need not be installed again to run."""
    clone = copy(tmp_path)
    (clone / ".venv" / "installed.json").write_text(f'{{"dev": "{venv.fingerprint(clone, "dev")}"}}')
    assert venv.is_current(clone, "run")


def test_moved_environment_does_not_work(tmp_path: Path) -> None:
    """Scripts name their interpreter by its path: an environment of another place is not used."""
    scripts = tmp_path / ".venv" / "bin"
    scripts.mkdir(parents=True)
    (scripts / "pip").write_text("#!/elsewhere/.venv/bin/python\n")
    assert not venv.works(tmp_path / ".venv")
