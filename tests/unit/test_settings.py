from __future__ import annotations

import os
import sys
from datetime import timedelta
from pathlib import Path
from types import ModuleType

import pytest

from jobs.settings import Settings
from middleware.configuration import load, refusing_start
from middleware.errors import ConfigurationError


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("JOBS_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def refusal(monkeypatch: pytest.MonkeyPatch, **variables: str) -> str:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError) as caught:
        load(Settings)
    return str(caught.value)


def test_nothing_set_means_the_embedded_default() -> None:
    """Without any setting the application runs in one process on SQLite."""
    settings = load(Settings)
    assert settings.broker_url == "inline://"
    assert settings.database_url == "sqlite:///jobs.sqlite3"


def test_settings_are_frozen() -> None:
    """A setting does not change after it was read."""
    with pytest.raises(ValueError, match="frozen"):
        load(Settings).max_retries = 3


def test_environment_wins_over_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A variable of the environment overrides the same name in `.env`; an empty one does not."""
    (tmp_path / ".env").write_text("JOBS_MAX_RETRIES=3\nJOBS_MIN_BACKOFF=2s\nJOBS_LEDGER_WAIT=3s\n")
    monkeypatch.setenv("JOBS_MIN_BACKOFF", "250ms")
    monkeypatch.setenv("JOBS_LEDGER_WAIT", "")
    settings = load(Settings)
    assert settings.max_retries == 3
    assert settings.min_backoff == timedelta(milliseconds=250)
    assert settings.ledger_wait == timedelta(seconds=3)


def test_env_file_names_another_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """JOBS_ENV_FILE replaces `.env`, and set but empty it means no file at all."""
    (tmp_path / ".env").write_text("JOBS_MAX_RETRIES=3\n")
    (tmp_path / "other").write_text("JOBS_MAX_RETRIES=4\n")
    monkeypatch.setenv("JOBS_ENV_FILE", "other")
    assert load(Settings).max_retries == 4
    monkeypatch.setenv("JOBS_ENV_FILE", "")
    assert load(Settings).max_retries == 12


def test_missing_env_file_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that JOBS_ENV_FILE names must exist: nobody names one to have it ignored."""
    text = refusal(monkeypatch, JOBS_ENV_FILE="absent")
    assert text == (
        "expected JOBS_ENV_FILE to be an existing file, got: 'absent'; create it, or set it empty for none"
    )


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("JOBS_BROKER_URL", "redis://host", "inline:// or amqp://"),
        ("JOBS_BROKER_URL", "amqp://a;http://b", "inline:// or amqp://"),
        ("JOBS_BROKER_URL", "amqp://host:99999", "inline:// or amqp://"),
        ("JOBS_BROKER_URL", ";", "inline:// or amqp://"),
        ("JOBS_BROKER_URL", "amqp://host?heartbeat=often", "inline:// or amqp://"),
        ("JOBS_BROKER_URL", "amqps://host?ssl_options=}", "inline:// or amqp://"),
        ("JOBS_DATABASE_URL", "sqlite://", "postgresql+psycopg://"),
        ("JOBS_DATABASE_URL", "mysql://u@h/d", "postgresql+psycopg://"),
        ("JOBS_MANAGEMENT_URL", "localhost:15672", "an http:// or https:// URL"),
        ("JOBS_MANAGEMENT_URL", "http://host:99999", "an http:// or https:// URL"),
        ("JOBS_LLM_URL", "http://", "an http:// or https:// URL"),
        ("JOBS_SMTP_URL", "mail:25", "smtp://user:password@host:port"),
        ("JOBS_SMTP_URL", "smtp://mail?tls", "smtp://user:password@host:port"),
        ("JOBS_MAIL_FROM", "The Shop", "name@domain or Name <name@domain>"),
        ("JOBS_MAIL_FROM", "a@b, c@d", "name@domain or Name <name@domain>"),
        ("JOBS_MAX_RETRIES", "-1", "a whole number from 0 to 1000"),
        ("JOBS_MAX_RETRIES", "three", "a whole number from 0 to 1000"),
        ("JOBS_PAYLOAD_LIMIT", "10", "a whole number of bytes from 1024 to 16777216"),
        ("JOBS_MIN_BACKOFF", "soon", "a duration from 10ms to 1h"),
        ("JOBS_PUBLISH_TIMEOUT", "0", "a duration from 10ms to 1h"),
        ("JOBS_EFFECT_LEASE", "500ms", "a duration from 1s to 1h"),
    ],
)
def test_wrong_value_names_setting_rule_and_value(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, rule: str
) -> None:
    """A wrong value is answered in one line: the setting, the rule, the value, the way out."""
    text = refusal(monkeypatch, **{name: value})
    assert text.startswith(f"expected {name} to be {rule}")
    assert f"got: {value!r}; " in text
    assert "\n" not in text


def test_a_mail_password_beyond_ascii_is_refused_and_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A login that smtplib cannot send is a mistake of the settings, not one of every email."""
    text = refusal(monkeypatch, JOBS_SMTP_URL="smtp://me:gro%C3%9F@mail")
    assert text.startswith("expected JOBS_SMTP_URL to be smtp://user:password@host:port")
    assert "got: 'smtp://me:***@mail'; " in text
    assert text.endswith("user and password have to be ASCII")


def test_every_wrong_setting_has_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two mistakes are told at once, not one after the other."""
    lines = refusal(monkeypatch, JOBS_MAX_RETRIES="x", JOBS_MIN_BACKOFF="y").splitlines()
    assert [line.split()[1] for line in lines] == ["JOBS_MAX_RETRIES", "JOBS_MIN_BACKOFF"]


def test_password_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A refused URL is quoted without its password."""
    text = refusal(monkeypatch, JOBS_BROKER_URL="amqp://user:s3cret@host;http://user:s3cret@other")
    assert "s3cret" not in text
    assert "amqp://user:***@host" in text


@pytest.mark.parametrize("variables", [{"JOBS_LLM_KEY": "sk secret"}, {"JOBS_LLM_KYE": "sk-secret"}])
def test_a_key_is_never_shown(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> None:
    """A refused key, and one under a misspelt name, are told without their value."""
    text = refusal(monkeypatch, **variables)
    assert text.startswith(f"expected {next(iter(variables))} to be ")
    assert "***" in text
    assert "secret" not in text


def test_a_key_is_not_in_the_settings_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who prints the settings sees that there is a key, not which."""
    monkeypatch.setenv("JOBS_LLM_KEY", "sk-secret")
    settings = load(Settings)
    assert settings.llm_key is not None
    assert settings.llm_key.get_secret_value() == "sk-secret"
    assert "secret" not in f"{settings!r} {settings}".replace("SecretStr", "")


@pytest.mark.parametrize(
    ("variables", "text"),
    [
        (
            {"JOBS_MIN_BACKOFF": "10m", "JOBS_MAX_BACKOFF": "5m"},
            "expected JOBS_MAX_BACKOFF to be at least JOBS_MIN_BACKOFF (10m), got: 5m; "
            "raise the one or lower the other",
        ),
        (
            {"JOBS_MAX_DELAY": "30m"},
            "expected JOBS_MAX_DELAY to be at least JOBS_MAX_BACKOFF (1h), got: 30m; "
            "raise the one or lower the other",
        ),
        (
            {"JOBS_MAX_DELAY": "5m", "JOBS_MAX_BACKOFF": "1m", "JOBS_EFFECT_LEASE": "10m"},
            "expected JOBS_MAX_DELAY to be at least JOBS_EFFECT_LEASE (10m), got: 5m; "
            "raise the one or lower the other",
        ),
        (
            {"JOBS_BROKER_CONSUMER_TIMEOUT": "10s"},
            "expected JOBS_BROKER_CONSUMER_TIMEOUT to be at least JOBS_SHUTDOWN_GRACE (25s), got: 10s; "
            "raise the one or lower the other",
        ),
        (
            {"JOBS_INLINE_THREADS": "20"},
            "expected JOBS_DATABASE_POOL_SIZE to be at least JOBS_INLINE_THREADS (20), got: 16; "
            "raise it, or run fewer threads",
        ),
    ],
)
def test_settings_that_do_not_fit_together_are_refused(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], text: str
) -> None:
    """A rule between two settings names both and their values."""
    assert refusal(monkeypatch, **variables) == text


def test_misspelt_name_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that is nearly a setting is a mistake, not a variable of somebody else."""
    text = refusal(monkeypatch, JOBS_MAX_RETRYS="3")
    assert text == (
        "expected JOBS_MAX_RETRYS to be a known setting, got: JOBS_MAX_RETRYS='3'; "
        "did you mean JOBS_MAX_RETRIES?"
    )


@pytest.mark.parametrize("name", ["JOBS_PORT", "JOBS_SERVICE_HOST", "JOBS_APP", "JOBS_TEST_MANAGEMENT_URL"])
def test_foreign_name_is_left_alone(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Variables that Kubernetes derives from a service named `jobs`, and those of tests, stop nothing."""
    monkeypatch.setenv(name, "tcp://10.0.0.1:80")
    assert load(Settings).broker_url == "inline://"


def test_several_brokers_of_a_cluster() -> None:
    """The URLs of a cluster's nodes stand in one setting, separated by semicolons."""
    assert Settings(broker_url="amqp://a ; amqps://b:5671/v").broker_url == "amqp://a;amqps://b:5671/v"


def test_every_setting_says_what_it_defaults_to() -> None:
    """Each knob's text names its default."""
    for name, field in Settings.model_fields.items():
        assert "Defaults to" in (field.description or ""), name


@pytest.mark.parametrize("loaded_by", ["dramatiq", "web application"])
def test_a_worker_refuses_to_start(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, loaded_by: str
) -> None:
    """`dramatiq` ends with one line and code 2 at a wrong setting; elsewhere the error is raised."""
    monkeypatch.delitem(sys.modules, "dramatiq.cli", raising=False)
    if loaded_by == "dramatiq":
        monkeypatch.setitem(sys.modules, "dramatiq.cli", ModuleType("dramatiq.cli"))
    ending = SystemExit if loaded_by == "dramatiq" else ConfigurationError
    with pytest.raises(ending) as caught, refusing_start():
        raise ConfigurationError("expected JOBS_X to be right, got: wrong")
    if isinstance(caught.value, SystemExit):
        assert caught.value.code == 2
        assert caplog.messages == ["Refusing to start: expected JOBS_X to be right, got: wrong"]
