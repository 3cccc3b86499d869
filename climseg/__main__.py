"""``python -m climseg COMMAND [key=value ...]``."""

from climseg.cli.main import main

if __name__ == "__main__":
    main()
