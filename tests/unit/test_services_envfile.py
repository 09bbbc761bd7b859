"""Do our lines come into a `.env` without harm to the others?"""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from deploy.services.envfile import NOTE, merge, write

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
