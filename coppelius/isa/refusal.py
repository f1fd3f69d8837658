"""A refusal names what is wrong, where, and what to do; it never guesses."""


class Refusal(ValueError):
    """Input that this project will not build on; the message is one or more plain lines for the user."""
