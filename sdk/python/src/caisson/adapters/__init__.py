"""Caisson as what agent frameworks call a sandbox. Each module needs its framework, and is imported by who has it."""
