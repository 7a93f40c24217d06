"""The explorer: a page in the browser whose every number is an answer of the public verbs."""

from quenched.explorer.server import Server, browse, is_here, start, wait

__all__ = ["Server", "browse", "is_here", "start", "wait"]
