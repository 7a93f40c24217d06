"""The explorer: a page in the browser whose every number is an answer of the public verbs."""

from quenched.explorer.server import Server, serve, start

__all__ = ["Server", "serve", "start"]
