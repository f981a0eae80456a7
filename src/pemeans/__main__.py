"""``python -m pemeans`` is the command ``pemeans``."""

from pemeans.cli import main

if __name__ == "__main__":
    main()
