"""Balance replicas and leaders: plan moves, carry them out, and decide whether a broker may stop.

`layout` has the values. `leaders`, `replicas` and `safety` decide and are pure. `reading` asks the cluster for its
layout, `moving` starts, watches and cancels the moves of a plan.
"""
