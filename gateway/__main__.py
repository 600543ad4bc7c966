"""``python -m gateway`` is ``headway``."""

from gateway.cli.main import main

if __name__ == "__main__":
    main()
