from .monitoring import AgentLogger

class AgentError(Exception):
    def __init__(self, message: str, logger: AgentLogger) -> None: ...
