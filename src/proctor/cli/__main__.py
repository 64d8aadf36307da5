"""`python -m proctor.cli`, the same as `proctor`."""

import sys

from proctor.cli import main

sys.exit(main())
