"""Moved."""

from howsure.metrics.metric_facts import Metric as Metric
from howsure.metrics.metric_facts import get_arguments as positional
from howsure.metrics.metric_facts import get_options as options
from howsure.metrics.metric_facts import unwrap_metric as plain
