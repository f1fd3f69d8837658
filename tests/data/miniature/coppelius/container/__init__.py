"""The miniature container."""
