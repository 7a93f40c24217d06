"""The version of the package at the foot of every page."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any


def on_config(config: Any) -> Any:
    """Write the version into the footer (called by mkdocs)."""
    project = tomllib.loads((Path(config.config_file_path).parent / "pyproject.toml").read_text())["project"]
    config.copyright = f"quenched {project['version']} · {project['license']} licence"
    return config
