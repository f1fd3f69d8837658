"""`python -m coppelius` is the console script."""

import sys

from coppelius.cli.main import main

sys.exit(main())
