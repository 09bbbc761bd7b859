"""Do our lines come into a `.env` without harm to the others?"""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from deploy.services.envfile import NOTE, merge, remove, without, write

VALUES = {"JOBS_BROKER_URL": "amqp://new", "JOBS_DATABASE_URL": "postgresql://new"}


def test_new_file_holds_our_lines() -> None:
    """Without a file, ours is a note and the values."""
    assert merge("", VALUES) == f"{NOTE}\nJOBS_BROKER_URL=amqp://new\nJOBS_DATABASE_URL=postgresql://new\n"


def test_other_lines_stay() -> None:
    """Comments, blank lines, other names and the order stay as they are; ours is set in place."""
    text = (
        "# mine\nA=1\n\nexport JOBS_BROKER_URL = old\nJOBS_BROKER_URL_2=x\n#JOBS_DATABASE_URL=y\n"
        "B='two words'"
    )
    assert merge(text, VALUES) == (
        "# mine\nA=1\n\nexport JOBS_BROKER_URL=amqp://new\nJOBS_BROKER_URL_2=x\n#JOBS_DATABASE_URL=y\n"
        f"B='two words'\n\n{NOTE}\nJOBS_DATABASE_URL=postgresql://new\n"
    )


def test_last_of_a_repeated_name_is_ours_too() -> None:
    """A name that stands twice is set twice, since the last one counts."""
    assert merge("JOBS_BROKER_URL=a\nJOBS_BROKER_URL=b\n", {"JOBS_BROKER_URL": "c"}) == (
        "JOBS_BROKER_URL=c\nJOBS_BROKER_URL=c\n"
    )


@given(
    st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc"], include_characters="\n="), max_size=80)
)
def test_second_merge_changes_nothing(text: str) -> None:
    """Merging the same values again gives the same text, whatever stood there."""
    once = merge(text, VALUES)
    assert merge(once, VALUES) == once


def test_new_file_is_closed_to_others(tmp_path: Path) -> None:
    """A file that we create can be read by its owner only, since it holds passwords."""
    write(tmp_path / ".env", VALUES)
    assert (tmp_path / ".env").stat().st_mode & 0o777 == 0o600


def test_mode_and_link_stay(tmp_path: Path) -> None:
    """A file's mode stays, and a link goes on pointing to the file that is written."""
    real = tmp_path / "real"
    real.write_text("A=1\n")
    real.chmod(0o640)
    (tmp_path / ".env").symlink_to(real)
    write(tmp_path / ".env", VALUES)
    assert (tmp_path / ".env").is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert real.read_text().startswith("A=1\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".env", "real"]


def test_a_file_of_ours_alone_is_removed(tmp_path: Path) -> None:
    """What `write` made, and nobody touched, is gone afterwards."""
    file = tmp_path / ".env"
    write(file, VALUES)
    assert "Removed" in remove(file, VALUES)
    assert not file.exists()


def test_a_persons_lines_outlive_ours(tmp_path: Path) -> None:
    """Only our values are taken out, wherever they stand; the file keeps its mode, and it is said."""
    file = tmp_path / ".env"
    file.write_text("# mine\nexport JOBS_BROKER_URL=old\nA=1\n")
    file.chmod(0o640)
    write(file, VALUES)
    assert "your own lines stay" in remove(file, VALUES)
    assert file.read_text() == "# mine\nA=1\n"
    assert file.stat().st_mode & 0o777 == 0o640


def test_a_value_that_somebody_changed_stays(tmp_path: Path) -> None:
    """An address that is no longer ours is left where it is, and so is a file without any of ours."""
    file = tmp_path / ".env"
    write(file, VALUES)
    file.write_text(file.read_text().replace("amqp://new", "amqp://mine"))
    remove(file, VALUES)
    assert file.read_text() == "JOBS_BROKER_URL=amqp://mine\n"
    assert "as it is" in remove(file, VALUES)
    assert file.read_text() == "JOBS_BROKER_URL=amqp://mine\n"


def test_nothing_to_take_out_is_fine(tmp_path: Path) -> None:
    """Without a file, or with one that was empty before, nothing happens."""
    assert "No " in remove(tmp_path / ".env", VALUES)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / ".env").touch()
    assert "as it is" in remove(tmp_path / ".env", VALUES)
    assert (tmp_path / ".env").exists()


def test_a_link_is_not_removed(tmp_path: Path) -> None:
    """A link and the file that it names are somebody's own: only our lines go."""
    real = tmp_path / "real"
    (tmp_path / ".env").symlink_to(real)
    write(tmp_path / ".env", VALUES)
    remove(tmp_path / ".env", VALUES)
    assert (tmp_path / ".env").is_symlink()
    assert real.read_text() == ""


@given(
    st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc"], include_characters="\n="), max_size=80)
)
def test_taking_out_undoes_a_merge(text: str) -> None:
    """What stood there before stays, but for blank lines at its end."""
    assert without(merge(text, VALUES), VALUES).rstrip() == "\n".join(text.splitlines()).rstrip()
