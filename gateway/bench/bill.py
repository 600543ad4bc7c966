"""What Headway metered, as an operator reads it."""

import asyncio
import json
import sys

from gateway.bench.server import Server
from gateway.core.errors import BenchmarkFailed
from gateway.core.settings import child_environment
from gateway.core.usage import Usage

SETTLE_SECONDS = 10.0
