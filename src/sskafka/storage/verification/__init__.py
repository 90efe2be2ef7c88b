"""Checks of a log directory without changing it: start at `directory`; `repair` mends what loses nothing."""
