"""`python -m symphony_charts` is `symph`."""

from symphony_charts.cli.main import main

raise SystemExit(main())
