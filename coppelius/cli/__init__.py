"""The command line: outermost, nothing imports it; the one place that may load a checkout's tasks."""
