"""How does `.venv/` come to hold exactly what the lock file says, without being rebuilt each time?

`python3 -m deploy.venv run` installs what the kit needs to run, `… dev` also what tests and linters
need. `… bench` installs into `.venv-bench/`: the kit with its rivals, which bring libraries that development
is to do without. The project itself is installed editable, from what the lock brought: no registry is asked
for it.
"""

import fcntl
import hashlib
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from deploy.ownership import give_back

LOCKS: Final = {
    "run": "deploy/requirements.lock",
    "dev": "deploy/requirements-dev.lock",
    "bench": "deploy/requirements-bench.lock",
}
FOLDERS: Final = {"run": ".venv", "dev": ".venv", "bench": ".venv-bench"}


def fingerprint(clone: Path, kind: str) -> str:
    """What an environment is made from: changes with the lock, and with the project's own metadata."""
    digest = hashlib.sha256()
    for name in (LOCKS[kind], "pyproject.toml"):
        digest.update((clone / name).read_bytes())
    return digest.hexdigest()


def is_current(clone: Path, kind: str) -> bool:
    """Whether its folder holds `kind` ("run", "dev" or "bench") already; "dev" contains "run"."""
    try:
        installed = json.loads((clone / FOLDERS[kind] / "installed.json").read_text())
    except (OSError, ValueError):
        return False
    kinds = ("run", "dev") if kind == "run" else (kind,)
    return any(installed.get(each) == fingerprint(clone, each) for each in kinds)


def works(venv: Path) -> bool:
    """Whether this environment has pip and was made here.

    Not so after the Python below it was upgraded, or after the clone was moved: the scripts in
    `bin/` name their interpreter by its absolute path.
    """
    try:
        made_here = f"{venv}/bin/python" in (venv / "bin" / "pip").read_text()
        return made_here and subprocess.run([venv / "bin" / "python", "-c", "import pip"]).returncode == 0
    except OSError:
        return False


def create(venv: Path) -> None:
    """Make an empty environment, in place of whatever is there."""
    if importlib.util.find_spec("ensurepip") is None:
        sudo = "" if os.geteuid() == 0 else "sudo "
        sys.exit(
            f"expected {sys.executable} to have venv, got: no module ensurepip; "
            f"run: {sudo}apt-get install -y python3-venv"
        )
    # The base interpreter, since the one that runs may be the one in the folder to be cleared.
    base = getattr(sys, "_base_executable", sys.executable)
    subprocess.run([base, "-m", "venv", "--clear", venv], check=True)


def install(clone: Path, kind: str) -> None:
    """Install the lock of `kind`, then the project itself; `installed.json` is written last."""
    venv = clone / FOLDERS[kind]
    python = venv / "bin" / "python"
    (venv / "installed.json").unlink(missing_ok=True)
    pip: list[str | Path] = [
        python,
        "-m",
        "pip",
        "--quiet",
        "--disable-pip-version-check",
        "--no-input",
        "install",
    ]
    subprocess.run([*pip, "--require-hashes", "-r", clone / LOCKS[kind]], check=True)
    subprocess.run([*pip, "--no-deps", "--no-index", "--no-build-isolation", "-e", clone], check=True)
    (venv / "installed.json").write_text(json.dumps({kind: fingerprint(clone, kind)}))


def main(kind: str) -> int:
    """Bring an environment up to date; two at the same time take turns. Returns the exit code."""
    clone = Path(__file__).resolve().parent.parent
    venv = clone / FOLDERS[kind]
    with (clone / "pyproject.toml").open() as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if is_current(clone, kind) and works(venv):
            return 0
        try:
            if not works(venv):
                print(f"Creating {venv.name}", file=sys.stderr)
                create(venv)
            print(f"Installing {LOCKS[kind]} into {venv.name}", file=sys.stderr)
            install(clone, kind)
        except subprocess.CalledProcessError as error:
            return error.returncode if error.returncode > 0 else 1
        finally:
            give_back(clone)
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in LOCKS:
        sys.exit(f"usage: python3 -m deploy.venv {'|'.join(LOCKS)}")
    sys.exit(main(sys.argv[1]))
