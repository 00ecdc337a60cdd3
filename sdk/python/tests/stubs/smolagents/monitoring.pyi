from enum import IntEnum

class LogLevel(IntEnum):
    ERROR = 0

class AgentLogger:
    def __init__(self, level: LogLevel = ...) -> None: ...
