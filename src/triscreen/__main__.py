"""``python -m triscreen`` is the command ``triscreen``."""

from triscreen.cli import main

if __name__ == "__main__":
    main()
