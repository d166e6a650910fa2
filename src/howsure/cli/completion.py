"""howsure completion"""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print a script that completes howsure commands and options in your shell.

    \b
    Examples:
      howsure completion bash >> ~/.bashrc
      howsure completion fish > ~/.config/fish/completions/howsure.fish
    """
    from howsure.cli.main import howsure

    found = get_completion_class(shell)
    assert found is not None  # click ships these three
    click.echo(found(howsure, {}, "howsure", "_HOWSURE_COMPLETE").source())
