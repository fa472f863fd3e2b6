"""`python -m podium` is the `podium` command."""

from podium.cli.main import main

if __name__ == "__main__":
    main()
