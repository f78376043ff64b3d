"""Logs: one JSON object a line, so that what happened on a node is one query away."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, TextIO, get_args

import msgspec

Level = Literal["debug", "info", "warning", "error"]
LEVELS: tuple[Level, ...] = get_args(Level)


@dataclass
class Log:
    """Writes lines of LEVEL and above. The time in a line is this machine's, as that of the lines around it is."""

    level: Level = "info"
    stream: TextIO | None = field(default_factory=lambda: sys.stderr)
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    def debug(self, message: str, **fields: Any) -> None:
        """For who looks for a defect."""
        self._write("debug", message, fields)

    def info(self, message: str, **fields: Any) -> None:
        """Something was done."""
        self._write("info", message, fields)

    def warning(self, message: str, **fields: Any) -> None:
        """Something went wrong that will be tried again."""
        self._write("warning", message, fields)

    def error(self, message: str, **fields: Any) -> None:
        """Something that somebody has to look at."""
        self._write("error", message, fields)

    def _write(self, level: Level, message: str, fields: dict[str, Any]) -> None:
        if self.stream is None or LEVELS.index(level) < LEVELS.index(self.level):
            return
        line = {"time": self.now(), "level": level, "message": message, **fields}
        try:
            self.stream.write(f"{_json(line)}\n")
            self.stream.flush()
        except (OSError, ValueError):
            return  # whoever read the log is gone; the work is not


def _json(line: dict[str, Any]) -> str:
    try:
        return msgspec.json.encode(line, enc_hook=str).decode()
    except UnicodeEncodeError:  # bytes of a file's name that are no UTF-8
        return json.dumps(line, default=str)
