"""What kind of thing is a value? Told by where it comes from, see `origins`."""

from __future__ import annotations

import re
from typing import Final


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text)


def _from(package: str, names: str) -> str:
    """Return a pattern for names of a package, whichever of its modules they are imported from."""
    return rf"{package}(?:\.\w+)*\.(?:{names})"


_SQLALCHEMY: Final = "(?:sqlalchemy|sqlmodel)"
_SESSION_CLASS: Final = _from(_SQLALCHEMY, "Session|AsyncSession|scoped_session|async_scoped_session")
_FACTORY_CLASS: Final = _from(_SQLALCHEMY, "sessionmaker|async_sessionmaker")
_SCOPED: Final = _from(_SQLALCHEMY, "scoped_session|async_scoped_session") + r"\(\)"
_FACTORY: Final = rf"(?:{_FACTORY_CLASS}|{_from(_SQLALCHEMY, 'scoped_session|async_scoped_session')})\(\)"
_ENGINE_MAKER: Final = (
    rf"(?:{_from(_SQLALCHEMY, '(?:create_(?:async_)?engine|(?:async_)?engine_from_config)')}"
    rf"|{_from('middleware', 'Store')})"
)
_STORE: Final = rf"(?:{_from('middleware', 'Store')}|jobs)\(?\)?(?:\.store)?"
_ENGINE: Final = (
    rf"(?:{_ENGINE_MAKER}\(\)(?:\.(?:async_)?engine)?|{_from(_SQLALCHEMY, 'Engine|AsyncEngine')}\(\))"
    r"(?:\.(?:execution_options|sync_engine)(?:\(\))?)*"
)
_GIVEN: Final = (
    rf"{_from('middleware', 'current_session|current_async_session|effect')}\(\)(?:\.sync_session|\.session)?"
)
_OWN: Final = (
    rf"(?:(?:{_SESSION_CLASS})\(\)|{_FACTORY}(?:\(\)|\.begin\(\))|{_SCOPED}"
    r"|flask_sqlalchemy(?:\.\w+)*\.SQLAlchemy\(\)\.session(?:\(\))?)(?:\.sync_session)?"
)
_DRIVER: Final = (
    r"(?:psycopg|psycopg2|sqlite3|pymysql|MySQLdb|asyncpg|oracledb|aiosqlite|mysql\.connector)"
    r"(?:\.\w+)*\.connect\(\)"
)
_OWN_CONNECTION: Final = (
    rf"(?:{_ENGINE}\.(?:connect|begin|raw_connection)\(\)|{_OWN}\.(?:connection|bind)\(\)"
    rf"|{_from(_SQLALCHEMY, 'Connection|AsyncConnection')}\(\)|{_DRIVER}|{_STORE}\.writing\(\))"
    r"(?:\.cursor\(\))?"
)

ACTOR: Final = _pattern(_from("dramatiq", "actor"))
QUEUE: Final = _pattern(_from("middleware", "Queue"))
GIVEN_SESSION: Final = _pattern(_GIVEN)
"""What the kit hands to an actor."""
GIVEN: Final = _pattern(
    rf"{_GIVEN}(?:\.connection\(\)|\.get_transaction\(\)|\.connection\(\)\.get_transaction\(\))?"
)
"""The same, its connection, and the transaction of either."""
OWN_SESSION: Final = _pattern(_OWN)
SESSION: Final = _pattern(rf"(?:{_OWN}|{_GIVEN})")
OWN_CONNECTION: Final = _pattern(_OWN_CONNECTION)
WRITING: Final = _pattern(rf"{_STORE}\.writing\(\)")
QUERY: Final = _pattern(rf"(?:{_OWN}|{_GIVEN})\.query\(\)(?:\.\w+\(\))*")
ENGINE_MAKER: Final = _pattern(_ENGINE_MAKER)
SESSION_MAKER: Final = _pattern(rf"(?:{_SESSION_CLASS}|{_FACTORY_CLASS}|{_FACTORY}(?:\.begin)?)")
CHANGE: Final = _pattern(
    rf"(?:{_from(_SQLALCHEMY, 'insert|update|delete')}\(\)|{_from(_SQLALCHEMY, 'Table|table')}\(\)"
    r"(?:\.(?:insert|update|delete)\(\)))(?:\.\w+\(\)|\.\w+)*"
)
"""A statement that changes rows."""
TEXT: Final = _pattern(rf"(?:{_from(_SQLALCHEMY, 'text')}|psycopg2?(?:\.\w+)*\.SQL)")
NETWORK: Final = _pattern(
    r"(?:requests|httpx|aiohttp|urllib3|smtplib|aiosmtplib|ftplib|paramiko|websockets|websocket|boto3|botocore"
    r"|openai|anthropic|stripe|twilio|sendgrid|slack_sdk|grpc|telnetlib|imaplib|poplib|xmlrpc\.client"
    r"|http\.client|urllib\.request|socket)\.(?:[\w.()\[\]]+)"
)
SQL_CHANGE: Final = re.compile(
    r"\s*(?:--[^\n]*\n\s*|/\*.*?\*/\s*)*(?:WITH\b.*\b)?(?:(?:INSERT(?:\s+OR\s+\w+)?|MERGE|REPLACE)\s+INTO"
    r"|UPDATE\s+(?:ONLY\s+)?\S+\s+(?:(?:AS\s+)?\w+\s+)?SET|DELETE\s+FROM|TRUNCATE\s+\S+|COPY\s+\S+.*\sFROM)\b",
    re.IGNORECASE | re.DOTALL,
)
"""SQL that changes rows."""
SQL_END: Final = re.compile(r"\s*(?:COMMIT|ROLLBACK(?!\s+(?:\w+\s+)?TO\b)|END|ABORT)\b", re.IGNORECASE)
"""SQL that ends a transaction."""
