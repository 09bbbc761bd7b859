"""How is a newer Debian built in a folder, once and whole? Programs that note their arguments stand in."""

from pathlib import Path

import pytest

from deploy.services import chroot
from deploy.services.chroot import Chroot, archive_in, delete, mounts_in
from deploy.services.errors import CannotServe

# Runs what follows the options, as the real one does; alone in its namespaces is what it cannot do here.
UNSHARE = """\
#!/bin/sh
echo "unshare $*" >> {log}
while [ "${{1#-}}" != "$1" ]; do shift; done
exec "$@"
"""
DEBOOTSTRAP = """\
#!/bin/sh
echo "debootstrap $*" >> {log}
for folder; do case "$folder" in *.draft) break;; esac; done
mkdir -p "$folder/etc" "$folder/var/cache/apt/archives" "$folder/usr/lib/rabbitmq/bin" \
    "$folder/usr/lib/rabbitmq/lib/rabbitmq_server-{version}"
touch "$folder/var/cache/apt/archives/a.deb" "$folder/usr/lib/rabbitmq/bin/rabbitmq-server"
chmod +x "$folder/usr/lib/rabbitmq/bin/rabbitmq-server"
echo "E: the last words"
exit {code}
"""
APT = """\
#!/bin/sh
echo "Packages|main|Debian|$(. /etc/os-release; echo "$VERSION_CODENAME")|http://archive.invalid/debian/"
"""


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, *, version: str = "4.0.5", code: int = 0) -> Path:
    """Put the stand-ins first on the path; the file to which they write."""
    log = folder / "log"
    log.write_text("")
    for name, text in (("unshare", UNSHARE), ("debootstrap", DEBOOTSTRAP), ("apt-get", APT)):
        program = folder / name
        program.write_text(text if name == "apt-get" else text.format(log=log, version=version, code=code))
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return log


def builds(log: Path) -> int:
    """How often the folder was built."""
    return sum(line.startswith("debootstrap") for line in log.read_text().splitlines())


def test_it_is_built_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first use builds the folder from the archive that apt names; later ones, of any clone, take it."""
    log = install(tmp_path, monkeypatch)
    first, second = Chroot(tmp_path / "home"), Chroot(tmp_path / "home")
    first.ensure()
    second.ensure()
    assert builds(log) == 1
    assert "trixie" in log.read_text()
    assert log.read_text().rstrip().endswith("http://archive.invalid/debian/")
    assert second.version() == (4, 0, 5)
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["debian-13"]
    assert list(first.root.glob("var/cache/apt/archives/*")) == []
    assert "hosts: files\n" in (first.root / "etc" / "nsswitch.conf").read_text()


def test_what_was_interrupted_is_built_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a failed or killed build left is not taken for complete, and is gone after the next one."""
    log = install(tmp_path, monkeypatch, code=1)
    with pytest.raises(CannotServe, match=r"expected debootstrap to build .*got: exit 1\nE: the last words"):
        Chroot(tmp_path / "home").ensure()
    assert Chroot(tmp_path / "home").version() is None
    (tmp_path / "home" / "debian-13.draft" / "left").touch()
    install(tmp_path, monkeypatch)
    Chroot(tmp_path / "home").ensure()
    assert builds(log) == 1
    assert not (tmp_path / "home" / "debian-13" / "left").exists()
    assert not (tmp_path / "home" / "debian-13.draft").exists()


def test_an_older_rabbitmq_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the archive holds an older RabbitMQ than asked for, there is an error and no folder."""
    install(tmp_path, monkeypatch, version="3.12.1")
    with pytest.raises(CannotServe, match=r"expected rabbitmq-server to be 4 or later, got: 3\.12\.1"):
        Chroot(tmp_path / "home").ensure()
    assert not (tmp_path / "home" / "debian-13").exists()


def test_debootstrap_is_needed_until_it_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package debootstrap is asked for where neither it nor the folder is there."""
    install(tmp_path, monkeypatch)
    monkeypatch.setattr(chroot, "SBIN", "")
    assert Chroot(tmp_path / "home").missing() == []
    (tmp_path / "debootstrap").unlink()
    assert Chroot(tmp_path / "home").missing() == ["debootstrap"]
    (tmp_path / "home" / "debian-13").mkdir(parents=True)
    assert Chroot(tmp_path / "home").missing() == []


def test_who_may_not_mount_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a container that may mount nothing, the error says what to use instead."""
    install(tmp_path, monkeypatch)
    (tmp_path / "unshare").write_text("#!/bin/sh\necho 'Operation not permitted' >&2; exit 1\n")
    with pytest.raises(CannotServe, match="got: Operation not permitted; use a Docker engine"):
        Chroot(tmp_path / "home")


@pytest.mark.parametrize(
    ("listed", "found"),
    [
        ("Packages|main|Debian|bookworm|http://a.invalid/debian/", "http://a.invalid/debian/"),
        ("Packages|main|Debian|bookworm-security|http://a.invalid/security/", None),
        ("Packages|main|Other|bookworm|http://a.invalid/debian/", None),
        ("Packages|contrib|Debian|bookworm|http://a.invalid/debian/", None),
        ("Translations|main|Debian|bookworm|http://a.invalid/debian/", None),
        ("Packages|main|Debian|bookworm|cdrom://disc/", None),
        ("Packages|main|Debian|bookworm|cdrom://disc/\nPackages|main|Debian|bookworm|file:/m/", "file:/m/"),
        ("", None),
    ],
)
def test_the_systems_archive_is_found(listed: str, found: str | None) -> None:
    """Of apt's sources, the one that holds the release's main part is taken, if debootstrap can read it."""
    assert archive_in(listed, "bookworm") == found


MOUNTS = """\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
42 27 0:39 / /home/debian-13/proc rw,relatime - proc proc rw
43 27 0:40 / /home/debian-13.draft rw,relatime - tmpfs tmpfs rw
44 27 0:41 / /home/with\\040blank/a rw,relatime - tmpfs tmpfs rw
"""


def test_mounts_are_found() -> None:
    """What is mounted at or below a folder is found, and nothing of a folder whose name begins alike."""
    assert mounts_in(Path("/home/debian-13"), MOUNTS) == [Path("/home/debian-13/proc")]
    assert mounts_in(Path("/home/debian-13.draft"), MOUNTS) == [Path("/home/debian-13.draft")]
    assert mounts_in(Path("/home/with blank"), MOUNTS) == [Path("/home/with blank/a")]
    assert mounts_in(Path("/home/other"), MOUNTS) == []


def test_nothing_is_deleted_through_a_mount(tmp_path: Path) -> None:
    """A tree in which something is mounted stays as it is; afterwards it can be deleted."""
    draft = tmp_path / "draft"
    (draft / "proc").mkdir(parents=True)
    mountinfo = tmp_path / "mountinfo"
    mountinfo.write_text(f"42 27 0:39 / {draft}/proc rw,relatime - proc proc rw\n")
    with pytest.raises(CannotServe, match=f"got: {draft}/proc; run: umount {draft}/proc"):
        delete(draft, mountinfo)
    assert (draft / "proc").is_dir()
    mountinfo.write_text("")
    delete(draft, mountinfo)
    assert not draft.exists()
