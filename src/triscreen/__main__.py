"""``python -m triscreen`` is the command ``triscreen``."""

from triscreen.cli import main

main()
